//! WebRTC data channels, by `str0m`: ICE, DTLS and SCTP over one pair of
//! addresses, without SDP.
//!
//! What repeats and what does not: key shares, ICE credentials and the timers
//! of the handshake follow from the seed. Three things the libraries draw
//! from the operating system and cannot be told otherwise: SCTP's initial
//! numbers, the transaction numbers of STUN, and DTLS 1.2 puts the real time
//! into its greeting. All of them have a fixed size and are never looked at
//! but for equality or order. The one size that chance would vary, that of an
//! ECDSA signature, is held fixed. So the bytes differ from run to run, but
//! not when which packet of which size is sent, and nothing else reaches a
//! result; a test plays a seed again and again to hold it to that.
//!
//! Of SCTP as the library has it: the retransmission timer is never shorter
//! than 1 s, and every second packet is acknowledged, or after 200 ms. None
//! of it can be set.
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

use crate::catalogue::{Preset, checked};

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "webrtc",
        "WebRTC data channel as a browser makes it: reliable, ordered",
        || checked(Settings::RELIABLE),
    ),
    Preset::new(
        "webrtc-unreliable",
        "WebRTC data channel, unordered, nothing sent again",
        || checked(Settings::UNRELIABLE),
    ),
];
