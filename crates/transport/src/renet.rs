//! `renet`: the networking library of the Bevy world, with its
//! reliable-ordered or its unreliable channel.
//!
//! renet works in ticks. At each it sends acknowledgements, as long as any is
//! not acknowledged itself, which keeps both sides sending at every tick, and
//! what was not acknowledged within `resend_time`. That time does not follow
//! the round trip: at its default of 300 ms a lost message comes late on a
//! short path, and on one longer than 300 ms everything is sent twice. New
//! messages leave at the next tick, or with `flush_on_send` at once. There is
//! no congestion control but a bound on the bytes of each tick.
//!
//! renet leaves connecting, time-outs, replay protection and encryption to the
//! layer below, commonly netcode. Netcode draws its keys from the operating
//! system, so a thin layer of our own is in its place: a CRC-32 bound to the
//! connection and a 32-bit sequence number in front of each datagram, 8 B
//! where netcode has about 20; a greeting instead of netcode's handshake; and
//! netcode's keep-alive and time-out. *The wire is not encrypted.*
//!
//! Both sides are a `RenetClient`, which is also what a `RenetServer` keeps
//! for each connection. Its maps are of the kind that iterates in a random
//! order, but it never iterates over more than one entry here; the suite holds
//! it to the same bytes from the same seed.
//!
//! A channel whose memory is full because nobody reads it ends the
//! connection, as renet does. Damage that UDP's own checksum lets pass is
//! caught by the CRC, save for one case in 2^32.

mod endpoint;
mod reading;

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use self::endpoint::{ENVELOPE_BYTES, Renet};
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::integrity::Integrity;
use crate::transport::within;
use crate::tuned::tuned;
use crate::{
    BadSetting, Encapsulation, HeadOfLine, Offer, PEER_TIMEOUT, Pair, PeerTimeout, Transport,
    TransportProperties, Tunable,
};

/// How renet is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The kind of channel that messages travel on.
    pub channel: Channel,
    /// How often renet is updated, which is when it sends again; 1 ms to 1 s.
    pub tick: Span,
    /// Whether a message leaves at once instead of at the next tick.
    pub flush_on_send: bool,
    /// How long an acknowledgement is waited for until a message is sent
    /// again, from tick to tick: one shorter than `tick` has it sent again at each;
    /// 1 ms to 60 s. Without effect on the unreliable channel.
    pub resend_time: Span,
    /// Most bytes of messages that leave at one tick or flush; 1200 B to
    /// 1 GB. Unreliable messages beyond it are dropped.
    pub available_bytes_per_tick: Size,
    /// Most bytes of messages that a channel holds on either side; 64 KiB to
    /// 1 GB.
    pub channel_memory: Size,
    /// The largest message; 1200 B to 32 MiB, and no more than half of
    /// `channel_memory`. The unreliable channel takes none larger than
    /// `available_bytes_per_tick` either.
    pub max_message: Size,
    /// How long nothing may be sent until a sign of life is; 1 ms to 60 s.
    pub keep_alive: Span,
    /// How long nothing may arrive until the link is dead; 1 ms to 1 h.
    pub timeout: Span,
}

/// The kinds of channel that are of use to a game's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// Everything arrives, in order.
    ReliableOrdered,
    /// Sent once, in any order.
    Unreliable,
}

impl Settings {
    /// renet's defaults for its reliable-ordered channel, at 62.5 ticks each
    /// second, with messages sent at once; netcode's keep-alive (250 ms). A silent
    /// peer is kept as long as any transport keeps one, where netcode's examples have
    /// 15 s.
    pub const RELIABLE: Self = Self {
        channel: Channel::ReliableOrdered,
        tick: Span::from_millis(16),
        flush_on_send: true,
        resend_time: Span::from_millis(300),
        available_bytes_per_tick: Size(60_000),
        channel_memory: Size(5 << 20),
        max_message: Size(1 << 20),
        keep_alive: Span::from_millis(250),
        timeout: PEER_TIMEOUT,
    };

    /// Everything unacknowledged again at every tick, as renet's own demonstration
    /// has the channels of a player's input: it says `Duration::ZERO`, which is less
    /// than a tick just as well.
    pub const EACH_TICK: Self = Self {
        resend_time: Span::from_millis(1),
        ..Self::RELIABLE
    };

    /// The defaults for its unreliable channel.
    pub const UNRELIABLE: Self = Self {
        channel: Channel::Unreliable,
        ..Self::RELIABLE
    };
}

/// renet's own values, by its read-me.
const SOURCES: &[Source] = &[
    Source::library(
        "the default channels, with a resend time of 300 ms",
        "https://github.com/lucaspoffo/renet/blob/master/README.md",
    ),
    Source::lab("tick", "the application's: 62.5 updates a second"),
    Source::lab("flush_on_send", "packets are asked for after each message"),
    Source::lab("keep_alive", "netcode's, which is left out"),
    Source::lab("max_message", "what the peer may announce"),
    Source::equal("timeout"),
];

/// renet's demonstration of a game, by its author.
const GAME: &[Source] = &[
    SOURCES[0],
    SOURCES[1],
    SOURCES[2],
    SOURCES[3],
    SOURCES[4],
    SOURCES[5],
    Source::of(
        "resend_time",
        "a player's input and commands: resend_time: Duration::ZERO",
        "https://github.com/lucaspoffo/renet/blob/master/demo_bevy/src/lib.rs",
    ),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "renet-default",
        "renet, reliable ordered channel, its default resend time of 300 ms",
        || checked(Settings::RELIABLE),
    )
    .of("renet", PresetKind::Default, SOURCES)
    .also(&["renet"]),
    Preset::new(
        "renet-game",
        "renet, reliable ordered channel, sent again at every tick as its demonstration sends input",
        || checked(Settings::EACH_TICK),
    )
    .of("renet", PresetKind::Game, GAME),
    Preset::tuned("renet", "renet-tuned", || tuned("renet")),
    Preset::new("renet-unreliable-default", "renet, unreliable channel", || {
        checked(Settings::UNRELIABLE)
    })
    .of("renet-unreliable", PresetKind::Default, SOURCES)
    .also(&["renet-unreliable"]),
    Preset::new(
        "renet-unreliable-game",
        "the same: its demonstration sends the world's state so",
        || checked(Settings::UNRELIABLE),
    )
    .of("renet-unreliable", PresetKind::Game, SOURCES),
    Preset::tuned("renet-unreliable", "renet-unreliable-tuned", || {
        tuned("renet-unreliable")
    }),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "renet";
    const LIBRARY: &'static str = "renet 2.0.1";
    const TUNABLES: &'static [Tunable] = &[
        Tunable::millis("tick", 5, 100),
        Tunable::flag("flush_on_send"),
        Tunable::millis("resend_time", 20, 1000),
        Tunable::bytes("available_bytes_per_tick", 1200, 60_000),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        let (shortest, minute) = (Span::from_millis(1), Span::from_millis(60_000));
        let hour = Span::from_millis(3_600_000);
        let memory = self.channel_memory.bytes();
        within("tick", self.tick, shortest..=Span::from_millis(1000))?;
        within("resend_time", self.resend_time, shortest..=minute)?;
        within(
            "available_bytes_per_tick",
            self.available_bytes_per_tick.bytes(),
            1200..=1_000_000_000,
        )?;
        within("channel_memory", memory, 64 << 10..=1_000_000_000)?;
        within(
            "max_message",
            self.max_message.bytes(),
            1200..=(memory / 2).min(32 << 20),
        )?;
        within("keep_alive", self.keep_alive, shortest..=minute)?;
        within("timeout", self.timeout, shortest..=hour)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    fn properties(&self) -> TransportProperties {
        let reliable = self.channel == Channel::ReliableOrdered;
        // Kind, packet number, channel, count and length; a reliable message
        // has its number as well. Numbers grow with the connection; these
        // are their sizes after the first few minutes.
        let packet_bytes = 1 + 4 + 1 + 2 + 2 + if reliable { 2 } else { 0 };
        let below_bytes = ENVELOPE_BYTES as u32 + self.encapsulation().header_bytes();
        TransportProperties {
            reliable,
            ordered: reliable,
            head_of_line: HeadOfLine::of(reliable, reliable),
            encrypted: false,
            // The buffer in which renet puts its packets together.
            mtu_bytes: 1400 + below_bytes,
            header_bytes: packet_bytes + below_bytes,
            acks: format!("every {}, in a datagram of their own", self.tick),
            varies: String::new(),
            late_answer: "nothing: acknowledgements never share a datagram".to_owned(),
            congestion_control: if reliable {
                format!("none; resends every {}", self.resend_time.max(self.tick))
            } else {
                "none".to_owned()
            },
            peer_timeout: PeerTimeout::After(self.timeout.0),
            fixed: "resends by a fixed time whatever the round trip; netcode's encryption is left \
                    out"
            .to_owned(),
        }
    }

    /// Beside a reliable channel there is an unreliable one.
    fn offer(&self) -> Offer {
        match self.channel {
            Channel::ReliableOrdered => Offer::Channels,
            Channel::Unreliable => Offer::Datagrams,
        }
    }

    fn largest_message_bytes(&self) -> usize {
        let largest = match self.channel {
            Channel::ReliableOrdered => self.max_message.bytes(),
            Channel::Unreliable => {
                let per_tick = self.available_bytes_per_tick.bytes();
                self.max_message.bytes().min(per_tick)
            }
        };
        largest as usize
    }

    fn dead_link_after(&self) -> Option<Duration> {
        Some(self.timeout.0)
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        let (up, down) = Integrity::both_directions(seed);
        Pair {
            client: Box::new(Renet::client(self, (up, down), start)),
            server: Box::new(Renet::server(self, (down, up), start)),
        }
    }
}
