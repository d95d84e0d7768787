//! What is set at an end of a conversation: options of its socket, and what the
//! administrator of its host has set.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::{Config, EcnMode, KeepAlive, MtuProbing};
use serde::{Deserialize, Serialize};

use crate::random::Random;

/// The port on which the second end listens.
pub(crate) const PORT: u16 = 7_000;
/// In how many of the conversations whose options vary each of them does.
const SHARE_OF_EACH: f64 = 0.25;

/// What was set at one end. Without an entry in the text of a trace, as Linux has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that Linux has by itself"
)]
pub(crate) struct EndSettings {
    /// `TCP_CONGESTION`.
    pub(crate) control: String,
    /// Of the device, in bytes.
    pub(crate) mtu: usize,
    /// Whether the two ends speak IPv6.
    pub(crate) is_ipv6: bool,
    /// `TCP_NODELAY`.
    pub(crate) nodelay: bool,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes, if they were set.
    pub(crate) send_buffer: Option<u32>,
    pub(crate) receive_buffer: Option<u32>,
    /// `TCP_NOTSENT_LOWAT` in bytes, if it was set.
    pub(crate) not_sent_low_water: Option<u32>,
    /// `TCP_USER_TIMEOUT` in milliseconds, if it was set.
    pub(crate) user_timeout_ms: Option<u32>,
    /// `SO_KEEPALIVE` with `TCP_KEEPIDLE` and `TCP_KEEPINTVL` in seconds, and
    /// `TCP_KEEPCNT`.
    pub(crate) keep_alive: Option<[u32; 3]>,
    /// `TCP_THIN_LINEAR_TIMEOUTS`.
    pub(crate) thin_linear_timeouts: bool,
    /// `net.ipv4.tcp_ecn`, 0 to 2.
    pub(crate) ecn: u8,
    /// `net.ipv4.tcp_mtu_probing`, 0 to 2.
    pub(crate) mtu_probing: u8,
    /// `net.ipv4.tcp_sack`.
    pub(crate) sack: bool,
    /// `net.ipv4.tcp_timestamps`.
    pub(crate) timestamps: bool,
    /// `net.ipv4.tcp_window_scaling`.
    pub(crate) window_scaling: bool,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub(crate) slow_start_after_idle: bool,
}

impl Default for EndSettings {
    fn default() -> Self {
        Self {
            control: String::new(),
            mtu: 1500,
            is_ipv6: false,
            nodelay: false,
            send_buffer: None,
            receive_buffer: None,
            not_sent_low_water: None,
            user_timeout_ms: None,
            keep_alive: None,
            thin_linear_timeouts: false,
            ecn: 2,
            mtu_probing: 0,
            sack: true,
            timestamps: true,
            window_scaling: true,
            slow_start_after_idle: true,
        }
    }
}

/// The addresses of the two ends, of which the first connects.
pub(crate) const fn hosts(is_ipv6: bool) -> [IpAddr; 2] {
    if is_ipv6 {
        [
            IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)),
            IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2)),
        ]
    } else {
        [
            IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)),
            IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2)),
        ]
    }
}

impl EndSettings {
    /// Sets some of what Linux lets one set.
    pub(crate) fn vary(&mut self, random: &mut Random) {
        let often = |random: &mut Random| random.chance(SHARE_OF_EACH);
        if often(random) {
            self.not_sent_low_water = Some(random.spread(1, 100_000) as u32);
        }
        if often(random) {
            self.user_timeout_ms = Some(random.spread(200, 20_000) as u32);
        }
        if often(random) {
            let seconds = |random: &mut Random, most| random.spread(1, most) as u32;
            self.keep_alive = Some([
                seconds(random, 8),
                seconds(random, 4),
                random.between(1, 5) as u32,
            ]);
        }
        self.thin_linear_timeouts = often(random);
        if often(random) {
            self.mtu_probing = random.pick(&[1, 2]);
        }
        self.sack = !often(random);
        self.timestamps = !often(random);
        self.window_scaling = !often(random);
        self.slow_start_after_idle = !often(random);
        self.ecn = random.pick(&[0, 1, 1, 2]);
    }

    /// What the administrator has set, below `/proc/sys/net/ipv4`.
    pub(crate) fn sysctls(&self) -> [(&'static str, u8); 6] {
        [
            ("tcp_ecn", self.ecn),
            ("tcp_mtu_probing", self.mtu_probing),
            ("tcp_sack", u8::from(self.sack)),
            ("tcp_timestamps", u8::from(self.timestamps)),
            ("tcp_window_scaling", u8::from(self.window_scaling)),
            (
                "tcp_slow_start_after_idle",
                u8::from(self.slow_start_after_idle),
            ),
        ]
    }

    /// The same for a connection of `lagometer-tcp`, with these phases of BBR's.
    pub(crate) fn config(&self, phases: &[u8]) -> Config {
        let mut config = Config {
            bbr_phases: phases.to_vec(),
            congestion: match self.control.as_str() {
                "bbr" => Algorithm::Bbr,
                "reno" => Algorithm::Reno,
                _ => Algorithm::Cubic,
            },
            mtu: self.mtu as u32,
            nodelay: self.nodelay,
            not_sent_low_water: self.not_sent_low_water,
            user_timeout: self.user_timeout_ms.map(milliseconds),
            keep_alive: self.keep_alive.map(|[idle, interval, probes]| KeepAlive {
                idle: seconds(idle),
                interval: seconds(interval),
                probes,
            }),
            thin_linear_timeouts: self.thin_linear_timeouts,
            ecn: [EcnMode::Off, EcnMode::Always, EcnMode::WhenAsked][usize::from(self.ecn.min(2))],
            mtu_probing: [
                MtuProbing::Off,
                MtuProbing::AfterBlackHole,
                MtuProbing::Always,
            ][usize::from(self.mtu_probing.min(2))],
            sack: self.sack,
            timestamps: self.timestamps,
            window_scaling: self.window_scaling,
            slow_start_after_idle: self.slow_start_after_idle,
            // Its clock stands still between packets that come together.
            orders_by_turn: false,
            ..Config::default()
        };
        // The kernel doubles what is asked for, and has least values.
        if let Some(bytes) = self.send_buffer {
            config.send_buffer.0 = (2 * bytes).max(4_608);
            config.tune_send_buffer = false;
        }
        if let Some(bytes) = self.receive_buffer {
            config.receive_buffer.0 = (2 * bytes).max(2_304);
            config.tune_receive_buffer = false;
        }
        config
    }
}

const fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count as u64)
}

const fn seconds(count: u32) -> Duration {
    Duration::from_secs(count as u64)
}
