//! `udp-fec`: plain UDP with forward error correction. Every message leaves at
//! once in a datagram of its own; now and then parity datagrams follow, from
//! which as many lost messages of their group can be computed as there are of
//! them. Loss costs no round trip, and less than copies of everything do.
//!
//! All datagrams begin with a CRC-32 bound to the connection and a byte that says
//! what follows (`wire`). A message carries its number. A parity datagram says
//! which messages it is for, so a group may end at any time: when it is full, or
//! when its first message has waited for `time_limit`. Messages of different size
//! are filled up with zeros for the computation, never on the wire. The parity of
//! a group of one is the message itself.
//!
//! What is computed is an exclusive or where there is never more than one parity
//! datagram for a group, and a Reed-Solomon code otherwise.
//!
//! With `every` below `data` groups overlap: parity leaves every few messages for
//! the last `data`, so what it repairs is repaired sooner, and what one group
//! cannot repair another may. With `interleave` neighbouring messages belong to
//! different groups, and with `parity_delay` parity leaves some time after its
//! group: both are for losses that come in bursts.
//!
//! There is no handshake and no keep-alive, so a dead link is never noticed. Only
//! with `adaptive` does a receiver answer: it reports now and then how many
//! datagrams were lost on their way, and the sender makes as much parity as that
//! asks for.
//!
//! Damage that UDP's own checksum lets pass is caught by the CRC, save for one
//! case in 2^32.

mod endpoint;
mod history;
mod loss;
mod receiver;
mod sender;
mod wire;

use std::time::Duration;

use lagometer_units::{Share, Size, Span, Time};
use serde::{Deserialize, Serialize};

use self::endpoint::UdpFec;
use self::wire::{MESSAGE_HEADER_BYTES, PARITY_HEADER_BYTES};
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::integrity::Integrity;
use crate::plain_udp;
use crate::transport::within;
use crate::tuned::tuned;
use crate::{
    BadSetting, Encapsulation, OWN_LIBRARY, Pair, Transport, TransportProperties, Tunable,
};

/// How parity is made of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Messages of a full group; 1 to 64.
    pub data: u8,
    /// Parity datagrams for each group, full or not: as many of its datagrams may
    /// be lost. 0 to 16; 1 is an exclusive or. With `adaptive`, the least.
    pub parity: u8,
    /// Messages after which parity leaves; 1 to 64. From `data` on groups follow
    /// each other; below they overlap.
    pub every: u8,
    /// Groups that take turns, message by message; 1 to 8. A burst of so many
    /// lost messages costs each group one.
    pub interleave: u8,
    /// How long a message waits at most until parity leaves that covers it, its
    /// group full or not; 1 ms to 10 s.
    pub time_limit: Span,
    /// How long parity is held back after its group; 0 ms to 10 s. Above the
    /// length of the bursts that the path loses, parity finds the burst over.
    pub parity_delay: Span,
    /// Makes as much parity as the measured loss asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<Adaptive>,
    /// Largest UDP payload that is made, our headers of 9 bytes (of parity, 13)
    /// included; 64 B to 65507 B.
    pub max_datagram: Size,
    /// Most bytes of datagrams that wait to leave, of parity held back, of
    /// messages that wait to be read, and of messages and of parity kept to
    /// compute others from, each; 1 KiB to 1 GB. A full receive buffer drops what
    /// arrives, as a socket's does.
    pub buffer: Size,
}

/// How parity follows the loss that the receiver reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// Most parity datagrams for a group; 1 to 16. It is never less than `parity`.
    pub parity_most: u8,
    /// Share of messages that may stay lost, were each datagram lost by itself:
    /// as little parity is made as keeps to it. Where losses come in bursts more
    /// stay lost.
    pub residual_loss: Share,
    /// Least time between two reports of the receiver; 10 ms to 60 s. Reports are
    /// only made where messages come.
    pub report_interval: Span,
}

impl Default for Adaptive {
    /// Up to three parity datagrams, so that one message in a thousand stays lost;
    /// a report a second.
    fn default() -> Self {
        Self {
            parity_most: 3,
            residual_loss: Share::from_fraction(0.001).unwrap_or(Share::NONE),
            report_interval: Span::from_millis(1_000),
        }
    }
}

impl Settings {
    /// Groups of two messages that overlap, one parity datagram after each
    /// message, datagrams up to 1400 B and the default socket buffer of Linux. At
    /// 20 to 60 messages a second a lost one is repaired by the next datagram or
    /// the one after that.
    pub const OVERLAPPING: Self = Self {
        data: 2,
        parity: 1,
        every: 1,
        interleave: 1,
        time_limit: Span::from_millis(60),
        parity_delay: Span::ZERO,
        adaptive: None,
        max_datagram: Size(1400),
        buffer: plain_udp::BUFFER,
    };

    /// After each second message one to three parity datagrams for the last four,
    /// as the loss asks for of which one message in a thousand may remain.
    #[must_use]
    pub fn adaptive() -> Self {
        Self {
            data: 4,
            every: 2,
            time_limit: Span::from_millis(120),
            adaptive: Some(Adaptive::default()),
            ..Self::OVERLAPPING
        }
    }

    /// The most parity datagrams that a group can have.
    fn parity_most(&self) -> u8 {
        let adaptive = self.adaptive.as_ref();
        let most = adaptive.map_or(0, |adaptive| adaptive.parity_most);
        most.max(self.parity)
    }

    /// Messages after which parity leaves: at the latest when the group is full.
    fn effective_every(&self) -> u8 {
        self.every.min(self.data)
    }

    /// Messages from the first to the last of a full group.
    fn group_span(&self) -> usize {
        usize::from(self.data) * usize::from(self.interleave)
    }
}

/// This transport is the lab's own, and so is its documentation.
const SOURCES: &[Source] = &[Source::library(
    "the exclusive or of the last two messages after each",
    "docs/transports.md",
)];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "udp-fec-default",
        "forward error correction: after each message the exclusive or of the last two",
        || checked(Settings::OVERLAPPING),
    )
    .of("udp-fec", PresetKind::Default, SOURCES)
    .also(&["udp-fec"]),
    Preset::new("udp-fec-game", "the same: it is made for games", || {
        checked(Settings::OVERLAPPING)
    })
    .of("udp-fec", PresetKind::Game, SOURCES),
    Preset::tuned("udp-fec", "udp-fec-tuned", || tuned("udp-fec")),
    Preset::new(
        "udp-fec-adaptive",
        "forward error correction: one to three parity datagrams after each second message, by loss",
        || checked(Settings::adaptive()),
    ),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "udp-fec";
    const LIBRARY: &'static str = OWN_LIBRARY;
    const TUNABLES: &'static [Tunable] = &[
        Tunable::integer("data", 1, 16),
        Tunable::integer("parity", 0, 6),
        Tunable::integer("every", 1, 16),
        Tunable::integer("interleave", 1, 4),
        Tunable::millis("time_limit", 10, 500),
        Tunable::millis("parity_delay", 1, 300),
        Tunable::integer("adaptive.parity_most", 1, 8),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        within("data", self.data, 1..=64)?;
        within("parity", self.parity, 0..=16)?;
        within("every", self.every, 1..=64)?;
        within("interleave", self.interleave, 1..=8)?;
        let (least, most) = (Span::from_millis(1), Span::from_millis(10_000));
        within("time_limit", self.time_limit, least..=most)?;
        within("parity_delay", self.parity_delay, Span::ZERO..=most)?;
        if let Some(adaptive) = &self.adaptive {
            within("adaptive.parity_most", adaptive.parity_most, 1..=16)?;
            within(
                "adaptive.report_interval",
                adaptive.report_interval,
                Span::from_millis(10)..=Span::from_millis(60_000),
            )?;
        }
        plain_udp::check_sizes(self.max_datagram, self.buffer)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    /// The header is that of the message itself; parity comes on top.
    fn properties(&self) -> TransportProperties {
        let acks = match &self.adaptive {
            None => "none".to_owned(),
            Some(adaptive) => format!(
                "none; what was lost is reported every {}",
                adaptive.report_interval
            ),
        };
        TransportProperties {
            acks,
            ..plain_udp::properties(
                self.max_datagram,
                MESSAGE_HEADER_BYTES,
                format!("none; {}", self.overhead()),
            )
        }
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_datagram.bytes() as usize - PARITY_HEADER_BYTES
    }

    fn dead_link_after(&self) -> Option<Duration> {
        None
    }

    fn pair(&self, seed: u64, _start: Time) -> Pair {
        let (up, down) = Integrity::both_directions(seed);
        Pair {
            client: Box::new(UdpFec::new(self, up, down)),
            server: Box::new(UdpFec::new(self, down, up)),
        }
    }
}

impl Settings {
    /// What parity comes on top, in a few words.
    fn overhead(&self) -> String {
        let most = self.parity_most();
        let parity = if most == self.parity {
            most.to_string()
        } else {
            format!("{} to {most}", self.parity)
        };
        format!(
            "{parity} parity for every {} messages",
            self.effective_every()
        )
    }
}

#[cfg(test)]
mod tests;
