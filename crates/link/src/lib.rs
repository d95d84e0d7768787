//! The link model: time in, fate of a packet out. Seeded, deterministic,
//! replayable; it knows nothing of sockets, threads or transports.
//!
//! A [`Profile`] says how a network behaves. A [`Link`] plays it from a seed:
//! [`Link::offer`] is called when a packet enters and answers with its [`Fate`].
//!
//! ```
//! use lagometer_link::{Direction, Fate, Link, Profile, Regime};
//! use lagometer_units::Time;
//!
//! let profile = Profile::from_text(
//!     "inline",
//!     r#"
//!     summary = "twenty milliseconds each way"
//!     [both]
//!     delay = "20 ms"
//!     "#,
//! )?;
//! let mut link = Link::new(&profile, 1, Regime::Time, Time::ZERO);
//! let fate = link.offer(Direction::Up, Time::from_millis(5), 528);
//! let arrival = fate.arrivals().next().map(|arrival| arrival.at);
//! assert_eq!(arrival, Some(Time::from_millis(25)));
//! # Ok::<(), lagometer_units::BadInput>(())
//! ```
//!
//! # The same impairments for every lane
//!
//! The state of the link (outage, stall, burst, jitter level, handover, rate)
//! is a function of the seed and the time alone. What is left to chance for a
//! single packet is decided by a coin with a name: a hash of the seed, the
//! direction, what the coin is for, and which packet it is (see [`Regime`]).
//! Nothing is ever drawn in the order in which packets arrive, so no lane's
//! traffic changes another lane's impairments.
//!
//! # Map
//!
//! - `keyed`: the hash; `interval`, `wander`, `normal`: processes in time
//! - `profile`, `trace`: what people write and record, read and checked
//! - `impairments`: the state of a direction at an instant; `jitter`, `playback`
//! - `service`: rate, queue and stalls
//! - [`queue`]: disciplines of what waits for the rate
//! - `regime`, `entrance`: what a packet meets before and behind the queue
//! - `oneway`, `link`: a packet's way through all of it
//! - `shared`: the same for several senders and any discipline
//! - `arrivals`: a queue ordered by time, for whoever plays links in virtual time
//! - `in_flight`: packets on their way in such a queue
//! - `fate`, `stats`, `truth`: what is reported
//! - [`catalogue`]: the networks that come with the project

mod arrivals;
pub mod catalogue;
mod direction;
mod entrance;
mod fate;
mod impairments;
mod in_flight;
mod interval;
mod jitter;
mod keyed;
mod link;
mod normal;
mod oneway;
mod playback;
mod profile;
pub mod queue;
mod regime;
mod service;
mod shared;
mod stats;
pub mod trace;
mod truth;
mod wander;

pub use arrivals::Arrivals;
pub use direction::Direction;
pub use fate::{Arrival, Damage, Fate, Reason};
pub use in_flight::{InFlight, PacketInFlight};
pub use link::Link;
pub use profile::cross;
pub use profile::overload::Overload;
pub use profile::spells::Scheduled;
pub use profile::too_large::TooLarge;
pub use profile::written;
pub use profile::{LoadError, Profile};
pub use regime::Regime;
pub use shared::{Passed, SharedLink};
pub use stats::{Amount, LinkStats};
pub use truth::{Conditions, Disturbance, DisturbanceKind};
