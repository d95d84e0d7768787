//! The channel gateway: a sans-IO core of connections and channels, and the
//! server that puts it on sockets.

pub mod core;
pub mod server;
pub mod stream_transport;
