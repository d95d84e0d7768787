//! WebRTC data channels, by `str0m`: ICE, DTLS and SCTP over one pair of
//! addresses, without SDP.
//!
//! What repeats and what does not: key shares, ICE credentials and the timers
//! of the handshake follow from the seed. Four things the libraries take
//! from the operating system and cannot be configured otherwise: SCTP's tags and
//! initial numbers, the transaction numbers of STUN, the numbers in an ECDSA
//! signature, and the real time that DTLS 1.2 puts into its greeting. All of
//! them have a fixed size and are never looked at but for equality or order.
//! The one size that chance would vary, that of the signature, is held fixed.
//! So the bytes differ from run to run, but not when which packet of which
//! size is sent, and nothing else reaches a result; a test plays a seed again
//! and again to hold it to that. The transport's properties, and with them
//! every document, say so (`varies`).
//!
//! Of SCTP as the library has it: the retransmission timer is 3 s at first, never
//! shorter than 1 s and never longer than 60 s (RFC 9260, section 16), where the
//! browsers' dcSCTP has 500 ms, 400 ms and 60 s; every second packet is acknowledged,
//! or after 200 ms. None of it can be set, hence the transport's name: it is not what a
//! browser makes.
//!
//! - `settings`: what can be chosen, the presets, what is promised.
//! - `dtls`: the DTLS library's cryptography, on *ring*.
//! - `crypto`: the WebRTC library's cryptography, and DTLS for it.
//! - `wiring`: two ends that know of each other.
//! - `kind`: what a datagram is, before it is handed to the library.
//! - `endpoint`: the connection behind [`Endpoint`](crate::Endpoint).

mod crypto;
mod dtls;
mod endpoint;
mod kind;
mod settings;
mod wiring;

pub use settings::Settings;

use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::tuned::tuned;

/// The library's own values; its SCTP's timers cannot be set at all.
const SOURCES: &[Source] = &[
    Source::library(
        "a peer connection with the configuration it has by default",
        "https://docs.rs/str0m/0.25.0/str0m/struct.RtcConfig.html",
    ),
    Source::equal("stun_max_retransmits"),
    Source::lab(
        "send_buffer",
        "the library's 128 KiB are full after a short outage",
    ),
    Source::lab("receive_buffer", "as large as what is sent"),
    Source::of(
        "ordered",
        "true unless `createDataChannel` is asked otherwise",
        "https://www.w3.org/TR/webrtc/#dom-rtcdatachannelinit",
    ),
    Source::of(
        "max_retransmits",
        "none unless `createDataChannel` is asked otherwise",
        "https://www.w3.org/TR/webrtc/#dom-rtcdatachannelinit",
    ),
];

/// For state that is worth nothing when it is late.
const UNRELIABLE: &[Source] = &[
    SOURCES[0],
    SOURCES[1],
    SOURCES[2],
    SOURCES[3],
    Source::of(
        "ordered",
        "a game's positions and object states go over unreliable channels",
        "https://www.rfc-editor.org/rfc/rfc8831#section-3.1 (U-C 1)",
    ),
    Source::of(
        "max_retransmits",
        "a game's positions and object states go over unreliable channels",
        "https://www.rfc-editor.org/rfc/rfc8831#section-3.1 (U-C 1)",
    ),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "webrtc-str0m-default",
        "WebRTC data channel by str0m, with its SCTP's timers: reliable, ordered",
        || checked(Settings::RELIABLE),
    )
    .of("webrtc-str0m", PresetKind::Default, SOURCES)
    .also(&["webrtc-str0m", "webrtc"]),
    Preset::new(
        "webrtc-str0m-game",
        "the same: nothing that would make it quicker can be set",
        || checked(Settings::RELIABLE),
    )
    .of("webrtc-str0m", PresetKind::Game, SOURCES),
    Preset::tuned("webrtc-str0m", "webrtc-str0m-tuned", || {
        tuned("webrtc-str0m")
    }),
    Preset::new(
        "webrtc-str0m-unreliable-default",
        "WebRTC data channel by str0m, unordered, nothing sent again",
        || checked(Settings::UNRELIABLE),
    )
    .of("webrtc-str0m-unreliable", PresetKind::Default, UNRELIABLE)
    .also(&["webrtc-str0m-unreliable", "webrtc-unreliable"]),
    Preset::new(
        "webrtc-str0m-unreliable-game",
        "the same: it is what browsers' games use",
        || checked(Settings::UNRELIABLE),
    )
    .of("webrtc-str0m-unreliable", PresetKind::Game, UNRELIABLE),
    Preset::tuned(
        "webrtc-str0m-unreliable",
        "webrtc-str0m-unreliable-tuned",
        || tuned("webrtc-str0m-unreliable"),
    ),
];
