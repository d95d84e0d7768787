//! The link model: time in, fate of a packet out. Seeded, deterministic,
//! replayable; it knows nothing of sockets, threads or transports.

mod direction;
pub mod trace;

pub use direction::Direction;
