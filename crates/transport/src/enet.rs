//! `enet`: the reliable UDP library of a hundred shooters, by way of
//! `rusty_enet`, ENet 1.3.18 transpiled from C.
//!
//! What a reader of its figures should know. Reliable packets are acknowledged
//! one by one and delivered in order; there is no fast retransmit, so loss is
//! noticed by the timer alone: RTT + 4 × variance from the first sending,
//! doubled with every further one, without floor or ceiling. Reliable data in
//! flight is bounded by a window of 4 to 64 KiB, scaled down by the *throttle*
//! when round trips grow; the throttle also drops unreliable packets at the
//! sender.
//!
//! Two habits of its timers cost more than the doubling itself. Only the
//! command sent longest ago is watched: once it has backed off to many seconds,
//! losses behind it wait as long. And as ENet comes, a command sent six times in
//! vain, the last time 5 s ago, ends the connection, however lively the rest of it
//! is; at 7 % loss each way that happens. The presets set both ends of that wait to
//! the time that every transport gives its peer, but for the one of 2015.
//!
//! An ENet application calls `enet_host_service` in a loop and ENet looks at
//! its timers only there. Here it is called with every message and datagram,
//! so both leave and are acknowledged at once, and whenever a timer is due,
//! rounded up to a multiple of `service_interval`: what an application sees
//! that waits so long in its call.
//!
//! Without `checksum`, damage that UDP's own checksum lets pass is delivered,
//! or is taken for any ENet command there is, even a goodbye.

mod host;
mod timers;
mod wire;

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use rusty_enet::consts::{
    HOST_DEFAULT_MTU, PEER_PACKET_THROTTLE_ACCELERATION, PEER_PACKET_THROTTLE_DECELERATION,
    PEER_PACKET_THROTTLE_INTERVAL, PEER_PING_INTERVAL, PEER_TIMEOUT_LIMIT, PEER_TIMEOUT_MAXIMUM,
    PEER_TIMEOUT_MINIMUM, PEER_WINDOW_SIZE_SCALE, PROTOCOL_MAXIMUM_MTU,
    PROTOCOL_MAXIMUM_WINDOW_SIZE, PROTOCOL_MINIMUM_MTU, PROTOCOL_MINIMUM_WINDOW_SIZE,
};
use serde::{Deserialize, Serialize};

use self::host::Enet;
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::transport::within;
use crate::tuned::tuned;
use crate::{
    BadSetting, Encapsulation, HeadOfLine, Offer, PEER_TIMEOUT, Pair, PeerTimeout, Transport,
    TransportProperties, Tunable,
};

/// How ENet is used. Rates are bytes per second as in ENet's own interface,
/// and 0 is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How messages are sent.
    pub packets: Packets,
    /// The client's `incomingBandwidth`. It bounds the server's window.
    pub client_in_bytes_per_s: u32,
    /// The client's `outgoingBandwidth`. It bounds the client's window.
    pub client_out_bytes_per_s: u32,
    /// The server's `incomingBandwidth`. It bounds the client's window.
    pub server_in_bytes_per_s: u32,
    /// The server's `outgoingBandwidth`. It bounds the server's window.
    pub server_out_bytes_per_s: u32,
    /// Largest datagram without its checksum, as UDP payload; 576 B to 4096 B.
    pub mtu: Size,
    /// Channels to open; 1 to 255. Messages travel on the first, and unreliable ones beside
    /// reliable ones on the second.
    pub channels: u8,
    /// Over how long the throttle takes the lowest RTT as its measure; 1 ms
    /// to 1 h.
    pub throttle_interval: Span,
    /// By how many 32nds a good RTT opens the throttle; 0 to 32.
    pub throttle_acceleration: u32,
    /// By how many 32nds a bad RTT closes the throttle; 0 to 32, and 0 is
    /// never.
    pub throttle_deceleration: u32,
    /// How long without an acknowledgement until a ping is sent; 1 ms to 1 h.
    pub ping_interval: Span,
    /// After how great a back-off the link may be dead; 1 to 2^30.
    pub timeout_limit: u32,
    /// How long without an acknowledgement until a link past `timeout_limit`
    /// is dead; 1 ms to 1 h.
    pub timeout_minimum: Span,
    /// How long without an acknowledgement until the link is dead in any
    /// case; 1 ms to 1 h.
    pub timeout_maximum: Span,
    /// Whether datagrams carry a CRC-32.
    pub checksum: bool,
    /// The grid on which timers are looked at; 1 ms to 1 s.
    pub service_interval: Span,
    /// Most bytes of messages that are taken and not yet acknowledged or
    /// sent; 1 KiB to 1 GB. ENet itself has no such bound.
    pub send_buffer: Size,
    /// Most bytes of messages that wait to be read; 1 KiB to 1 GB. When it is
    /// full, datagrams are dropped as by a socket nobody reads.
    pub receive_buffer: Size,
    /// The largest message; 1 KiB to 32 MiB.
    pub max_message: Size,
}

/// ENet's kinds of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packets {
    /// Acknowledged, sent again, delivered in order.
    Reliable,
    /// Sent once; dropped on arrival when a later one was there first. One
    /// too large for a datagram is sent reliably, as ENet does.
    Unreliable,
    /// Sent once, delivered in any order. One too large for a datagram is
    /// sent reliably, as ENet does.
    Unsequenced,
}

impl Settings {
    /// Reliable packets and ENet's defaults otherwise; no bandwidth limits,
    /// so the window is the largest ENet has, 64 KiB. A silent peer is kept as long
    /// as any transport keeps one, where ENet's `timeoutMinimum` is 5 s.
    pub const RELIABLE: Self = Self {
        packets: Packets::Reliable,
        client_in_bytes_per_s: 0,
        client_out_bytes_per_s: 0,
        server_in_bytes_per_s: 0,
        server_out_bytes_per_s: 0,
        mtu: Size(HOST_DEFAULT_MTU as u64),
        channels: 2,
        throttle_interval: Span::from_millis(PEER_PACKET_THROTTLE_INTERVAL as u64),
        throttle_acceleration: PEER_PACKET_THROTTLE_ACCELERATION,
        throttle_deceleration: PEER_PACKET_THROTTLE_DECELERATION,
        ping_interval: Span::from_millis(PEER_PING_INTERVAL as u64),
        timeout_limit: PEER_TIMEOUT_LIMIT,
        timeout_minimum: PEER_TIMEOUT,
        timeout_maximum: PEER_TIMEOUT,
        checksum: false,
        service_interval: Span::from_millis(1),
        send_buffer: Size(8 << 20),
        receive_buffer: Size(8 << 20),
        max_message: Size(1 << 20),
    };

    /// What a well-known benchmark of 2015 ran: the bandwidths of ENet's
    /// tutorial, those of a modem, times ten on the client's side. They make
    /// the window 4096 B each way, 8 messages of 500 B. Its client waited
    /// 2 ms in each service call, and its timeouts were ENet's own.
    pub const TUTORIAL: Self = Self {
        client_in_bytes_per_s: 72_000,
        client_out_bytes_per_s: 18_000,
        service_interval: Span::from_millis(2),
        timeout_minimum: Span::from_millis(PEER_TIMEOUT_MINIMUM as u64),
        timeout_maximum: Span::from_millis(PEER_TIMEOUT_MAXIMUM as u64),
        ..Self::RELIABLE
    };

    /// [`RELIABLE`](Self::RELIABLE) with a throttle that never closes.
    pub const NO_THROTTLE: Self = Self {
        throttle_deceleration: 0,
        ..Self::RELIABLE
    };

    /// Unreliable sequenced packets and ENet's defaults otherwise.
    pub const UNRELIABLE: Self = Self {
        packets: Packets::Unreliable,
        ..Self::RELIABLE
    };

    /// Reliable data ENet lets be in flight from one side to the other, in
    /// bytes, with the throttle open: the narrower of what both bandwidths
    /// allow (`enet_host_connect`, `enet_protocol_handle_bandwidth_limit`).
    const fn window_bytes(out_bytes_per_s: u32, in_bytes_per_s: u32) -> u32 {
        let bandwidth = match (out_bytes_per_s, in_bytes_per_s) {
            (0, 0) => return PROTOCOL_MAXIMUM_WINDOW_SIZE,
            (0, one) | (one, 0) => one,
            (a, b) if a < b => a,
            (_, b) => b,
        };
        let window = bandwidth / PEER_WINDOW_SIZE_SCALE * PROTOCOL_MINIMUM_WINDOW_SIZE;
        if window < PROTOCOL_MINIMUM_WINDOW_SIZE {
            PROTOCOL_MINIMUM_WINDOW_SIZE
        } else if window > PROTOCOL_MAXIMUM_WINDOW_SIZE {
            PROTOCOL_MAXIMUM_WINDOW_SIZE
        } else {
            window
        }
    }

    /// The most bytes of a message that one datagram carries; a longer one is
    /// cut into pieces of so many (`enet_peer_send`).
    const fn fragment_bytes(&self) -> usize {
        self.mtu.bytes() as usize - 4 - 24 - self.checksum_bytes() as usize
    }

    const fn checksum_bytes(&self) -> u32 {
        if self.checksum { 4 } else { 0 }
    }
}

/// Where ENet's presets come from. Who asks its maintainers for a game's settings is
/// answered that ENet is tuned for games as it is, and by its author that what is late
/// should be sent unreliably (lsalzman/enet#168).
const SOURCES: &[Source] = &[
    Source::library(
        "hosts without bandwidth limits, and otherwise as they are created",
        "https://github.com/lsalzman/enet/blob/master/docs/tutorial.dox",
    ),
    Source::equal("timeout_minimum"),
    Source::equal("timeout_maximum"),
    Source::lab(
        "service_interval",
        "enet_host_service is called when a timer is due",
    ),
    Source::lab("send_buffer", "ENet queues without end"),
    Source::lab("receive_buffer", "ENet's own bound is four times that"),
    Source::lab("max_message", "ENet's own bound is 32 MiB"),
];

/// The same for what its maintainers advise.
const GAME: &[Source] = &[
    Source::library(
        "tuned for fast-paced games by default; its author: use unreliable packets where you can",
        "https://github.com/lsalzman/enet/issues/168",
    ),
    SOURCES[1],
    SOURCES[2],
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "enet-default",
        "ENet, reliable packets, no bandwidth limits (64 KiB window)",
        || checked(Settings::RELIABLE),
    )
    .of("enet", PresetKind::Default, SOURCES)
    .also(&["enet"]),
    Preset::new(
        "enet-game",
        "the same: who asks for a game's settings is answered that it has them",
        || checked(Settings::RELIABLE),
    )
    .of("enet", PresetKind::Game, GAME),
    Preset::tuned("enet", "enet-tuned", || tuned("enet")),
    Preset::new(
        "enet-tutorial",
        "ENet with the tutorial's modem bandwidths times ten, as benchmarked in 2015: 4 KiB window",
        || checked(Settings::TUTORIAL),
    ),
    Preset::new(
        "enet-no-throttle",
        "ENet, reliable packets, with the throttle switched off",
        || checked(Settings::NO_THROTTLE),
    ),
    Preset::new(
        "enet-unreliable-default",
        "ENet, unreliable sequenced packets: the late are dropped, as are those the throttle picks",
        || checked(Settings::UNRELIABLE),
    )
    .of("enet-unreliable", PresetKind::Default, SOURCES)
    .also(&["enet-unreliable"]),
    Preset::new(
        "enet-unreliable-game",
        "the same: unreliable packets are what its author advises",
        || checked(Settings::UNRELIABLE),
    )
    .of("enet-unreliable", PresetKind::Game, GAME),
    Preset::tuned("enet-unreliable", "enet-unreliable-tuned", || {
        tuned("enet-unreliable")
    }),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "enet";
    const LIBRARY: &'static str = "rusty_enet 0.4.1";
    const TUNABLES: &'static [Tunable] = &[
        Tunable::bytes("mtu", 576, 1400),
        Tunable::millis("throttle_interval", 500, 60_000),
        Tunable::integer("throttle_acceleration", 0, 32),
        Tunable::integer("throttle_deceleration", 0, 32),
        Tunable::millis("ping_interval", 50, 2000),
        Tunable::flag("checksum"),
        Tunable::millis("service_interval", 1, 33),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        let (shortest, longest) = (Span::from_millis(1), Span::from_millis(3_600_000));
        let mtus = PROTOCOL_MINIMUM_MTU as u64..=PROTOCOL_MAXIMUM_MTU as u64;
        within("mtu", self.mtu.bytes(), mtus)?;
        within("channels", self.channels, 1..=255)?;
        within(
            "throttle_interval",
            self.throttle_interval,
            shortest..=longest,
        )?;
        within("throttle_acceleration", self.throttle_acceleration, 0..=32)?;
        within("throttle_deceleration", self.throttle_deceleration, 0..=32)?;
        within("ping_interval", self.ping_interval, shortest..=longest)?;
        within("timeout_limit", self.timeout_limit, 1..=1 << 30)?;
        within("timeout_minimum", self.timeout_minimum, shortest..=longest)?;
        within("timeout_maximum", self.timeout_maximum, shortest..=longest)?;
        within(
            "service_interval",
            self.service_interval,
            shortest..=Span::from_millis(1000),
        )?;
        within(
            "send_buffer",
            self.send_buffer.bytes(),
            1024..=1_000_000_000,
        )?;
        within(
            "receive_buffer",
            self.receive_buffer.bytes(),
            1024..=1_000_000_000,
        )?;
        within("max_message", self.max_message.bytes(), 1024..=32 << 20)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    fn properties(&self) -> TransportProperties {
        let up = Self::window_bytes(self.client_out_bytes_per_s, self.server_in_bytes_per_s);
        let down = Self::window_bytes(self.server_out_bytes_per_s, self.client_in_bytes_per_s);
        let throttle = if self.throttle_deceleration == 0 {
            "no throttle"
        } else {
            "RTT throttle"
        };
        let reliable = self.packets == Packets::Reliable;
        TransportProperties {
            reliable,
            ordered: self.packets != Packets::Unsequenced,
            head_of_line: HeadOfLine::of(reliable, reliable),
            encrypted: false,
            mtu_bytes: self.mtu.bytes() as u32
                + self.checksum_bytes()
                + self.encapsulation().header_bytes(),
            // A datagram starts with 4 bytes, or 2 where nothing in it is
            // reliable; the message's command has 6 or 8.
            header_bytes: 10 + self.checksum_bytes() + self.encapsulation().header_bytes(),
            acks: if reliable {
                "each packet, at once".to_owned()
            } else {
                "pings only".to_owned()
            },
            varies: String::new(),
            late_answer: "nothing: acknowledgements leave before the answer".to_owned(),
            congestion_control: if reliable {
                format!("window {up} B up, {down} B down; {throttle}")
            } else {
                format!("{throttle}, drops at the sender")
            },
            peer_timeout: PeerTimeout::After(self.timeout_minimum.0.min(self.timeout_maximum.0)),
            fixed: "timeouts double without limit, no fast resend; asks whether the peer is gone \
                    only when a resend is due"
                .to_owned(),
        }
    }

    /// A channel for reliable packets and one for unreliable ones.
    fn offer(&self) -> Offer {
        match self.packets {
            Packets::Reliable if self.channels > 1 => Offer::Channels,
            packets => Offer::of(packets == Packets::Reliable),
        }
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_message.bytes() as usize
    }

    /// Whether the link is dead is asked only when a resend is due, and
    /// resends come at doubling intervals; hence twice the maximum.
    fn dead_link_after(&self) -> Option<Duration> {
        Some(2 * self.timeout_maximum.0 + self.ping_interval.0)
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        Pair {
            client: Box::new(Enet::client(self, seed, start)),
            server: Box::new(Enet::server(self, seed, start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tutorial_bandwidths_leave_eight_messages_in_flight() {
        let properties = Settings::TUTORIAL.properties();
        assert!(
            properties
                .congestion_control
                .starts_with("window 4096 B up, 4096 B down"),
            "{}",
            properties.congestion_control
        );
    }

    #[test]
    fn the_window_is_the_narrower_of_both_ends() {
        assert_eq!(Settings::window_bytes(0, 0), 65_536);
        assert_eq!(Settings::window_bytes(0, 200_000), 3 * 4096);
        assert_eq!(Settings::window_bytes(150_000, 200_000), 2 * 4096);
        assert_eq!(Settings::window_bytes(u32::MAX, 0), 65_536);
    }
}
