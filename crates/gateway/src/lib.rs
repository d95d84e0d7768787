//! The channel gateway: a sans-IO core of connections and channels, and the
//! server that puts it on sockets, in one process or in [nodes] of several.

pub mod core;
pub mod nodes;
pub mod server;
pub mod stream_transport;
