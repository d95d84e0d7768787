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

use crate::catalogue::{SocketPreset, checked};

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[SocketPreset] = &[
    SocketPreset {
        name: "srt",
        about: "SRT's messages, reliable and in order, delivered as they come",
        spec: || checked(Settings::RELIABLE),
    },
    SocketPreset {
        name: "srt-live",
        about: "SRT as for live video: delivered 120 ms after being sent, dropped when later",
        spec: || checked(Settings::LIVE),
    },
];
