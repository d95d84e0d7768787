//! What an administrator or an application may set, with Linux's defaults.

use std::time::Duration;

use crate::congestion::Algorithm;
use crate::rtt::RTO_MAX_SECONDS;

/// Path-MTU probing by larger and smaller segments (RFC 4821; Linux
/// `net.ipv4.tcp_mtu_probing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MtuProbing {
    /// None: ICMP alone reports it.
    #[default]
    Off,
    /// Only after a black hole was found: retransmissions that vanish.
    AfterBlackHole,
    /// From the beginning.
    Always,
}

/// Explicit congestion notification (Linux `net.ipv4.tcp_ecn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EcnMode {
    /// Never.
    Off,
    /// Granted to peers who ask, not asked for: Linux's default.
    #[default]
    WhenAsked,
    /// Asked for and granted.
    Always,
}

/// Keep-alive probes on an idle connection (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe, 1 ms to 32,767 s; 2 h in Linux.
    pub idle: Duration,
    /// Time between probes, 1 ms to 32,767 s; 75 s in Linux.
    pub interval: Duration,
    /// Probes without an answer after which the connection is given up, 1 to 127;
    /// 9 in Linux.
    pub probes: u32,
}

/// The shortest time that is taken: none at all would not let time pass.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest of keep-alive and of waiting for a FIN (`MAX_TCP_KEEPIDLE`).
const LONGEST: Duration = Duration::from_secs(32_767);
/// The longest timeout (`TCP_RTO_MAX`).
const LONGEST_TIMEOUT: Duration = Duration::from_secs(RTO_MAX_SECONDS);
/// The longest `TCP_USER_TIMEOUT`: 32 bits of milliseconds.
const LONGEST_USER_TIMEOUT: Duration = Duration::from_millis(u32::MAX as u64);
const LARGEST_BUFFER: u32 = 1 << 30;
const MOST_HEADER_ROOM: u32 = 65_536;
const MOST_INITIAL_CWND: u32 = 65_535;
/// As the kernel has them: `tcp_syn_retries` and `TCP_KEEPCNT`, then the others.
const MOST_SYN_RETRIES: u32 = 127;
const MOST_RETRIES: u32 = 255;

impl KeepAlive {
    /// The same within the ranges.
    pub(crate) fn within_ranges(self) -> Self {
        Self {
            idle: self.idle.clamp(SHORTEST, LONGEST),
            interval: self.interval.clamp(SHORTEST, LONGEST),
            probes: self.probes.clamp(1, MOST_SYN_RETRIES),
        }
    }
}

impl Config {
    /// The same within the ranges. That of `hz` is kept by the ticks, that of `mtu` by
    /// the path's.
    pub(crate) fn within_ranges(&self) -> Self {
        let bytes = |bytes: u32| bytes.clamp(1, LARGEST_BUFFER);
        let buffers = |(first, last): (u32, u32)| (bytes(first), bytes(last));
        Self {
            rto_min: self.rto_min.clamp(SHORTEST, LONGEST_TIMEOUT),
            initial_cwnd: self.initial_cwnd.clamp(1, MOST_INITIAL_CWND),
            receive_buffer: buffers(self.receive_buffer),
            send_buffer: buffers(self.send_buffer),
            not_sent_low_water: self.not_sent_low_water.filter(|mark| *mark > 0),
            header_room: self.header_room.min(MOST_HEADER_ROOM),
            keep_alive: self.keep_alive.map(KeepAlive::within_ranges),
            user_timeout: self
                .user_timeout
                .filter(|limit| *limit >= SHORTEST)
                .map(|limit| limit.min(LONGEST_USER_TIMEOUT)),
            syn_retries: self.syn_retries.min(MOST_SYN_RETRIES),
            synack_retries: self.synack_retries.min(MOST_RETRIES),
            retries: self.retries.min(MOST_RETRIES),
            fin_timeout: self.fin_timeout.min(LONGEST),
            ..self.clone()
        }
    }
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            idle: Duration::from_hours(2),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

/// Settings of a connection. The default is Linux 6.1 as distributions ship
/// it, with `HZ` at 1000.
///
/// A value outside of the range that is said for it counts as the nearest inside:
/// a connection takes them so when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that Linux has by itself"
)]
pub struct Config {
    /// Ticks a second of the kernel's clock (`CONFIG_HZ`), 1 to 1,000,000.
    pub hz: u32,
    /// Whether timers are rounded up to buckets as in the kernel's timer wheel:
    /// up to an eighth late. Without, they fire at the beginning of their tick.
    pub timer_wheel: bool,
    /// Congestion control.
    pub congestion: Algorithm,
    /// MTU of the path's first hop, in bytes; 576 to 65,535.
    pub mtu: u32,
    /// Time stamps (`tcp_timestamps`).
    pub timestamps: bool,
    /// Window scaling (`tcp_window_scaling`).
    pub window_scaling: bool,
    /// Selective acknowledgements (`tcp_sack`, `tcp_dsack`).
    pub sack: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// `TCP_NODELAY`: Nagle's algorithm off.
    pub nodelay: bool,
    /// `TCP_THIN_LINEAR_TIMEOUTS`: no exponential backoff for the first six
    /// timeouts of a stream with fewer than four packets in flight.
    pub thin_linear_timeouts: bool,
    /// Restart from the initial window after an idle time
    /// (`tcp_slow_start_after_idle`; RFC 2861).
    pub slow_start_after_idle: bool,
    /// Tail-loss probes (`tcp_early_retrans` 3).
    pub tail_loss_probe: bool,
    /// F-RTO (`tcp_frto`; RFC 5682).
    pub frto: bool,
    /// Floor under the variance of the round-trip time and so, about, under the
    /// retransmission timeout (`TCP_RTO_MIN`), 1 ms to 120 s; 200 ms.
    pub rto_min: Duration,
    /// Initial congestion window in segments (RFC 6928), 1 to 65,535; 10.
    pub initial_cwnd: u32,
    /// First and largest receive buffer in bytes of memory (`tcp_rmem`), 1 byte to
    /// 1 GiB.
    pub receive_buffer: (u32, u32),
    /// Smallest and largest send buffer in bytes of memory (`tcp_wmem`), 1 byte to
    /// 1 GiB.
    pub send_buffer: (u32, u32),
    /// Whether the receive buffer grows with the bandwidth-delay product
    /// (`tcp_moderate_rcvbuf`); off when the application set `SO_RCVBUF`.
    pub tune_receive_buffer: bool,
    /// Whether the send buffer grows with the congestion window; off when the
    /// application set `SO_SNDBUF`.
    pub tune_send_buffer: bool,
    /// `TCP_NOTSENT_LOWAT`: a write takes no more while so many bytes were
    /// written and not yet sent once; none in Linux's default, and 0 counts as none.
    pub not_sent_low_water: Option<u32>,
    /// Bytes that the kernel leaves for headers in every buffer it sends from
    /// (`MAX_TCP_HEADER`), by which the send buffer is sized: 320 where the
    /// kernel was built with wireless networks, as distributions do; 192 in a
    /// small one. 65,536 at most.
    pub header_room: u32,
    /// Path-MTU probing.
    pub mtu_probing: MtuProbing,
    /// Keep-alive; none in Linux's default.
    pub keep_alive: Option<KeepAlive>,
    /// `TCP_USER_TIMEOUT`: how long data may stay unacknowledged, up to 2^32 - 1 ms;
    /// below 1 ms it counts as none, as in Linux.
    pub user_timeout: Option<Duration>,
    /// Highest pacing rate in bytes a second (`SO_MAX_PACING_RATE`), at least 1.
    pub max_pacing_rate: Option<u64>,
    /// Paces by a timer of the connection also for controls that do not ask for
    /// it (`SO_MAX_PACING_RATE`, or the `fq` queueing discipline).
    pub pacing: bool,
    /// Retransmissions of a SYN (`tcp_syn_retries`), 127 at most; 6.
    pub syn_retries: u32,
    /// Retransmissions of a SYN-ACK (`tcp_synack_retries`), 255 at most; 5.
    pub synack_retries: u32,
    /// Retransmissions after which a connection is given up (`tcp_retries2`), 255 at
    /// most; 15.
    pub retries: u32,
    /// How long an orphaned connection waits for the peer's FIN
    /// (`tcp_fin_timeout`), 32,767 s at most; 60 s. TIME-WAIT always lasts 60 s.
    pub fin_timeout: Duration,
    /// Whether what different packets let go at the same microsecond counts in the
    /// order in which it left. A kernel's clock moves between two packets and orders
    /// only what one of them let go by sequence number; where time can stand still it
    /// orders all of it so (`tcp_skb_sent_after`), and takes retransmissions for lost
    /// that are not. Off, the connection does as a kernel in virtual time.
    pub orders_by_turn: bool,
    /// Whether a connection may be opened from a port whose last one, to the same
    /// peer, is in TIME-WAIT, a second after that peer's last time stamp
    /// (`tcp_tw_reuse` 1). Off: Linux's default, 2, does so on loopback only.
    pub reuse_time_wait: bool,
    /// In which phase of its cycle BBR begins to probe for bandwidth, each time that it
    /// does, 0 to 6 (Linux 6.1 `bbr_reset_probe_bw_mode` subtracts it from the last
    /// phase). A kernel draws it from random numbers of its own: what one drew is given
    /// here where a connection is held against it. When there are no more, and by
    /// default, it follows from the seed.
    pub bbr_phases: Vec<u8>,
    /// Packets that may wait to be polled, of a connection and of all of a host's
    /// together; more are dropped, as a device's queue drops them (`txqueuelen`).
    pub transmit_queue_packets: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hz: 1000,
            timer_wheel: true,
            congestion: Algorithm::Cubic,
            mtu: 1500,
            timestamps: true,
            window_scaling: true,
            sack: true,
            ecn: EcnMode::WhenAsked,
            nodelay: false,
            thin_linear_timeouts: false,
            slow_start_after_idle: true,
            tail_loss_probe: true,
            frto: true,
            rto_min: Duration::from_millis(200),
            initial_cwnd: 10,
            receive_buffer: (131_072, 6 * 1024 * 1024),
            send_buffer: (16_384, 4 * 1024 * 1024),
            tune_receive_buffer: true,
            tune_send_buffer: true,
            not_sent_low_water: None,
            header_room: 320,
            mtu_probing: MtuProbing::Off,
            keep_alive: None,
            user_timeout: None,
            max_pacing_rate: None,
            pacing: false,
            syn_retries: 6,
            synack_retries: 5,
            retries: 15,
            fin_timeout: Duration::from_mins(1),
            orders_by_turn: true,
            reuse_time_wait: false,
            bbr_phases: Vec::new(),
            transmit_queue_packets: 65_536,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_beyond_its_range_counts_as_the_nearest_inside() {
        let beyond = Config {
            rto_min: Duration::ZERO,
            initial_cwnd: 0,
            receive_buffer: (0, u32::MAX),
            send_buffer: (0, u32::MAX),
            not_sent_low_water: Some(0),
            header_room: u32::MAX,
            keep_alive: Some(KeepAlive {
                idle: Duration::ZERO,
                interval: Duration::MAX,
                probes: 0,
            }),
            user_timeout: Some(Duration::MAX),
            syn_retries: u32::MAX,
            synack_retries: u32::MAX,
            retries: u32::MAX,
            fin_timeout: Duration::MAX,
            ..Config::default()
        };
        let nearest = Config {
            rto_min: SHORTEST,
            initial_cwnd: 1,
            receive_buffer: (1, LARGEST_BUFFER),
            send_buffer: (1, LARGEST_BUFFER),
            not_sent_low_water: None,
            header_room: MOST_HEADER_ROOM,
            keep_alive: Some(KeepAlive {
                idle: SHORTEST,
                interval: LONGEST,
                probes: 1,
            }),
            user_timeout: Some(LONGEST_USER_TIMEOUT),
            syn_retries: 127,
            synack_retries: 255,
            retries: 255,
            fin_timeout: LONGEST,
            ..Config::default()
        };
        assert_eq!(beyond.within_ranges(), nearest);
        assert_eq!(nearest.within_ranges(), nearest);
    }
}
