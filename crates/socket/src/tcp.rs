//! The kernel's own TCP: messages with their length in front, on a stream.
//!
//! - `gather`: reading in large pieces
//! - `settings`: what can be chosen, and what the kernel offers
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)

mod connection;
mod gather;
mod settings;

pub use gather::gather;
pub use settings::Settings;
