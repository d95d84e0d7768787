//! Transports over real sockets: the drivers that run an endpoint over UDP,
//! and the transports that own their sockets.
//!
//! A [`SocketConnection`] is one side of one lane's connection, sockets included. It
//! lives on one thread, whose owner has the clock:
//!
//! ```text
//! loop {
//!     // Takes in what has come, has the application act, puts out what waits.
//!     transport::turn(&mut side, || clock.now(), |side, now| application.turn(now, side));
//!     side.wait(until the side's or the application's next deadline);
//! }
//! ```
//!
//! [`SocketSpec`] is any transport with its settings, found by a name: an
//! [`Endpoint`](lagometer_transport::Endpoint) of the crate `transport`, in virtual
//! time or over a UDP socket (`EndpointConnection`), or one of this crate's own
//! [`presets`], which own their sockets. It makes a client's side
//! and a server's side separately, on two threads or on two machines; what
//! both must know follows from the seed of the [`Opening`].
//!
//! # Map
//!
//! - `connection`: the one trait, and what a side counts
//! - `drained`: not to ask a socket for what is known
//! - `endpoint_connection`: an endpoint over a connected UDP socket
//! - `tcp`: the kernel's own TCP
//! - [`udt`]: UDT, where the feature of that name brings it
//! - [`srt`]: SRT, where the feature of that name brings it
//! - `transport`, `spec`, `catalogue`: settings, and what is made of them
//! - `tuned`: settings that a search found
//! - `mid_page_buffer`: memory that the kernel is fast to fill and to read
//! - `sleep`: waiting for a file
//! - [`udp`]: datagrams in bulk, by the fewest system calls
//!
//! Batched system calls and the choice of the kernel's congestion control are
//! Linux's: elsewhere datagrams go one by one, and there are no lanes of the kernel's
//! TCP.

mod catalogue;
mod connection;
mod drained;
mod endpoint_connection;
mod mid_page_buffer;
#[cfg(target_os = "linux")]
mod sleep;
mod spec;
pub mod srt;
#[cfg_attr(not(target_os = "linux"), path = "tcp_elsewhere.rs")]
pub mod tcp;
mod transport;
mod tuned;
pub mod udp;
pub mod udt;

pub use catalogue::{family_of, names, own_names, presets};
pub use connection::{BoxedConnection, Counters, DatagramTap, SocketConnection};
pub use endpoint_connection::EndpointConnection;
pub use mid_page_buffer::MidPageBuffer;
pub use spec::SocketSpec;
pub use transport::{Opening, SocketTransport, Unavailable};
