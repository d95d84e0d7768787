//! A world played over impaired links: every player reaches the gateway over a
//! link and a transport of its own, and what it sees is as old as those make
//! it.
//!
//! In virtual time ([`sim`]) the gateway's core, servers, players, transports
//! and links are one discrete-event loop: equal seeds, equal findings, on any
//! machine and faster than real time. Over real sockets ([`emu`]) the same players and
//! links are joined by real kernels in real time. A [`matrix`] plays several transports on
//! several networks and puts what was found side by side.
//!
//! # Map
//!
//! - [`PlayerTransport`]: how players reach the gateway
//! - [`player_link`]: each player's own network conditions
//! - [`sim`]: wires of links in virtual time
//! - [`emu`]: sockets in two hosts, with an emulated link for each player
//! - [`matrix`]: transports times networks, on all processors

mod digest;
#[cfg(target_os = "linux")]
pub mod emu;
pub mod matrix;
mod player_link;
pub mod sim;
mod transport;

pub use digest::digest;
pub use player_link::player_link;
pub use transport::{PlayerTransport, UnknownTransport};
