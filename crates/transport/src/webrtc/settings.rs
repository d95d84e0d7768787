//! What can be chosen about a WebRTC data channel, the presets, and what each
//! promises.

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use super::endpoint::WebRtcEndpoint;
use super::wiring::Side;
use crate::transport::within;
use crate::{
    BadSetting, Encapsulation, HeadOfLine, Offer, Pair, PeerTimeout, Transport,
    TransportProperties, Tunable,
};

/// Everything that can be chosen about a data channel. Both ends use the
/// same. The presets have the library's own values where nothing else is
/// said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Whether messages are delivered in the order sent.
    pub ordered: bool,
    /// How often a message is sent again before it is given up; none means
    /// until it arrives.
    pub max_retransmits: Option<u16>,
    /// Largest UDP payload, in bytes; 576 to 1500. The presets: 1150.
    pub mtu: u16,
    /// Bytes of messages that may be sent and not yet acknowledged, or
    /// waiting to be sent; 64 KiB to 1 GB. The presets: 1 MiB, for the
    /// library's 128 KiB are full after a short outage already.
    pub send_buffer: Size,
    /// Bytes of messages that may wait to be read; 64 KiB to 1 GB. What
    /// arrives beyond that is dropped unread and not acknowledged, as by the
    /// socket of a program that hangs. The presets: 1 MiB.
    pub receive_buffer: Size,
    /// Time after which an unanswered ICE check is made again; doubles every
    /// time. 50 ms to 10 s. The presets: 250 ms.
    pub stun_initial_rto: Span,
    /// The longest that time becomes, and the time between checks that are
    /// answered; 500 ms to 1 min. The presets: 3 s.
    pub stun_max_rto: Span,
    /// Unanswered checks after which the link is dead; 2 to 50. The presets:
    /// 12, which take 30.5 s, as long as every transport keeps a silent peer; the
    /// library's 9 take 21.5 s.
    pub stun_max_retransmits: u8,
}

impl Settings {
    /// A reliable, ordered data channel: what `createDataChannel` makes when given
    /// nothing, by this library and with its timers rather than a browser's.
    pub const RELIABLE: Self = Self {
        ordered: true,
        max_retransmits: None,
        mtu: 1150,
        send_buffer: Size(1024 * 1024),
        receive_buffer: Size(1024 * 1024),
        stun_initial_rto: Span::from_millis(250),
        stun_max_rto: Span::from_millis(3000),
        stun_max_retransmits: 12,
    };

    /// `{ ordered: false, maxRetransmits: 0 }`, as browser games use it.
    pub const UNRELIABLE: Self = Self {
        ordered: false,
        max_retransmits: Some(0),
        ..Self::RELIABLE
    };
}

impl Transport for Settings {
    const TRANSPORT: &'static str = "webrtc-str0m";
    const LIBRARY: &'static str = "str0m 0.25.0";
    const TUNABLES: &'static [Tunable] = &[
        Tunable::flag("ordered"),
        Tunable::integer("max_retransmits", 0, 8),
        Tunable::integer("mtu", 576, 1400),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        let buffer = 64 * 1024..=1_000_000_000;
        within("mtu", self.mtu, 576..=1500)?;
        within("send_buffer", self.send_buffer.0, buffer.clone())?;
        within("receive_buffer", self.receive_buffer.0, buffer)?;
        within(
            "stun_initial_rto",
            self.stun_initial_rto,
            Span::from_millis(50)..=Span::from_millis(10_000),
        )?;
        within(
            "stun_max_rto",
            self.stun_max_rto,
            Span::from_millis(500)..=Span::from_millis(60_000),
        )?;
        within("stun_max_retransmits", self.stun_max_retransmits, 2..=50)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    fn properties(&self) -> TransportProperties {
        // DTLS 1.2: record header, explicit nonce, tag (RFC 6347, RFC 5288).
        let dtls = 13 + 8 + 16;
        // SCTP: common header, header of a DATA chunk (RFC 9260).
        let sctp = 12 + 16;
        TransportProperties {
            reliable: self.max_retransmits.is_none(),
            ordered: self.ordered,
            head_of_line: HeadOfLine::of(self.max_retransmits.is_none(), self.ordered),
            encrypted: true,
            mtu_bytes: u32::from(self.mtu) + Encapsulation::UdpIpv4.header_bytes(),
            header_bytes: Encapsulation::UdpIpv4.header_bytes() + dtls + sctp,
            acks: "every 2nd packet or after 200 ms".to_owned(),
            // SCTP's header and a SACK chunk without gaps (RFC 9260, 3.3.4).
            late_answer: format!(
                "nothing up to 200 ms, then a packet of {} B",
                Encapsulation::UdpIpv4.header_bytes() + dtls + 12 + 16
            ),
            congestion_control: "SCTP (like new reno); RTO 3 s at first, 1 s to 60 s".to_owned(),
            peer_timeout: PeerTimeout::After(self.unanswered()),
            fixed: "SCTP's timers (RFC 9260): RTO 3 s at first, 1 s at least, 60 s at most, where \
                    browsers have 500 ms, 400 ms and 60 s (dcSCTP); SACK every 2nd packet or \
                    after 200 ms"
                .to_owned(),
            varies: "SCTP's tags and first numbers, STUN's transaction numbers, signatures, and \
                     the time in DTLS's greeting"
                .to_owned(),
        }
    }

    /// Beside a reliable, ordered channel there is one as browser games have it for state.
    fn offer(&self) -> Offer {
        match (self.max_retransmits, self.ordered) {
            (None, true) => Offer::Channels,
            (sent_again, _) => Offer::of(sent_again.is_none()),
        }
    }

    /// What a peer must take that has not said otherwise (RFC 8841, section
    /// 6.1).
    fn largest_message_bytes(&self) -> usize {
        65_536
    }

    /// All checks unanswered, or 15 s after the peer's own last check,
    /// whichever is later; both counted from the last one that was answered.
    fn dead_link_after(&self) -> Option<Duration> {
        Some(self.unanswered().max(Duration::from_secs(15)) + self.stun_max_rto.0 * 2)
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        Pair {
            client: Box::new(WebRtcEndpoint::new(self, Side::Client, seed, start)),
            server: Box::new(WebRtcEndpoint::new(self, Side::Server, seed, start)),
        }
    }
}

impl Settings {
    /// How long all checks together wait for an answer.
    fn unanswered(&self) -> Duration {
        let (first, longest) = (self.stun_initial_rto.0, self.stun_max_rto.0);
        (1..=u32::from(self.stun_max_retransmits))
            .map(|attempt| (first * (1 << attempt.min(16))).min(longest))
            .sum()
    }
}
