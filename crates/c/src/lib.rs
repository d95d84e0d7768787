//! The link model and KCP for programs in C and C++: a game puts its own UDP socket
//! behind a seeded network inside its own process, and tests what it does on a bad one,
//! the same way each time, on any platform.
//!
//! `include/lagometer.h` is what C sees; it is generated from this crate, and a test
//! keeps it so. `docs/embedding.md` shows how to build and use it, and
//! `examples/impaired_socket.c` is a program that does.
//!
//! # What holds for all functions
//!
//! - Nothing here opens a socket, reads a clock or starts a thread: the program hands
//!   in the time and the bytes.
//! - Time is the program's own, in nanoseconds (networks) or milliseconds (KCP) from
//!   any start; a network takes an instant before one that it was given as that one, and
//!   refuses what lies beyond its end.
//! - A null pointer, an impossible direction or a length that cannot be is refused by
//!   [`Status::InvalidArgument`], and nothing changes. A pointer to memory that is not
//!   there, or to a thing that was freed, is the caller's mistake, as in C everywhere.
//! - One thing is used by one thread at a time; different things do not know of each
//!   other.
//! - A panic never leaves a function. It would be a defect of this crate: what it was
//!   about answers [`Status::Broken`] from then on.
//!
//! # Versions
//!
//! [`lagometer_version`] is the version of the library, by the rules of semantic
//! versioning over what is in the header: within a major version (a minor one before
//! 1.0) functions and values are only added.
//!
//! # Map
//!
//! - `network`, `conversation`: what there is, in safe Rust
//! - `boundary`: what comes from C made safe, and panics caught
//! - `network_c`, `kcp_c`: the functions that C calls

mod boundary;
mod conversation;
mod kcp_c;
mod network;
mod network_c;

pub use boundary::{Status, lagometer_version};
pub use kcp_c::{
    LagometerKcp, LagometerKcpSettings, lagometer_kcp_check, lagometer_kcp_default_settings,
    lagometer_kcp_free, lagometer_kcp_input, lagometer_kcp_is_dead, lagometer_kcp_new,
    lagometer_kcp_receive, lagometer_kcp_send, lagometer_kcp_take_datagram, lagometer_kcp_update,
    lagometer_kcp_waiting,
};
pub use network_c::{
    LagometerNetwork, lagometer_network_free, lagometer_network_new,
    lagometer_network_next_arrival, lagometer_network_receive, lagometer_network_send,
    lagometer_network_waiting,
};
