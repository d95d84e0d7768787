//! What can be chosen of TCP, the same for the engine and for the kernel.

use std::time::Duration;

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::{BBR_PHASES, Config, EcnMode};
use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use super::endpoint::Tcp;
use super::host::Host;
use crate::framing::LENGTH_BYTES;
use crate::{
    BadSetting, Encapsulation, HeadOfLine, PEER_TIMEOUT, Pair, PeerTimeout, Transport,
    TransportProperties, Tunable,
};

/// IPv4 20 (RFC 791), TCP 20 (RFC 9293) with 12 of time stamps (RFC 7323).
const HEADER_BYTES: u32 = 20 + 20 + 12;

/// The most an application may ask of the send buffer, of which the kernel
/// makes twice as much, and the least it makes (Linux `net.core.wmem_max`,
/// `SOCK_MIN_SNDBUF`).
const SEND_BUFFER_MOST: u64 = 212_992;
const SEND_BUFFER_LEAST: u64 = 4608;

/// How TCP is used, by the names of Linux's socket options. All else is as
/// Linux has it by default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that Linux has by itself"
)]
pub struct Settings {
    /// The congestion control's name, as the kernel has it (`TCP_CONGESTION`):
    /// `cubic`, `bbr` or `reno`; over real sockets any that the kernel has.
    pub congestion_control: String,
    /// Small messages leave at once rather than wait for an acknowledgement
    /// (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Acknowledgements leave at once, up to 40 ms earlier (`TCP_QUICKACK`).
    /// The kernel forgets it, so it is set again after every read: one more
    /// system call.
    pub quick_ack: bool,
    /// How long sent data may stay unacknowledged before the connection is
    /// given up (`TCP_USER_TIMEOUT`); 0 leaves it to the kernel, which tries
    /// for a quarter of an hour.
    pub user_timeout: Span,
    /// Retransmission timeouts of a stream with fewer than four packets in
    /// flight stay as they are instead of doubling
    /// (`TCP_THIN_LINEAR_TIMEOUTS`).
    pub thin_linear_timeouts: bool,
    /// The connection asks for ECN (RFC 3168): where a queue marks, it slows down
    /// for a mark as for a loss, and loses nothing. Not an option of a socket: hosts of
    /// `emu` and `kernel` ask by the lane's route, and over a real path a lane that asks
    /// runs where all connections of the machine do (`net.ipv4.tcp_ecn` is 1).
    #[serde(default)]
    pub ecn: bool,
    /// The kernel's send buffer (`SO_SNDBUF`), of which it makes twice as much
    /// and at most 416 KiB; 0 lets the kernel size it. A message that finds it
    /// full is refused.
    pub send_buffer: Size,
    /// How much may be written and not yet sent once (`TCP_NOTSENT_LOWAT`); 0
    /// sets no limit. Beyond it a message is refused, though the send buffer
    /// has room.
    pub not_sent_low_water: Size,
    /// The largest message; a longer one announced by the peer ends the
    /// connection.
    pub max_message: Size,
    /// In which phases BBR begins to probe for bandwidth, 0 to 6, at the client and at
    /// the server, in virtual time; they follow from the seed when there are no more. A
    /// kernel draws them at random, and what one drew is given here to play the same.
    #[serde(default, skip_serializing_if = "has_no_phases")]
    pub bbr_phases: [Vec<u8>; 2],
    /// In virtual time: what different packets let go at one instant counts in the order
    /// of its sequence numbers, as on a kernel whose clock stands still between two
    /// packets. A machine's moves, and so it is off in every preset; the kernel in
    /// virtual time is held against lanes that have it
    /// ([`Config::orders_by_turn`](lagometer_tcp::Config::orders_by_turn)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standing_clock: bool,
}

/// Whether BBR's phases follow from the seed, as they do in every preset.
fn has_no_phases(phases: &[Vec<u8>; 2]) -> bool {
    phases.iter().all(Vec::is_empty)
}

/// The most phases of BBR that can be given.
const MOST_PHASES: usize = 1_000;

impl Settings {
    /// A socket on which nothing is set but how long a silent peer is kept, which is
    /// the same for every transport: CUBIC, Nagle's algorithm, delayed
    /// acknowledgements (tcp(7)).
    #[must_use]
    pub fn plain() -> Self {
        Self {
            no_delay: false,
            quick_ack: false,
            ..Self::with("cubic")
        }
    }

    /// What most servers do with this congestion control: no delay, quick
    /// acknowledgements, a timeout of half a minute.
    #[must_use]
    pub fn with(congestion_control: &str) -> Self {
        Self {
            congestion_control: congestion_control.to_owned(),
            no_delay: true,
            quick_ack: true,
            user_timeout: PEER_TIMEOUT,
            thin_linear_timeouts: false,
            ecn: false,
            send_buffer: Size(0),
            not_sent_low_water: Size(0),
            max_message: Size(1 << 20),
            bbr_phases: Default::default(),
            standing_clock: false,
        }
    }

    /// What suits small messages at a steady rate that are worth little when they
    /// are late; each setting's reason stands in the project's
    /// `docs/transports.md`.
    #[must_use]
    pub fn game() -> Self {
        Self {
            thin_linear_timeouts: true,
            not_sent_low_water: Size(32 << 10),
            max_message: Size(64 << 10),
            ..Self::with("bbr")
        }
    }

    /// Whether the settings make sense wherever TCP runs.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] names the first setting that is out of its range.
    pub fn check_values(&self) -> Result<(), BadSetting> {
        let name = &self.congestion_control;
        let is_name = (1..16).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(BadSetting::new(
                "congestion_control",
                "expected a name of up to 15 letters, as in \"cubic\"",
            ));
        }
        if self.user_timeout.duration().as_millis() > u128::from(u32::MAX) {
            return Err(BadSetting::new("user_timeout", "expected at most 49 days"));
        }
        if !(8..=1 << 30).contains(&self.max_message.bytes()) {
            return Err(BadSetting::new("max_message", "expected 8 B to 1 GiB"));
        }
        let mut phases = self.bbr_phases.iter();
        if phases.any(|it| it.len() > MOST_PHASES || it.iter().any(|it| *it >= BBR_PHASES)) {
            return Err(BadSetting::new(
                "bbr_phases",
                "expected at most 1,000 numbers from 0 to 6 for the client and for the server",
            ));
        }
        for (setting, size) in [
            ("send_buffer", self.send_buffer),
            ("not_sent_low_water", self.not_sent_low_water),
        ] {
            if size.bytes() > 1 << 30 {
                return Err(BadSetting::new(setting, "expected at most 1 GiB"));
            }
        }
        Ok(())
    }

    /// What TCP promises with these settings and what it costs, wherever it
    /// runs.
    #[must_use]
    pub fn promises(&self) -> TransportProperties {
        TransportProperties {
            reliable: true,
            ordered: true,
            // Nagle's algorithm keeps small messages until all before are acknowledged.
            head_of_line: if self.no_delay {
                HeadOfLine::AtReceiver
            } else {
                HeadOfLine::AtSender
            },
            encrypted: false,
            mtu_bytes: 1500,
            header_bytes: HEADER_BYTES + LENGTH_BYTES as u32,
            acks: if self.quick_ack {
                "at once".to_owned()
            } else {
                "every second segment, or after up to 40 ms".to_owned()
            },
            varies: String::new(),
            late_answer: if self.quick_ack {
                "nothing: acknowledgements leave before the answer".to_owned()
            } else {
                format!("nothing up to 40 ms, then a segment of {HEADER_BYTES} B")
            },
            congestion_control: if self.ecn {
                format!("{} with ECN", self.congestion_control)
            } else {
                self.congestion_control.clone()
            },
            peer_timeout: PeerTimeout::After(self.gives_up_after()),
            fixed: "no retransmission timeout below 200 ms but by the route".to_owned(),
        }
    }

    /// How long sent data stay unacknowledged until the connection is given up.
    fn gives_up_after(&self) -> Duration {
        some_unless_zero(self.user_timeout.duration()).unwrap_or(GIVES_UP_AFTER)
    }

    /// The engine's congestion control of that name.
    fn algorithm(&self) -> Result<Algorithm, BadSetting> {
        match self.congestion_control.as_str() {
            "cubic" => Ok(Algorithm::Cubic),
            "bbr" => Ok(Algorithm::Bbr),
            "reno" => Ok(Algorithm::Reno),
            other => Err(BadSetting::new(
                "congestion_control",
                format!(
                    "`{other}` does not run in virtual time, only cubic, bbr and reno; over real \
                     sockets whatever the kernel has does"
                ),
            )),
        }
    }

    /// What the engine makes of the settings.
    fn config(&self) -> Config {
        let mut config = Config {
            congestion: self.algorithm().unwrap_or_default(),
            nodelay: self.no_delay,
            thin_linear_timeouts: self.thin_linear_timeouts,
            ecn: if self.ecn {
                EcnMode::Always
            } else {
                EcnMode::WhenAsked
            },
            user_timeout: some_unless_zero(self.user_timeout.duration()),
            not_sent_low_water: some_unless_zero(self.not_sent_low_water.bytes() as u32),
            orders_by_turn: !self.standing_clock,
            ..Config::default()
        };
        if let Some(asked) = some_unless_zero(self.send_buffer.bytes()) {
            let bytes = (2 * asked.min(SEND_BUFFER_MOST)).max(SEND_BUFFER_LEAST) as u32;
            config.send_buffer = (bytes, bytes);
            config.tune_send_buffer = false;
        }
        config
    }
}

impl Transport for Settings {
    const TRANSPORT: &'static str = "tcp";
    const LIBRARY: &'static str = concat!("lagometer-tcp ", env!("CARGO_PKG_VERSION"));
    const TUNABLES: &'static [Tunable] = &[
        Tunable::choice("congestion_control", &["cubic", "bbr", "reno"]),
        Tunable::flag("no_delay"),
        Tunable::flag("quick_ack"),
        Tunable::flag("thin_linear_timeouts"),
        Tunable::bytes("send_buffer", 8 << 10, SEND_BUFFER_MOST),
        Tunable::bytes("not_sent_low_water", 4 << 10, 256 << 10),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        self.check_values()?;
        self.algorithm().map(|_| ())
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::Ip
    }

    fn properties(&self) -> TransportProperties {
        self.promises()
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_message.bytes() as usize
    }

    /// Linux counts from the first retransmission, which comes a timeout after
    /// the silence began, and its timers are up to a seventh late.
    fn dead_link_after(&self) -> Option<Duration> {
        let limit = self.gives_up_after();
        Some(limit + limit / 7 + FIRST_TIMEOUT_AT_MOST)
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        let config = |side: usize| Config {
            bbr_phases: self.bbr_phases[side].clone(),
            ..self.config()
        };
        let client = Host::client(config(0), seed, start);
        let server = Host::server(config(1), seed);
        Pair {
            client: Box::new(Tcp::over(client, self)),
            server: Box::new(Tcp::over(server, self)),
        }
    }
}

/// How long Linux tries without a user timeout: 15 retransmissions, the last
/// of them two minutes apart (`net.ipv4.tcp_retries2`).
const GIVES_UP_AFTER: Duration = Duration::from_secs(924 + 120);
/// The retransmission timeout of a connection that saw round trips below a
/// second.
const FIRST_TIMEOUT_AT_MOST: Duration = Duration::from_secs(4);

/// Options of a [`Stream`](super::Stream), for protocols with frames of their
/// own; all else is as Linux has it by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StreamOptions {
    /// Congestion control.
    pub congestion_control: Algorithm,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `TCP_NOTSENT_LOWAT` in bytes; none for no limit.
    pub not_sent_low_water: Option<u32>,
}

impl StreamOptions {
    pub(super) fn config(self) -> Config {
        Config {
            congestion: self.congestion_control,
            nodelay: self.no_delay,
            not_sent_low_water: self.not_sent_low_water,
            ..Config::default()
        }
    }
}

/// Zero stands for "as Linux has it".
fn some_unless_zero<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "a b", "cubic\n", "aaaaaaaaaaaaaaaa"] {
            assert!(Settings::with(name).check_values().is_err(), "{name:?}");
        }
    }

    #[test]
    fn phases_that_bbr_does_not_have_are_refused_and_those_of_no_one_are_not_written() {
        let with = |phases: Vec<u8>| Settings {
            bbr_phases: [Vec::new(), phases],
            ..Settings::with("bbr")
        };
        assert_eq!(with(vec![0, 6]).check_values(), Ok(()));
        assert!(with(vec![7]).check_values().is_err());
        assert!(with(vec![0; 1_001]).check_values().is_err());
        let written = |phases| serde_json::to_string(&with(phases)).unwrap();
        assert!(!written(Vec::new()).contains("bbr_phases"));
        assert!(written(vec![3]).contains(r#""bbr_phases":[[],[3]]"#));
    }

    #[test]
    fn a_congestion_control_that_only_kernels_have_is_refused_in_virtual_time_alone() {
        let settings = Settings::with("vegas");
        assert_eq!(settings.check_values(), Ok(()));
        let refused = settings.check().unwrap_err().to_string();
        assert!(refused.contains("`vegas` does not run in virtual time"));
    }

    #[test]
    fn a_send_buffer_is_doubled_and_bounded_as_the_kernel_does() {
        let made = |bytes| {
            let settings = Settings {
                send_buffer: Size(bytes),
                ..Settings::with("cubic")
            };
            settings.config().send_buffer
        };
        assert_eq!(made(0), Config::default().send_buffer);
        assert_eq!(made(1), (4608, 4608));
        assert_eq!(made(50_000), (100_000, 100_000));
        assert_eq!(made(1 << 30), (425_984, 425_984));
    }
}
