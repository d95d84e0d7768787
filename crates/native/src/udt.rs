//! UDT 4.11 behind a safe layer: the system's `libudt`, by way of the feature
//! `udt`.
//!
//! UDT is a reliable transport of 2001 to 2013, made to fill fast long lines,
//! which games took up for their messages. It owns its sockets and its threads
//! and keeps its own time, so it cannot be driven in virtual time: it is the
//! real library, called through a shim in C++ through which no exception passes.
//! The shim adds two rate controls by the interface that UDT has for them.
//!
//! - **Threads.** UDT makes one thread of its own, and two for each UDP socket.
//!   They are made in `Socket::bind` by the calling thread, whose network
//!   namespace they and the UDP socket share. Their processor time is known:
//!   `Socket::cpu`.
//! - **Ports.** UDT distinguishes the UDP sockets of a process by their port
//!   numbers alone, so `Socket::bind` refuses a number that another has.
//! - **Its clock.** Debian's build counts the processor's cycles, and finds their
//!   rate in 100 ms of sleep while the library is loaded: every start of a
//!   program that links it takes as much longer. Where the machine is so busy
//!   that the sleep takes longer, UDT's timers run slow by the same share.
//! - **Trust.** UDT reads what arrives without much care. It is for paths
//!   of one's own making and must not listen where others can reach it.
//!
//! Without the feature this module is empty, and whoever asks for UDT is shown what
//! to install.

/// What Debian calls what the feature `udt` needs.
pub const PACKAGE: &str = "libudt-dev";

#[cfg(feature = "udt")]
mod error;
#[cfg(feature = "udt")]
mod foreign;
#[cfg(feature = "udt")]
mod library;
#[cfg(feature = "udt")]
mod options;
#[cfg(feature = "udt")]
mod poll;
#[cfg(feature = "udt")]
mod ports;
#[cfg(feature = "udt")]
mod socket;
#[cfg(feature = "udt")]
mod threads;

#[cfg(feature = "udt")]
pub use {
    crate::state::State,
    error::{Error, Kind},
    library::Library,
    options::{Options, RateControl},
    poll::{Poll, Ready},
    socket::{Mode, Order, Socket, Statistics},
};
