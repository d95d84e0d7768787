//! TCP as Linux has it, sans-IO: IP packets and the time go in, IP packets and
//! the next deadline come out.
//!
//! A [`Connection`] is one end of one connection, an [`Endpoint`] a host with
//! listeners and many of them. Neither touches a socket, a clock or a thread,
//! and all that is random follows from a seed: the same calls give the same
//! bytes. The rules are Linux 6.1's, each cited where it is written; what is not
//! yet as the kernel has it is listed in the project's `docs/tcp.md`.
//!
//! ```
//! use std::net::SocketAddr;
//! use lagometer_tcp::{Config, Endpoint, Instant};
//!
//! let now = Instant::ZERO;
//! let server: SocketAddr = "10.0.0.2:80".parse()?;
//! let mut a = Endpoint::new("10.0.0.1".parse()?, Config::default(), 1);
//! let mut b = Endpoint::new(server.ip(), Config::default(), 2);
//! b.listen(80, 16);
//! let client = a.connect(now, server)?;
//! // A path without delay.
//! loop {
//!     let (to_b, to_a) = (a.poll_transmit(), b.poll_transmit());
//!     if to_b.is_none() && to_a.is_none() {
//!         break;
//!     }
//!     for packet in to_b {
//!         b.receive(now, &packet)?;
//!     }
//!     for packet in to_a {
//!         a.receive(now, &packet)?;
//!     }
//! }
//! assert!(b.accept(80).is_some());
//! assert_eq!(a.with(client, |c| c.write(now, b"hello")), Some(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
pub mod congestion;
mod connection;
mod endpoint;
mod outbox;
mod phases;
mod random;
mod received;
mod reserve;
mod rtt;
mod sent;
mod seq;
mod state;
mod time;
mod unsent;
mod windowed;
pub mod wire;

pub use config::{Config, EcnMode, KeepAlive, MtuProbing};
pub use connection::{Connection, Counters, Event, Info};
pub use endpoint::{ConnectError, ConnectionId, Endpoint};
pub use phases::{BBR_PHASES, PhaseSearch};
pub use seq::Seq;
pub use state::{CloseReason, State};
pub use time::Instant;
