//! `tcp-smoltcp`: a stand-in for TCP, since kernel TCP cannot run in virtual
//! time. It is smoltcp's TCP, a correct and simple one, and its figures must
//! be read as such; for the kernel's own, use a testbed with real sockets.
//!
//! Messages travel on one stream, each behind its length as a 32-bit
//! little-endian number. Datagrams are whole IPv4 packets: smoltcp checks IP's
//! and TCP's checksums itself, and damage they miss is delivered.
//!
//! What smoltcp 0.14 does differently from Linux, and which way it errs:
//!
//! - The retransmission timeout is never below **1 s** (RFC 6298; Linux:
//!   200 ms above the RTT variance), nor above 60 s (Linux: 120 s). Without
//!   tail-loss probes (RFC 8985), which Linux sends after about two RTTs, a
//!   lost last message waits for that second. *Worse than Linux.*
//! - Loss is noticed earlier by three duplicate acknowledgements. The
//!   receiver sends SACK blocks but the sender ignores them, so it repairs one
//!   hole in each round trip; after a timeout it sends everything again from
//!   the hole on. *Worse than Linux.*
//! - Slow start begins with 2048 B (Linux: 10 segments) and is not resumed
//!   after idle times (Linux: it is). No pacing, no ECN, no timestamps (Linux:
//!   12 B in each segment), RTT to the millisecond. *Either way.*
//! - Acknowledgements are delayed up to `ack_delay` unless more than a segment
//!   is due or data goes back; Linux adapts between none and 40 ms.
//! - At most 32 holes are remembered at the receiver; data beyond are dropped
//!   and sent again.
//! - A path that swallows packets of full size is never probed for its MTU
//!   (Linux can, RFC 4821, but by default does not either).
//!
//! One defect that would make figures meaningless is mended on the way out;
//! see `mend_acknowledgement`.

mod connection;
mod endpoint;
mod packets;
mod stream;

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

pub use self::connection::Connection;
use self::endpoint::Tcp;
use crate::transport::within;
use crate::{BadSetting, Carrier, Pair, Transport, TransportProperties};

/// An IPv4 header and a TCP header, both without options.
const HEADER_BYTES: u32 = 40;

/// How TCP is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Congestion control.
    pub congestion_control: CongestionControl,
    /// Whether a segment leaves at once (`TCP_NODELAY`), rather than wait for
    /// more data while earlier are unacknowledged (Nagle).
    pub no_delay: bool,
    /// How long an acknowledgement waits for data to ride with; 0 to 500 ms.
    pub ack_delay: Span,
    /// Largest IP packet; 576 B to 9000 B.
    pub mtu: Size,
    /// How long the peer may be silent, while data or a probe wait for its
    /// answer, until the link is dead; 1 s to 1 h.
    pub timeout: Span,
    /// How long nothing may be heard until the peer is probed; 1 s to 1 h.
    pub keep_alive: Span,
    /// Most bytes of messages that are taken and not yet acknowledged; 16 KiB
    /// to 64 MiB.
    pub send_buffer: Size,
    /// The receive window; 16 KiB to 64 MiB.
    pub receive_buffer: Size,
}

/// How the sender finds out how much the path carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// Reno, RFC 5681.
    Reno,
    /// CUBIC, RFC 9438; the default of Linux, Windows and Apple.
    Cubic,
}

impl Settings {
    /// CUBIC, no delay of data, acknowledgements delayed as Linux does at
    /// most, an Ethernet MTU.
    pub const CUBIC: Self = Self {
        congestion_control: CongestionControl::Cubic,
        no_delay: true,
        ack_delay: Span::from_millis(40),
        mtu: Size(1500),
        timeout: Span::from_millis(60_000),
        keep_alive: Span::from_millis(10_000),
        send_buffer: Size(1 << 20),
        receive_buffer: Size(1 << 20),
    };

    /// [`CUBIC`](Self::CUBIC) with Reno in its place.
    pub const RENO: Self = Self {
        congestion_control: CongestionControl::Reno,
        ..Self::CUBIC
    };
}

impl Transport for Settings {
    const TRANSPORT: &'static str = "tcp-smoltcp";
    const LIBRARY: &'static str = "smoltcp 0.14.0";

    fn check(&self) -> Result<(), BadSetting> {
        let spans = Span::from_millis(1000)..=Span::from_millis(3_600_000);
        let buffers = 16 << 10..=64 << 20;
        within(
            "ack_delay",
            self.ack_delay,
            Span::ZERO..=Span::from_millis(500),
        )?;
        within("mtu", self.mtu.bytes(), 576..=9000)?;
        within("timeout", self.timeout, spans.clone())?;
        within("keep_alive", self.keep_alive, spans)?;
        within("send_buffer", self.send_buffer.bytes(), buffers.clone())?;
        within("receive_buffer", self.receive_buffer.bytes(), buffers)
    }

    fn carrier(&self) -> Carrier {
        Carrier::Ip
    }

    fn properties(&self) -> TransportProperties {
        TransportProperties {
            reliable: true,
            ordered: true,
            encrypted: false,
            mtu_bytes: self.mtu.bytes() as u32,
            header_bytes: HEADER_BYTES + stream::LENGTH_BYTES as u32,
            acks: if self.ack_delay == Span::ZERO {
                "each segment, at once".to_owned()
            } else {
                format!("with data, else after {}", self.ack_delay)
            },
            congestion_control: match self.congestion_control {
                CongestionControl::Reno => "Reno",
                CongestionControl::Cubic => "CUBIC",
            }
            .to_owned(),
        }
    }

    /// A message is taken whole or not at all, so it must fit the buffer.
    fn largest_message_bytes(&self) -> usize {
        self.send_buffer.bytes() as usize - stream::LENGTH_BYTES
    }

    fn dead_link_after(&self) -> Option<Duration> {
        Some(self.timeout.0)
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        Pair {
            client: Box::new(Tcp::over(Connection::client(self, seed, start), self)),
            server: Box::new(Tcp::over(Connection::server(self, seed, start), self)),
        }
    }
}
