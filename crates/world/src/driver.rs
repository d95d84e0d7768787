//! The course of a world, on any connections: [`play_on`](crate::play_on), what it
//! asks of connections and of other processes, and sockets in real time.

pub(crate) mod backend;
pub(crate) mod capacity_search;
pub(crate) mod coordination;
#[cfg(target_os = "linux")]
pub mod real;
pub(crate) mod shard;
pub(crate) mod stage;
