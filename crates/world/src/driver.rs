//! The course of a world, on any connections: [`play_on`](crate::play_on), what it
//! asks of connections and of other processes; and the three kinds of connections: sockets
//! in real time, sockets in emulated hosts, and links in virtual time.

pub(crate) mod backend;
pub(crate) mod capacity_search;
pub(crate) mod coordination;
#[cfg(target_os = "linux")]
pub mod emulated;
pub mod matrix;
pub(crate) mod player_link;
pub(crate) mod player_transport;
#[cfg(target_os = "linux")]
pub mod real;
pub(crate) mod running_world;
pub(crate) mod shard;
pub mod virtual_time;
