//! KCP as one transport among others: what its settings promise and cost.

use std::time::Duration;

use lagometer_kcp::{Backoff, FIRST_RTO_MS, HEADER_BYTES, LEAST_MTU};
use lagometer_units::{Span, Time};

use super::endpoint::{KcpEndpoint, Limits};
use super::framing::LENGTH_BYTES;
use super::settings::{Settings, Side};
use crate::seed::derive;
use crate::transport::within;
use crate::{
    BadSetting, Encapsulation, HeadOfLine, OWN_LIBRARY, Pair, PeerTimeout, Transport,
    TransportProperties, Tunable,
};

/// A timer faster than this would be all that a run does.
const LEAST_TIMER: Span = Span(Duration::from_micros(100));

/// What the conversation's number is drawn for.
const CONVERSATION: u64 = 0x6b63_7020_636f_6e76;

/// What is worth searching. The interval starts at the reference's floor; windows
/// above a thousand segments are a second of play for nobody.
const TUNABLES: &[Tunable] = &[
    Tunable::integer("nodelay", 0, 2),
    Tunable::millis("interval", 10, 100),
    Tunable::integer("resend", 0, 6),
    Tunable::integer("fast_limit", 0, 10),
    Tunable::flag("nc"),
    Tunable::ratio("send_window", 8, 1024),
    Tunable::bytes("mtu", 576, 1400),
    Tunable::millis("minimum_rto", 10, 300),
    Tunable::flag("stream"),
    Tunable::flag("flush_on_send"),
    Tunable::flag("flush_on_input"),
    Tunable::flag("ack_no_delay"),
    Tunable::flag("wake_at_timeouts"),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "kcp";
    const LIBRARY: &'static str = OWN_LIBRARY;
    const TUNABLES: &'static [Tunable] = TUNABLES;

    fn check(&self) -> Result<(), BadSetting> {
        within(
            "mtu",
            self.mtu.bytes(),
            (LEAST_MTU + self.fec_bytes()) as u64..=u64::from(u16::MAX),
        )?;
        if let Some(fec) = self.fec {
            fec.check()?;
        }
        within("rules.fragment_limit", self.rules.fragment_limit, 2..=256)?;
        within("send_queue_limit", self.send_queue_limit, 1..=1_000_000)?;
        within(
            "stream_message_limit",
            self.stream_message_limit.bytes(),
            1..=u64::from(u32::MAX),
        )?;
        let day = Span::from_millis(86_400_000);
        within("peer_timeout", self.peer_timeout, Span::ZERO..=day)?;
        for side in [Side::Client, Side::Server] {
            let settings = self.of(side);
            if settings.wake_at_timeouts && settings.update_timer.is_some() {
                let why = "cannot be beside `update_timer`: updates have one timer";
                return Err(BadSetting::new("wake_at_timeouts", why));
            }
            within("nodelay", settings.nodelay, 0..=2)?;
            within("send_window", settings.send_window, 1..=u16::MAX)?;
            within("receive_window", settings.receive_window, 1..=u16::MAX)?;
            if let Some(period) = settings.update_timer {
                let longest = Span::from_millis(60_000);
                within("update_timer", period, LEAST_TIMER..=longest)?;
            }
        }
        Ok(())
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    fn properties(&self) -> TransportProperties {
        let carried = Encapsulation::UdpIpv4.header_bytes();
        let framing_bytes = if self.stream { LENGTH_BYTES } else { 0 };
        TransportProperties {
            reliable: true,
            ordered: true,
            head_of_line: self.head_of_line(),
            encrypted: false,
            mtu_bytes: self.mtu.bytes() as u32 + carried,
            header_bytes: (HEADER_BYTES + self.fec_bytes() + framing_bytes) as u32 + carried,
            acks: self.acknowledgements(),
            varies: String::new(),
            late_answer: self.late_answer(carried),
            congestion_control: self.congestion_control(),
            peer_timeout: self
                .given_up_after()
                .map_or(PeerTimeout::Never, PeerTimeout::After),
            fixed: "flushes no oftener than every 10 ms but for those out of turn".to_owned(),
        }
    }

    fn largest_message_bytes(&self) -> usize {
        let [client, server] = [Side::Client, Side::Server].map(|side| self.of(side));
        let up = Limits::new(&client, &server).message_bytes;
        up.min(Limits::new(&server, &client).message_bytes)
    }

    /// The silence, or the transmissions on a path whose timeout is no longer than
    /// KCP's first guess, 200 ms. With `nodelay` 0, whose timeouts double, that is
    /// more than a day for 20 transmissions.
    fn dead_link_after(&self) -> Option<Duration> {
        self.given_up_after()
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        let conversation = derive(seed, CONVERSATION) as u32;
        let end = |side| {
            KcpEndpoint::new(self, side, conversation, start).expect("the settings are checked")
        };
        Pair {
            client: Box::new(end(Side::Client)),
            server: Box::new(end(Side::Server)),
        }
    }
}

impl Settings {
    fn acknowledgements(&self) -> String {
        let when = if self.flush_on_input {
            "at once, with the answer if there is one".to_owned()
        } else if self.ack_no_delay {
            "at once".to_owned()
        } else {
            format!("at the next flush (every {})", self.interval)
        };
        format!("every segment, {when}")
    }

    fn congestion_control(&self) -> String {
        let own = if self.nc {
            "none (nc): windows only"
        } else {
            "KCP's own: one segment after a timeout"
        };
        let parity = self
            .fec
            .map(|fec| format!("; {} parity after {} datagrams", fec.parity, fec.data));
        format!("{own}{}", parity.unwrap_or_default())
    }

    /// What an acknowledgement without its answer costs: it is a segment of its own
    /// with the answer, too, and alone wants a datagram's headers.
    fn late_answer(&self, carried: u32) -> String {
        let alone = format!(
            "{} B, the headers of another datagram, for the acknowledgement",
            self.fec_bytes() as u32 + carried
        );
        if self.flush_on_input || self.ack_no_delay {
            alone
        } else {
            format!("nothing up to the next flush, then {alone}")
        }
    }

    /// With its own congestion control KCP starts over with one segment after a loss.
    fn head_of_line(&self) -> HeadOfLine {
        let sides = [Side::Client, Side::Server].map(|side| self.of(side));
        if sides.iter().all(|side| side.nc) {
            HeadOfLine::AtReceiver
        } else {
            HeadOfLine::AtSender
        }
    }

    /// When the slower side gives its peer up.
    fn given_up_after(&self) -> Option<Duration> {
        let silence = Some(self.peer_timeout.0).filter(|it| !it.is_zero());
        let sides = [Side::Client, Side::Server].map(|side| self.of(side));
        let transmissions = sides.iter().filter_map(Self::side_dead_after).max();
        [silence, transmissions].into_iter().flatten().min()
    }

    /// How long a resolved side takes to notice by transmissions.
    fn side_dead_after(&self) -> Option<Duration> {
        let config = self.config();
        let first = FIRST_RTO_MS.max(config.least_rto_ms());
        let flushes = self.update_timer.unwrap_or_default().duration()
            + Duration::from_millis(u64::from(config.bounded_interval_ms()));
        let mut timeout = u64::from(first);
        let mut waited = Duration::from_millis(timeout / 8) + flushes;
        for _ in 1..config.dead_link {
            waited = waited
                .saturating_add(Duration::from_millis(timeout))
                .saturating_add(flushes);
            let more = match (self.rules.backoff, self.nodelay) {
                (Backoff::ByNodelay, 0) => timeout,
                (Backoff::ByNodelay, 1) => timeout / 2,
                (Backoff::Linear2015, 0) => u64::from(first),
                _ => u64::from(first / 2),
            };
            timeout = timeout.saturating_add(more);
        }
        (config.dead_link > 0).then_some(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_units::Size;

    #[test]
    fn settings_that_cannot_be_are_refused_in_words() {
        let refused = |settings: Settings| settings.check().unwrap_err().to_string();
        let mtu = Settings {
            mtu: Size(49),
            ..Settings::default()
        };
        assert_eq!(
            refused(mtu),
            "setting `mtu`: 49 is out of range; expected 50 to 65535"
        );
        let timer = Settings {
            update_timer: Some(Span::ZERO),
            ..Settings::default()
        };
        assert_eq!(
            refused(timer),
            "setting `update_timer`: 0 ns is out of range; expected 100 us to 1 min"
        );
        let mut mode = Settings::default();
        mode.server.nodelay = Some(3);
        assert_eq!(
            refused(mode),
            "setting `nodelay`: 3 is out of range; expected 0 to 2"
        );
    }

    #[test]
    fn the_largest_message_is_that_of_the_direction_with_the_narrower_window() {
        let of = |client: Option<u16>, server: Option<u16>| {
            // Whose windows have no floor, and whose messages more segments.
            let mut settings = Settings::late_2015();
            settings.client.receive_window = client;
            settings.server.receive_window = server;
            settings.largest_message_bytes()
        };
        let both = of(Some(64), Some(64));
        assert!(both > 1_000, "{both}");
        let narrower = of(Some(32), Some(64));
        assert!(narrower > 1_000 && narrower < both, "{narrower} of {both}");
        assert_eq!(of(Some(64), Some(32)), narrower);
        assert_eq!(of(Some(32), Some(32)), narrower);
    }

    #[test]
    fn an_end_notices_a_dead_link_within_what_is_promised() {
        let seconds = |settings: Settings| settings.dead_link_after().unwrap().as_secs();
        assert_eq!(Settings::late_2015().dead_link_after(), None);
        assert!((20..60).contains(&seconds(Settings {
            dead_link: 20,
            peer_timeout: Span::ZERO,
            ..Settings::default()
        })));
        assert_eq!(seconds(Settings::library_default()), 30);
        assert!(
            seconds(Settings {
                dead_link: 20,
                peer_timeout: Span::ZERO,
                ..Settings::library_default()
            }) > 86_400
        );
    }
}
