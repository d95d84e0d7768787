//! SRT, UDT's maintained descendant, in message mode.
//!
//! It is linked where the cargo feature `srt` asks for it. Without, its presets
//! are known all the same, and the error of one that is chosen names the package.
//!
//! - `settings`: what can be chosen
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)

#[cfg(feature = "srt")]
mod connection;
mod settings;

pub use settings::Settings;

use lagometer_transport::{Preset, PresetKind, Source};

use crate::catalogue::{TUNED, checked};
use crate::spec::SocketSpec;
use crate::tuned::tuned;

/// The library's page of options.
const OPTIONS: &str = "https://github.com/Haivision/srt/blob/master/docs/API/API-socket-options.md";

/// A socket is for live video unless set otherwise.
const DEFAULT: &[Source] = &[
    Source::library(
        "SRTO_TRANSTYPE: SRTT_LIVE by default, with 120 ms of latency",
        OPTIONS,
    ),
    Source::equal("peer_idle"),
];

/// Messages that are delivered as they come.
const GAME: &[Source] = &[
    Source::library("as `srt-default`", OPTIONS),
    Source::of(
        "latency",
        "SRTO_TSBPDMODE off: messages are delivered as they come, and none is dropped",
        OPTIONS,
    ),
    Source::equal("peer_idle"),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset<SocketSpec>] = &[
    Preset::new(
        "srt-default",
        "SRT as for live video: delivered 120 ms after being sent, dropped when later",
        || checked(Settings::LIVE),
    )
    .of("srt", PresetKind::Default, DEFAULT)
    .also(&["srt-live"]),
    Preset::new(
        "srt-game",
        "SRT's messages, reliable and in order, delivered as they come",
        || checked(Settings::RELIABLE),
    )
    .of("srt", PresetKind::Game, GAME)
    .also(&["srt"]),
    Preset::found("srt", "srt-tuned", || tuned("srt"), TUNED),
];
