//! KCP: our own engine, wire-compatible and behaviour-identical with the C
//! reference (`ikcp.c`), in safe Rust, for whoever wants KCP and nothing else: no
//! socket, no clock, no thread, and nothing of the lab that it was made for.
//!
//! What is measured as KCP must be KCP. So the engine makes the same
//! datagrams at the same times as the reference, byte for byte, its defects
//! included; each defect has a name in [`Rules`] and a mend that can be asked
//! for. The tests hold the engine against the reference itself.
//!
//! What differs is the cost. The reference keeps segments in linked lists and
//! walks them on every flush and acknowledgement, so that its cost per
//! segment grows with the window. Here segments stand in rings indexed by
//! their number (`send_ring`, `receiver`), those due are found by their
//! deadline (`deadlines`), and those skipped by a tree over the instants of
//! transmission (`skips`).
//!
//! An [`Engine`] is one end of one conversation. It is given messages, datagrams
//! and the time in milliseconds, and gives back datagrams:
//!
//! ```
//! use lagometer_kcp::{Config, Engine};
//! use lagometer_units::Time;
//!
//! let config = Config { nodelay: 1, interval_ms: 10, resend: 2, ..Config::default() };
//! let (mut client, mut server) = (Engine::new(7, &config), Engine::new(7, &config));
//! client.send(b"fire")?;
//!
//! let mut message = Vec::new();
//! for now_ms in (0..100).step_by(10) {
//!     let now = Time::from_millis(u64::from(now_ms));
//!     let mut wire = Vec::new();
//!     client.update(now_ms, |datagram| wire.push(datagram.to_vec()));
//!     for datagram in &wire {
//!         server.input(now, datagram)?;
//!     }
//!     let mut wire = Vec::new();
//!     server.update(now_ms, |datagram| wire.push(datagram.to_vec()));
//!     for datagram in &wire {
//!         client.input(now, datagram)?;
//!     }
//!     if server.receive(&mut message).is_some() {
//!         break;
//!     }
//! }
//! assert_eq!(message, b"fire");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! - `engine`, `flush`: an end, what comes in and what goes out
//! - `config`, `rules`: how it behaves, and which KCP it is
//! - `sender`, `send_ring`, `cutting`, `deadlines`, `skips`: segments to be acknowledged
//! - `receiver`: segments put in order
//! - `round_trip`, `congestion`, `probe`: the timeout and the two windows
//! - `wire`, `packer`: segments in datagrams
//! - `clock`: a clock that wraps; `pool`: buffers used again

mod clock;
mod config;
mod congestion;
mod cutting;
mod deadlines;
mod engine;
mod flush;
mod packer;
mod pool;
mod probe;
mod receiver;
mod round_trip;
mod rules;
mod send_ring;
mod sender;
mod skips;
mod wire;

pub use clock::ahead;
pub use config::{Config, LEAST_MTU, segment_bytes};
pub use cutting::TooManySegments;
pub use engine::Engine;
pub use flush::Work;
pub use pool::Pool;
pub use receiver::Arrival;
pub use round_trip::FIRST_RTO_MS;
pub use rules::{Backoff, RtoMargin, RttSampling, Rules, SkipCounting, WindowGrowth};
pub use wire::{BadDatagram, Command, HEADER_BYTES, Header, Piece, split_segment};
