//! UDT, the real library: messages, or a stream with lengths in front.
//!
//! It is linked where the cargo feature `udt` asks for it. Without, its presets
//! are known all the same, and whoever asks for one is told what to install.
//!
//! - `settings`: what can be chosen, as in 2015 and as it serves a game
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)
//! - `inbox`: a thread that waits in UDT, since UDT has no file to wait on
//!
//! What a reader of its figures should know. UDT reports a loss once, when it
//! first sees the gap; should the report be lost, or what is sent upon it, only
//! a timer helps, and everything that arrives puts that timer off. A direction
//! with a hole can so stand still for as long as the other is lively. UDT's own
//! rate control takes the rate at which messages arrive for what the path can
//! carry, slows down with every loss from there, and recovers by steps made for
//! gigabits.

#[cfg(feature = "udt")]
mod connection;
#[cfg(feature = "udt")]
mod inbox;
mod settings;

pub use settings::{RateControl, Settings, Waiting};
