//! UDT 4.11 behind a safe layer.
//!
//! UDT is a reliable transport of 2001 to 2013, made to fill fast long lines,
//! which games took up for their messages. It owns its sockets and its threads
//! and keeps its own time, so it cannot be driven in virtual time: it is the
//! real library, compiled from `third_party/udt` and called through a shim in
//! C++ through which no exception passes.
//!
//! - **Threads.** UDT makes one thread of its own, and two for each UDP socket.
//!   They are made in [`Socket::bind`] by the calling thread, whose network
//!   namespace they and the UDP socket share. Their processor time is known:
//!   [`Socket::cpu`].
//! - **Strangers.** UDT reads what arrives without much care. It is for paths
//!   of one's own making and must not listen where strangers can reach it.

mod error;
mod foreign;
mod library;
mod options;
mod poll;
mod socket;
mod threads;

pub use error::{Error, Kind};
pub use library::Library;
pub use options::{Options, RateControl};
pub use poll::{Poll, Ready};
pub use socket::{Mode, Order, Socket, State, Statistics};

/// The library that is inside, and its release.
pub const LIBRARY: &str = "UDT 4.11";
