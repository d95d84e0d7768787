//! What can be chosen about QUIC, the presets, and what each promises.

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use super::endpoint::QuicEndpoint;
use super::wiring::qlog;
use crate::transport::within;
use crate::{
    BadSetting, Encapsulation, End, HeadOfLine, LogWriter, Offer, PEER_TIMEOUT, Pair, PeerTimeout,
    Transport, TransportProperties, Tunable,
};

/// Everything that can be chosen about a QUIC connection. Both ends use the
/// same. The presets have the library's own values where nothing else is
/// said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How messages are carried.
    pub mapping: MessageMapping,
    /// Congestion control.
    pub congestion_control: CongestionControl,
    /// Round-trip time assumed before any was measured; 1 ms to 60 s. The
    /// presets: 333 ms (RFC 9002, section 6.2.2).
    pub initial_rtt: Span,
    /// Silence after which the connection is dead; 0 means never. The
    /// presets: 30 s (RFC 9308, section 3.2).
    pub max_idle_timeout: Span,
    /// Silence after which a packet is sent only to keep the connection
    /// alive; 0 means none is. The presets: none.
    pub keep_alive: Span,
    /// What is asked of the peer's acknowledgements by the ACK frequency
    /// extension. The presets: nothing; the peer then acknowledges every
    /// second packet, or after 25 ms.
    pub ack_frequency: Option<AckFrequency>,
    /// Packets acknowledged after a missing one before that counts as lost;
    /// 1 to 1000. The presets: 3 (RFC 9002, section 6.1.1).
    pub packet_threshold: u32,
    /// Round-trip times after which a packet sent before an acknowledged one
    /// counts as lost; 1 to 100. The presets: 1.125 (RFC 9002, section 6.1.2).
    pub time_threshold: f32,
    /// Largest UDP payload sent before anything is known of the path, in
    /// bytes; 1200 to 65527. The presets: 1200.
    pub initial_mtu: u16,
    /// Whether larger payloads are tried out. The presets: yes.
    pub mtu_discovery: bool,
    /// Largest UDP payload tried out, in bytes; 1200 to 65527. The presets:
    /// 1452.
    pub max_mtu: u16,
    /// Bytes the peer may send on one stream beyond what was read. 1 B to
    /// 1 GB. The presets: 1.25 MB.
    pub stream_receive_window: Size,
    /// Bytes the peer may send on all streams beyond what was read. 1 B to
    /// 1 GB. The presets: 16 MB (the library has no limit of its own).
    pub receive_window: Size,
    /// Bytes that may be sent and not yet acknowledged, or waiting to be
    /// sent; 1 B to 1 GB. The presets: 10 MB.
    pub send_window: Size,
    /// Streams that may be open at once, for `stream-each`; 1 to 1 000 000.
    /// The presets: 1024, for the library's 100 would refuse messages after
    /// five seconds of outage at 20 a second.
    pub max_streams: u32,
    /// Bytes of datagrams that may wait to be sent, with some 32 bytes for
    /// each; 2 KB to 1 GB. The presets: 1 MiB.
    pub datagram_send_buffer: Size,
    /// What happens when they are too many. The presets: `drop-oldest`.
    pub datagram_overflow: DatagramOverflow,
    /// Bytes of datagrams that may wait to be read; the oldest are dropped
    /// for newer ones. 2 KB to 1 GB. The presets: 1.25 MB.
    pub datagram_receive_buffer: Size,
    /// Largest message, for the mappings on streams; larger ones are
    /// refused, and a peer that announces one is disconnected. 1 B to
    /// 1 GB. The presets: 1 MB.
    pub max_message: Size,
}

/// How messages are mapped onto QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageMapping {
    /// One stream in each direction for the life of the connection, every
    /// message behind its length (32 bits, little-endian): reliable and
    /// ordered.
    #[default]
    OneStream,
    /// A stream of its own for every message: reliable, and no message waits
    /// for another.
    StreamEach,
    /// A DATAGRAM frame (RFC 9221) for every message: neither reliable nor
    /// ordered, but under congestion control.
    Datagram,
}

/// Which algorithm decides how much may be in flight.
///
/// The library's BBR is not among them: it starts its probing at a phase
/// drawn from the operating system, so that no run with it would repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 9002, section 7.
    NewReno,
}

/// What is asked of the peer's acknowledgements
/// (draft-ietf-quic-ack-frequency-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AckFrequency {
    /// Packets that may arrive without being acknowledged at once; 0 asks
    /// for an acknowledgement of every packet. Default: 1.
    pub ack_eliciting_threshold: u32,
    /// Longest an acknowledgement may be held back; the library keeps it
    /// between the peer's minimum and max(25 ms, RTT). Default: 25 ms.
    pub max_ack_delay: Span,
    /// Packets out of order before an acknowledgement is sent at once; 0
    /// means never. Default: 2.
    pub reordering_threshold: u32,
}

/// What happens to datagrams that exceed the buffer for sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatagramOverflow {
    /// The oldest that wait make room: a game's newest state is worth most.
    #[default]
    DropOldest,
    /// The newest is refused.
    Refuse,
}

impl Settings {
    /// Every message on the same stream.
    pub const ONE_STREAM: Self = Self {
        mapping: MessageMapping::OneStream,
        congestion_control: CongestionControl::Cubic,
        initial_rtt: Span::from_millis(333),
        max_idle_timeout: PEER_TIMEOUT,
        keep_alive: Span::ZERO,
        ack_frequency: None,
        packet_threshold: 3,
        time_threshold: 9.0 / 8.0,
        initial_mtu: 1200,
        mtu_discovery: true,
        max_mtu: 1452,
        stream_receive_window: Size(1_250_000),
        receive_window: Size(16_000_000),
        send_window: Size(10_000_000),
        max_streams: 1024,
        datagram_send_buffer: Size(1024 * 1024),
        datagram_overflow: DatagramOverflow::DropOldest,
        datagram_receive_buffer: Size(1_250_000),
        max_message: Size(1_000_000),
    };

    /// A stream of its own for every message.
    pub const STREAM_EACH: Self = Self {
        mapping: MessageMapping::StreamEach,
        ..Self::ONE_STREAM
    };

    /// Unreliable datagrams.
    pub const DATAGRAM: Self = Self {
        mapping: MessageMapping::Datagram,
        ..Self::ONE_STREAM
    };

    /// The same with every packet acknowledged at once.
    pub(super) const fn acknowledged_at_once(self) -> Self {
        Self {
            ack_frequency: Some(AckFrequency {
                ack_eliciting_threshold: 0,
                max_ack_delay: Span::from_millis(25),
                reordering_threshold: 2,
            }),
            ..self
        }
    }
}

impl Transport for Settings {
    const TRANSPORT: &'static str = "quic";
    const LIBRARY: &'static str = "quinn-proto 0.11.19";
    const FORMER_SETTINGS: &'static [(&'static str, &'static str)] = &[("carriage", "mapping")];
    const HAS_QLOG: bool = true;

    const TUNABLES: &'static [Tunable] = &[
        Tunable::choice("congestion_control", &["cubic", "new-reno"]),
        Tunable::millis("initial_rtt", 20, 500),
        Tunable::integer("ack_frequency.ack_eliciting_threshold", 0, 8),
        Tunable::millis("ack_frequency.max_ack_delay", 1, 50),
        Tunable::integer("ack_frequency.reordering_threshold", 0, 4),
        Tunable::integer("packet_threshold", 1, 6),
        Tunable::number("time_threshold", 1.0, 2.0),
        Tunable::flag("mtu_discovery"),
        Tunable::bytes("datagram_send_buffer", 2000, 1 << 20),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        let buffer = 2_000..=1_000_000_000;
        let window = 1..=1_000_000_000;
        within("initial_rtt", self.initial_rtt, MIN_RTT..=MAX_RTT)?;
        within("packet_threshold", self.packet_threshold, 1..=1000)?;
        within("time_threshold", self.time_threshold, 1.0..=100.0)?;
        within("initial_mtu", self.initial_mtu, 1200..=65_527)?;
        within("max_mtu", self.max_mtu, 1200..=65_527)?;
        within(
            "stream_receive_window",
            self.stream_receive_window.0,
            window.clone(),
        )?;
        within("receive_window", self.receive_window.0, window.clone())?;
        within("send_window", self.send_window.0, window.clone())?;
        within("max_streams", self.max_streams, 1..=1_000_000)?;
        within(
            "datagram_send_buffer",
            self.datagram_send_buffer.0,
            buffer.clone(),
        )?;
        within(
            "datagram_receive_buffer",
            self.datagram_receive_buffer.0,
            buffer,
        )?;
        within("max_message", self.max_message.0, window)?;
        if self.max_idle_timeout != Span::ZERO && self.keep_alive >= self.max_idle_timeout {
            return Err(BadSetting::new(
                "keep_alive",
                format!(
                    "{} is too long; expected less than max_idle_timeout, {}",
                    self.keep_alive, self.max_idle_timeout
                ),
            ));
        }
        Ok(())
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    /// The header bytes are those of an established connection: a short
    /// header with an 8-byte connection ID and a 1-byte packet number, the
    /// frame's own header as it is after the first hundred messages, and the
    /// 16 bytes of the authentication tag; an acknowledgement travelling
    /// along comes on top.
    fn properties(&self) -> TransportProperties {
        // Flags, connection ID, packet number; the tag.
        let packet = 1 + 8 + 1 + 16;
        let frame = match self.mapping {
            // Type, stream ID, 4-byte offset, 2-byte length; the message's
            // own length.
            MessageMapping::OneStream => 1 + 1 + 4 + 2 + 4,
            // Type, 2-byte stream ID, 2-byte length.
            MessageMapping::StreamEach => 1 + 2 + 2,
            // Type, 2-byte length.
            MessageMapping::Datagram => 1 + 2,
        };
        let acks = self.ack_frequency.map_or_else(
            || "every 2nd packet or after 25 ms".to_owned(),
            |asked| match asked.ack_eliciting_threshold {
                0 => "every packet, at once".to_owned(),
                threshold => format!(
                    "1 for {} packets or after {}",
                    threshold.saturating_add(1),
                    asked.max_ack_delay
                ),
            },
        );
        let reliable = self.mapping != MessageMapping::Datagram;
        let ordered = self.mapping == MessageMapping::OneStream;
        TransportProperties {
            reliable,
            ordered,
            head_of_line: HeadOfLine::of(reliable, ordered),
            encrypted: true,
            mtu_bytes: u32::from(self.largest_payload()) + Encapsulation::UdpIpv4.header_bytes(),
            header_bytes: Encapsulation::UdpIpv4.header_bytes() + packet + frame,
            acks,
            varies: String::new(),
            late_answer: self.late_answer(packet),
            congestion_control: match self.congestion_control {
                CongestionControl::Cubic => "cubic, paced",
                CongestionControl::NewReno => "new reno, paced",
            }
            .to_owned(),
            peer_timeout: match self.max_idle_timeout {
                Span::ZERO => PeerTimeout::Never,
                idle => PeerTimeout::After(idle.0),
            },
            fixed: "probe timeouts add the peer's acknowledgement delay and double; congestion \
                    control cannot be left out"
                .to_owned(),
        }
    }

    /// Datagrams beside the streams.
    fn offer(&self) -> Offer {
        let properties = self.properties();
        match (properties.reliable, properties.ordered) {
            (true, true) => Offer::StreamAndDatagrams,
            (true, false) => Offer::StreamsAndDatagrams,
            (false, _) => Offer::Datagrams,
        }
    }

    /// For datagrams, what fits a payload of `initial_mtu`.
    fn largest_message_bytes(&self) -> usize {
        match self.mapping {
            MessageMapping::OneStream | MessageMapping::StreamEach => self.max_message.0 as usize,
            MessageMapping::Datagram => self.datagram_bytes(),
        }
    }

    /// The idle timeout runs from the first packet sent after the last one
    /// arrived, and is at least three probe timeouts: a second is added for
    /// the former, the latter matter on paths slower than any known.
    fn dead_link_after(&self) -> Option<Duration> {
        let idle = self.max_idle_timeout.0;
        (!idle.is_zero()).then(|| idle + Duration::from_secs(1))
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        self.pair_logged(seed, start, &mut |_| None)
    }

    fn pair_logged(
        &self,
        seed: u64,
        start: Time,
        log: &mut dyn FnMut(End) -> Option<LogWriter>,
    ) -> Pair {
        let mut stream = |end| qlog(log(end)?, end);
        Pair {
            client: Box::new(QuicEndpoint::client(self, seed, start, stream(End::Client))),
            server: Box::new(QuicEndpoint::server(self, seed, stream(End::Server))),
        }
    }
}

impl Settings {
    /// The largest message of a datagram: what fits a payload of `initial_mtu`.
    pub(super) fn datagram_bytes(&self) -> usize {
        usize::from(self.initial_mtu) - DATAGRAM_OVERHEAD_BYTES
    }

    /// What an acknowledgement alone is, in packets that have `packet` bytes
    /// around their frames, and how long it waits for more to send.
    fn late_answer(&self, packet: u32) -> String {
        // Type, 2-byte packet number, delay, range count, 2-byte first range
        // (RFC 9000, section 19.3).
        let frame = 1 + 2 + 1 + 1 + 2;
        let alone = format!(
            "a datagram of some {} B for the acknowledgement",
            Encapsulation::UdpIpv4.header_bytes() + packet + frame
        );
        match self.ack_frequency {
            Some(asked) if asked.ack_eliciting_threshold == 0 => alone,
            Some(asked) => format!("nothing up to {}, then {alone}", asked.max_ack_delay),
            None => format!("nothing up to 25 ms, then {alone}"),
        }
    }

    /// Largest UDP payload that may be sent.
    pub(super) fn largest_payload(&self) -> u16 {
        if self.mtu_discovery {
            self.initial_mtu.max(self.max_mtu)
        } else {
            self.initial_mtu
        }
    }
}

const MIN_RTT: Span = Span::from_millis(1);
const MAX_RTT: Span = Span::from_millis(60_000);

/// What surrounds the largest DATAGRAM frame, with the longest packet number:
/// flags, connection ID, packet number, tag, and the library's bound for the
/// frame's own header.
const DATAGRAM_OVERHEAD_BYTES: usize = 1 + 8 + 4 + 16 + 9;

impl Default for AckFrequency {
    fn default() -> Self {
        Self {
            ack_eliciting_threshold: 1,
            max_ack_delay: Span::from_millis(25),
            reordering_threshold: 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_named() {
        let settings = Settings {
            initial_mtu: 500,
            ..Settings::ONE_STREAM
        };
        assert_eq!(settings.check().unwrap_err().setting, "initial_mtu");
        let settings = Settings {
            time_threshold: f32::NAN,
            ..Settings::ONE_STREAM
        };
        assert_eq!(settings.check().unwrap_err().setting, "time_threshold");
        let settings = Settings {
            keep_alive: Span::from_millis(30_000),
            ..Settings::ONE_STREAM
        };
        assert_eq!(settings.check().unwrap_err().setting, "keep_alive");
    }
}
