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

use lagometer_transport::Preset;

use crate::catalogue::checked;
use crate::spec::SocketSpec;

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset<SocketSpec>] = &[
    Preset::new(
        "srt",
        "SRT's messages, reliable and in order, delivered as they come",
        || checked(Settings::RELIABLE),
    ),
    Preset::new(
        "srt-live",
        "SRT as for live video: delivered 120 ms after being sent, dropped when later",
        || checked(Settings::LIVE),
    ),
];
