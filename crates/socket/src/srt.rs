//! SRT, UDT's descendant that is looked after, in message mode.
//!
//! It is linked where the cargo feature `srt` asks for it. Without, its presets
//! are known all the same, and whoever asks for one is told what to install.
//!
//! - `settings`: what can be chosen
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)

#[cfg(feature = "srt")]
mod connection;
mod settings;

pub use settings::Settings;
