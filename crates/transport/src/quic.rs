//! QUIC, by `quinn-proto`: messages on one ordered stream, on a stream each,
//! or as unreliable datagrams.
//!
//! A QUIC handshake is full of randomness: key shares, connection IDs, the
//! packet numbers that are skipped. Here all of it comes from the seed, the
//! certificate is always the same one with an Ed25519 key (whose signatures
//! need no randomness), and no clock is asked. So every datagram of a
//! connection, the handshake included, repeats byte for byte, and a test
//! holds it to that. The one thing in the library that draws from the
//! operating system and cannot be told otherwise is its BBR, for which
//! reason [`CongestionControl`] does not offer it.
//!
//! - `settings`: what can be chosen, the presets, what is promised.
//! - `tls`: rustls, told to draw from the seed.
//! - `cubic`: congestion control, the same on every machine.
//! - `wiring`: settings and seed to the library's configuration.
//! - `carriage`: how messages become streams or datagrams.
//! - `endpoint`: the connection behind [`Endpoint`](crate::Endpoint).

mod carriage;
mod cubic;
mod endpoint;
mod settings;
mod tls;
mod wiring;

pub use settings::{AckFrequency, Carriage, CongestionControl, DatagramOverflow, Settings};

use crate::catalogue::{Preset, checked};

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "quic",
        "QUIC, every message on the same stream: reliable, ordered",
        || checked(Settings::ONE_STREAM),
    ),
    Preset::new(
        "quic-streams",
        "QUIC, a stream for each message: reliable, none waits for another",
        || checked(Settings::STREAM_EACH),
    ),
    Preset::new(
        "quic-datagram",
        "QUIC, unreliable datagrams, under congestion control all the same",
        || checked(Settings::DATAGRAM),
    ),
];
