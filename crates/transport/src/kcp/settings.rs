//! The settings of a pair of endpoints, as people write them.

use lagometer_kcp::{Config, Rules};
use lagometer_units::{Size, Span};
use serde::{Deserialize, Serialize};

use super::fec::{FEC_HEADER_BYTES, FecGroup};

/// How both ends of a KCP connection behave. The default is the preset `kcp`.
///
/// The names are those of `ikcp_nodelay` and its siblings where these have
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and written as one"
)]
pub struct Settings {
    /// Mode 0, 1 or 2: how patiently a segment waits for its acknowledgement.
    /// The timeout doubles with each resend in mode 0 (and the first is an
    /// eighth longer), grows by half of itself in mode 1, by half of the
    /// path's current timeout in mode 2.
    pub nodelay: u8,
    /// Time between two flushes, brought between the rules' floor (10 ms) and
    /// 5 s. Whatever is not flushed at once waits for the next.
    pub interval: Span,
    /// Skips after which a segment is resent before its timeout; 0: never.
    pub resend: u32,
    /// Transmissions up to which a segment may be resent for skips; 0: any.
    /// The reference: 5; in 2015: any.
    pub fast_limit: u32,
    /// "No congestion": sending is limited by the windows alone.
    pub nc: bool,
    /// Segments that may be in flight, from 1.
    pub send_window: u16,
    /// Segments kept for the application and for reassembly, from 1 and from
    /// the rules' floor (128).
    pub receive_window: u16,
    /// The largest datagram, 50 B (with `fec` 58 B) to 65 535 B, headers of
    /// segments included, those of UDP and IP not.
    pub mtu: Size,
    /// The least retransmission timeout; without one 100 ms in mode 0 and
    /// 30 ms in the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_rto: Option<Span>,
    /// One stream of bytes, in which small messages share segments, rather
    /// than messages. The boundaries are then kept by a length of four bytes
    /// in front of each message.
    pub stream: bool,
    /// The longest message in stream mode. A peer that announces a longer one
    /// is taken for broken.
    pub stream_message_limit: Size,
    /// Transmissions of one segment after which the connection is given up;
    /// 0: never, as an application does that does not look.
    pub dead_link: u32,
    /// How long the peer may be silent, while a segment waits to be sent or
    /// acknowledged, before the connection is given up; 0: never. KCP has no such
    /// time: it is the application's, beside the `dead_link` that it may look at.
    pub peer_timeout: Span,
    /// Segments, in flight and waiting, beyond which a message is refused.
    /// The limit is ours: the reference queues without end.
    pub send_queue_limit: u32,
    /// Flush as soon as messages have been handed over.
    pub flush_on_send: bool,
    /// Flush as soon as a datagram has been handed in and the application has
    /// had its chance to answer.
    pub flush_on_input: bool,
    /// Send acknowledgements as soon as a datagram has been handed in, and
    /// nothing else. (kcp-go has this, the reference does not.) Means nothing
    /// beside `flush_on_input`.
    pub ack_no_delay: bool,
    /// Set the clock (`kcp->current`) before a datagram is handed in and
    /// before a flush out of turn. Otherwise it stands where the last update
    /// left it, and round trips are measured in steps of these.
    pub fresh_clock: bool,
    /// Call `ikcp_update` from a timer with this period, as applications did
    /// that did not ask `ikcp_check`; a flush then waits for the first tick
    /// after it is due. Without one the update comes when the flush is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_timer: Option<Span>,
    /// Flush at the nearest timeout of a segment in flight, an interval after
    /// the last such flush at the latest, as the timer of a kcp-go session
    /// does. Otherwise flushes keep their phase. Not beside `update_timer`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wake_at_timeouts: bool,
    /// Read one message for each datagram that arrives, as the echo server of
    /// 2015 did: messages set free by a resend that fills a hole then leave
    /// one by one, with the datagrams that follow.
    pub one_receive_per_datagram: bool,
    /// When the client makes its first update; the flushes keep this phase,
    /// and so does the millisecond of the clock.
    pub client_phase: Span,
    /// The same of the server. Two processes do not start in step: were the
    /// phases the same, whether an arrival just makes a flush or just misses
    /// it could be the same for a whole run.
    pub server_phase: Span,
    /// kcp-go's forward error correction, on the wire as kcp-go 5.4.20 has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<FecGroup>,
    /// Which KCP.
    pub rules: Rules,
    /// What is different on the client.
    #[serde(skip_serializing_if = "Overrides::is_empty")]
    pub client: Overrides,
    /// What is different on the server.
    #[serde(skip_serializing_if = "Overrides::is_empty")]
    pub server: Overrides,
}

/// Settings of one side that differ from the common ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "each is documented in Settings")]
pub struct Overrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resend: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nc: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_window: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_rto: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_on_send: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_on_input: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_no_delay: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_timer: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_receive_per_datagram: Option<bool>,
}

/// One of the two sides of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that plays.
    Client,
    /// The one that answers.
    Server,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl Settings {
    /// The settings of one side, its overrides applied and gone.
    #[must_use]
    pub fn of(&self, side: Side) -> Self {
        let over = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        Self {
            nodelay: over.nodelay.unwrap_or(self.nodelay),
            interval: over.interval.unwrap_or(self.interval),
            resend: over.resend.unwrap_or(self.resend),
            nc: over.nc.unwrap_or(self.nc),
            send_window: over.send_window.unwrap_or(self.send_window),
            receive_window: over.receive_window.unwrap_or(self.receive_window),
            minimum_rto: over.minimum_rto.or(self.minimum_rto),
            flush_on_send: over.flush_on_send.unwrap_or(self.flush_on_send),
            flush_on_input: over.flush_on_input.unwrap_or(self.flush_on_input),
            ack_no_delay: over.ack_no_delay.unwrap_or(self.ack_no_delay),
            update_timer: over.update_timer.or(self.update_timer),
            one_receive_per_datagram: over
                .one_receive_per_datagram
                .unwrap_or(self.one_receive_per_datagram),
            client: Overrides::default(),
            server: Overrides::default(),
            ..self.clone()
        }
    }

    /// Bytes in front of each datagram of the engine.
    pub(crate) const fn fec_bytes(&self) -> usize {
        if self.fec.is_some() {
            FEC_HEADER_BYTES
        } else {
            0
        }
    }

    /// What the engine of a side is built from, once the side's settings are
    /// resolved.
    #[must_use]
    pub fn config(&self) -> Config {
        let millis = |span: Span| u32::try_from(span.duration().as_millis()).unwrap_or(u32::MAX);
        Config {
            nodelay: self.nodelay,
            interval_ms: millis(self.interval),
            resend: self.resend,
            fast_limit: self.fast_limit,
            congestion_control: !self.nc,
            send_window: self.send_window,
            receive_window: self.receive_window,
            mtu: usize::try_from(self.mtu.bytes()).unwrap_or(usize::MAX) - self.fec_bytes(),
            minimum_rto_ms: self.minimum_rto.map(millis),
            stream: self.stream,
            dead_link: self.dead_link,
            first_sequence: 0,
            rules: self.rules.clone(),
        }
    }
}

impl Overrides {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
