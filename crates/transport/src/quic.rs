//! QUIC, by `quinn-proto`: messages on one ordered stream, on a stream each,
//! or as unreliable datagrams.
//!
//! A QUIC handshake is full of randomness: key shares, connection IDs, the
//! packet numbers that are skipped. Here all of it comes from the seed, the
//! certificate is always the same one with an Ed25519 key (whose signatures
//! need no randomness), and no clock is asked. So every datagram of a
//! connection, the handshake included, repeats byte for byte, and a test
//! holds it to that. The one thing in the library that draws from the
//! operating system and cannot be configured otherwise is its BBR, for which
//! reason [`CongestionControl`] does not offer it.
//!
//! - `settings`: what can be chosen, the presets, what is promised.
//! - `tls`: rustls, configured to draw from the seed.
//! - `cubic`: congestion control, the same on every machine.
//! - `wiring`: settings and seed to the library's configuration.
//! - `mapping`: how messages become streams or datagrams.
//! - `endpoint`: the connection behind [`Endpoint`](crate::Endpoint).

mod cubic;
mod endpoint;
mod mapping;
mod settings;
mod tls;
mod wiring;

pub use settings::{AckFrequency, CongestionControl, DatagramOverflow, MessageMapping, Settings};

use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::tuned::tuned;

/// The library's own values. Which of the three a message takes is as its maintainer
/// explains it to makers of games (TimonPost/laminar#37).
const SOURCES: &[Source] = &[
    Source::library(
        "a connection with the configuration it has by default",
        "https://docs.rs/quinn-proto/0.11.19/quinn_proto/struct.TransportConfig.html",
    ),
    Source::library(
        "ordered: a single stream; else a stream for every message, or a datagram",
        "https://github.com/TimonPost/laminar/issues/37",
    ),
    Source::equal("max_idle_timeout"),
    Source::lab(
        "max_streams",
        "the library's 100 refuse after 5 s of outage",
    ),
    Source::lab("receive_window", "the library has no bound"),
    Source::lab("max_message", "what the peer may announce"),
];

/// The same with what the library offers against late acknowledgements.
const GAME: &[Source] = &[
    SOURCES[0],
    SOURCES[1],
    SOURCES[2],
    SOURCES[3],
    SOURCES[4],
    SOURCES[5],
    Source::of(
        "ack_frequency",
        "a threshold of 0 has the receiver acknowledge every packet at once, so that losses show \
         sooner",
        "https://docs.rs/quinn-proto/0.11.19/quinn_proto/struct.AckFrequencyConfig.html",
    ),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "quic-default",
        "QUIC, every message on the same stream: reliable, ordered",
        || checked(Settings::ONE_STREAM),
    )
    .of("quic", PresetKind::Default, SOURCES)
    .also(&["quic"]),
    Preset::new(
        "quic-game",
        "the same, every packet acknowledged at once",
        || checked(Settings::ONE_STREAM.acknowledged_at_once()),
    )
    .of("quic", PresetKind::Game, GAME),
    Preset::tuned("quic", "quic-tuned", || tuned("quic")),
    Preset::new(
        "quic-streams-default",
        "QUIC, a stream for each message: reliable, none waits for another",
        || checked(Settings::STREAM_EACH),
    )
    .of("quic-streams", PresetKind::Default, SOURCES)
    .also(&["quic-streams"]),
    Preset::new(
        "quic-streams-game",
        "the same, every packet acknowledged at once",
        || checked(Settings::STREAM_EACH.acknowledged_at_once()),
    )
    .of("quic-streams", PresetKind::Game, GAME),
    Preset::tuned("quic-streams", "quic-streams-tuned", || {
        tuned("quic-streams")
    }),
    Preset::new(
        "quic-datagram-default",
        "QUIC, unreliable datagrams, under congestion control all the same",
        || checked(Settings::DATAGRAM),
    )
    .of("quic-datagram", PresetKind::Default, SOURCES)
    .also(&["quic-datagram"]),
    Preset::new(
        "quic-datagram-game",
        "the same, every packet acknowledged at once",
        || checked(Settings::DATAGRAM.acknowledged_at_once()),
    )
    .of("quic-datagram", PresetKind::Game, GAME),
    Preset::tuned("quic-datagram", "quic-datagram-tuned", || {
        tuned("quic-datagram")
    }),
];
