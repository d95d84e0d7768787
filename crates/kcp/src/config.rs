//! What one engine is built from: settings of one side, resolved to plain
//! numbers.

use crate::rules::Rules;
use crate::wire::HEADER_BYTES;

/// The longest flush interval the reference permits, in milliseconds.
pub(crate) const LONGEST_INTERVAL_MS: u32 = 5_000;
/// The least datagram size the reference permits, in bytes.
pub const LEAST_MTU: usize = 50;

/// So many windows of acknowledgements may wait for a flush. Between two flushes a
/// peer that keeps to the window sends one of new segments, and beside it only what
/// it takes for lost or what the path doubles; what is beyond that is acknowledged
/// when it comes once more.
const OWED_WINDOWS: usize = 4;

/// … and at least so many, however small the window is.
const OWED_AT_LEAST: usize = 1024;

/// How an engine behaves. All of it is fixed for the engine's life but the
/// datagram size and the windows.
#[derive(Clone, Debug)]
pub struct Config {
    /// Mode 0 waits an eighth longer for the first acknowledgement and doubles
    /// the timeout with each resend; 1 multiplies it by 1.5; 2 adds half the
    /// current timeout.
    pub nodelay: u8,
    /// Milliseconds between flushes, brought between the rules' floor and
    /// 5000.
    pub interval_ms: u32,
    /// Skips after which a segment is resent before its timeout; 0: never.
    pub resend: u32,
    /// Transmissions up to which a segment may be resent for skips; 0: any.
    pub fast_limit: u32,
    /// Whether the congestion window limits sending.
    pub congestion_control: bool,
    /// Segments that may be in flight.
    pub send_window: u16,
    /// Segments kept for the application and for reassembly.
    pub receive_window: u16,
    /// The largest datagram in bytes, headers of segments included.
    pub mtu: usize,
    /// The least retransmission timeout in milliseconds; `None`: 100 in mode
    /// 0, 30 in the others.
    pub minimum_rto_ms: Option<u32>,
    /// Whether sends are one stream of bytes rather than messages.
    pub stream: bool,
    /// Transmissions of one segment after which the link counts as dead; 0:
    /// never.
    pub dead_link: u32,
    /// The number of the first segment; both ends must agree. The reference's
    /// is 0, and another is for looking at the wrap.
    pub first_sequence: u32,
    /// Which KCP.
    pub rules: Rules,
}

impl Default for Config {
    /// What `ikcp_create` sets.
    fn default() -> Self {
        Self {
            nodelay: 0,
            interval_ms: 100,
            resend: 0,
            fast_limit: 5,
            congestion_control: true,
            send_window: 32,
            receive_window: 128,
            mtu: 1_400,
            minimum_rto_ms: None,
            stream: false,
            dead_link: 20,
            first_sequence: 0,
            rules: Rules::default(),
        }
    }
}

impl Config {
    /// What `NewKCP` of kcp-go sets, with its rules. At transmissions beyond
    /// its limit of 20 kcp-go sets a flag at which nobody looks.
    #[must_use]
    pub fn kcp_go() -> Self {
        Self {
            fast_limit: 0,
            send_window: 32,
            receive_window: 32,
            dead_link: 0,
            rules: Rules::of_kcp_go(),
            ..Self::default()
        }
    }

    /// The interval within the bounds.
    #[must_use]
    pub fn bounded_interval_ms(&self) -> u32 {
        let floor = self.rules.interval_floor.duration().as_millis() as u32;
        self.interval_ms.max(floor).clamp(1, LONGEST_INTERVAL_MS)
    }

    /// The least timeout, where none is given that of the mode.
    #[must_use]
    pub fn least_rto_ms(&self) -> u32 {
        let of_mode = if self.nodelay == 0 { 100 } else { 30 };
        self.minimum_rto_ms.unwrap_or(of_mode)
    }

    /// How many acknowledgements a stream lets wait for a flush.
    #[must_use]
    pub fn most_acknowledgements(&self) -> usize {
        OWED_AT_LEAST.max(OWED_WINDOWS * usize::from(self.receive_window))
    }

    /// The datagram size within the bounds: what the reference refuses as too
    /// small becomes the least it takes.
    #[must_use]
    pub fn bounded_mtu(&self) -> usize {
        self.mtu.clamp(LEAST_MTU, usize::from(u16::MAX))
    }
}

/// Payload bytes of a full segment in datagrams of `mtu` bytes.
#[must_use]
pub const fn segment_bytes(mtu: usize) -> usize {
    mtu - HEADER_BYTES
}
