//! The rate of a video call: a receiver that reports, a sender that adapts.
//!
//! A simple form of what WebRTC does (draft-ietf-rmcat-gcc-02, "A Google
//! Congestion Control Algorithm for Real-Time Communication"): by delay, the rate
//! falls to 0.85 of what arrived where packets wait in queues, and grows by 8 % a
//! second where they do not (section 5.5; here the wait itself is held against a
//! threshold, there its trend); by loss, it falls by half the share lost above
//! 10 %, and grows by 5 % a second below 2 % (section 6).

use std::time::Duration;

use lagometer_link::cross::Adapts;
use lagometer_units::Time;

/// An IP packet with a report (RTCP feedback of a few blocks).
pub(super) const REPORT_BYTES: u64 = 80;

/// How often the receiver reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// Where a call begins, in bits per second.
const FIRST_RATE: f64 = 300e3;
/// A wait in queues above this is too long.
const LONG_WAIT: Duration = Duration::from_millis(50);
/// After a rate was lowered it is not lowered again for so long: what was sent
/// before is still on its way.
const PATIENT_FOR: Duration = Duration::from_millis(300);
/// How often the rate is set by loss.
const LOSS_EVERY: Duration = Duration::from_secs(1);
/// Without a report for so long the rate is halved.
const SILENT_FOR: Duration = Duration::from_secs(1);

/// What the receiver says of the time since its last report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    expected: u64,
    arrived: u64,
    bytes: u64,
    over: Duration,
    /// The shortest wait of a packet beyond the least delay ever seen.
    waited: Duration,
}

/// The end that sends.
#[derive(Debug)]
pub(super) struct Sender {
    least: f64,
    most: f64,
    adapts: Adapts,
    /// Bits per second.
    rate: f64,
    lowered: Option<Time>,
    reported_at: Time,
    by_loss: (Time, u64, u64),
}

/// The end that receives.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    highest: Option<u64>,
    reported: u64,
    arrived: u64,
    bytes: u64,
    least_delay: Option<Duration>,
    waited: Option<Duration>,
    last_report: Option<Time>,
}

impl Sender {
    pub(super) const fn new(least: f64, most: f64, adapts: Adapts) -> Self {
        Self {
            least,
            most,
            adapts,
            rate: least,
            lowered: None,
            reported_at: Time::ZERO,
            by_loss: (Time::ZERO, 0, 0),
        }
    }

    /// A call begins.
    pub(super) fn start(&mut self, now: Time) {
        self.rate = FIRST_RATE.clamp(self.least, self.most);
        self.lowered = None;
        self.reported_at = now;
        self.by_loss = (now, 0, 0);
    }

    /// The rate at `now` in bits per second.
    pub(super) fn rate(&mut self, now: Time) -> f64 {
        if now.since(self.reported_at) >= SILENT_FOR {
            self.reported_at = now;
            self.set(self.rate / 2.0);
        }
        self.rate
    }

    pub(super) fn adapt(&mut self, now: Time, report: &Report) {
        self.reported_at = now;
        match self.adapts {
            Adapts::Delay => self.by_delay(now, report),
            Adapts::Loss => self.by_loss(now, report),
        }
    }

    fn by_delay(&mut self, now: Time, report: &Report) {
        let seconds = report.over.as_secs_f64().max(1e-3);
        if report.waited <= LONG_WAIT {
            self.set(self.rate * libm::pow(1.08, seconds));
            return;
        }
        let may_lower = self.lowered.is_none_or(|at| now.since(at) >= PATIENT_FOR);
        if may_lower {
            let arrived = report.bytes as f64 * 8.0 / seconds;
            self.set(0.85 * arrived.min(self.rate));
            self.lowered = Some(now);
        }
    }

    fn by_loss(&mut self, now: Time, report: &Report) {
        let (since, expected, arrived) = &mut self.by_loss;
        *expected += report.expected;
        *arrived += report.arrived;
        if now.since(*since) < LOSS_EVERY || *expected == 0 {
            return;
        }
        let lost = expected.saturating_sub(*arrived) as f64 / *expected as f64;
        self.by_loss = (now, 0, 0);
        if lost > 0.10 {
            self.set(self.rate * (1.0 - 0.5 * lost));
        } else if lost < 0.02 {
            self.set(self.rate * 1.05);
        }
    }

    const fn set(&mut self, rate: f64) {
        self.rate = rate.clamp(self.least, self.most);
    }
}

impl Receiver {
    pub(super) fn receive(&mut self, now: Time, sequence: u64, sent: Time, bytes: u64) {
        if self.highest.is_none() {
            self.reported = sequence;
            self.last_report = Some(now);
        }
        self.highest = self.highest.max(Some(sequence));
        self.arrived += 1;
        self.bytes += bytes;
        let delay = now.since(sent);
        let least = self.least_delay.map_or(delay, |least| least.min(delay));
        self.least_delay = Some(least);
        let wait = delay.saturating_sub(least);
        self.waited = Some(self.waited.map_or(wait, |waited| waited.min(wait)));
    }

    /// When the next report is due. Nothing is reported before a packet came.
    pub(super) fn next_report(&self) -> Option<Time> {
        self.last_report.map(|last| last + REPORT_EVERY)
    }

    /// The report that is due at `now`, unless nothing arrived since the last.
    pub(super) fn report(&mut self, now: Time) -> Option<Report> {
        self.next_report().filter(|&due| due <= now)?;
        let over = now.since(self.last_report.replace(now)?);
        let waited = self.waited.take()?;
        let next = self.highest? + 1;
        let report = Report {
            expected: next.saturating_sub(self.reported),
            arrived: std::mem::take(&mut self.arrived),
            bytes: std::mem::take(&mut self.bytes),
            over,
            waited,
        };
        self.reported = self.reported.max(next);
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(waited_ms: u64, expected: u64, arrived: u64) -> Report {
        Report {
            expected,
            arrived,
            bytes: arrived * 1200,
            over: REPORT_EVERY,
            waited: Duration::from_millis(waited_ms),
        }
    }

    fn sender(adapts: Adapts) -> Sender {
        let mut sender = Sender::new(100e3, 2e6, adapts);
        sender.start(Time::ZERO);
        sender
    }

    #[test]
    fn by_delay_the_rate_grows_until_packets_wait() {
        let mut sender = sender(Adapts::Delay);
        for tenth in 1..=100 {
            sender.adapt(Time::from_millis(100 * tenth), &report(3, 10, 10));
        }
        let grown = sender.rate(Time::from_secs(10));
        assert!(
            (grown / (300e3 * libm::pow(1.08, 10.0)) - 1.0).abs() < 1e-6,
            "{grown}"
        );
        // 4 packets of 1200 B in 100 ms are 384 kbit/s.
        sender.adapt(Time::from_millis(10_100), &report(80, 10, 4));
        assert!((sender.rate - 0.85 * 384e3).abs() < 1.0, "{}", sender.rate);
        sender.adapt(Time::from_millis(10_200), &report(80, 10, 1));
        assert!(
            (sender.rate - 0.85 * 384e3).abs() < 1.0,
            "lowered twice at once"
        );
    }

    #[test]
    fn by_loss_a_long_wait_is_no_matter_and_loss_is() {
        let mut sender = sender(Adapts::Loss);
        for tenth in 1..=10 {
            sender.adapt(Time::from_millis(100 * tenth), &report(500, 10, 10));
        }
        assert!((sender.rate - 315e3).abs() < 1.0, "{}", sender.rate);
        for tenth in 11..=20 {
            sender.adapt(Time::from_millis(100 * tenth), &report(0, 10, 8));
        }
        assert!((sender.rate - 0.9 * 315e3).abs() < 1.0, "{}", sender.rate);
    }

    #[test]
    fn silence_halves_the_rate_down_to_the_least() {
        let mut sender = sender(Adapts::Delay);
        assert!((sender.rate(Time::from_millis(999)) - 300e3).abs() < 1.0);
        assert!((sender.rate(Time::from_millis(1000)) - 150e3).abs() < 1.0);
        assert!((sender.rate(Time::from_millis(2000)) - 100e3).abs() < 1.0);
    }

    #[test]
    fn a_report_counts_what_is_missing_and_the_wait_beyond_the_least() {
        let mut receiver = Receiver::default();
        assert_eq!(receiver.next_report(), None);
        for (at, sequence, sent) in [(20, 7, 0), (40, 8, 10), (70, 10, 30)] {
            receiver.receive(
                Time::from_millis(at),
                sequence,
                Time::from_millis(sent),
                1200,
            );
        }
        assert!(receiver.report(Time::from_millis(119)).is_none());
        let report = receiver.report(Time::from_millis(120)).unwrap();
        assert_eq!(
            (report.expected, report.arrived, report.bytes),
            (4, 3, 3600)
        );
        assert_eq!(report.waited, Duration::ZERO);
        receiver.receive(Time::from_millis(180), 11, Time::from_millis(100), 1200);
        let report = receiver.report(Time::from_millis(220)).unwrap();
        assert_eq!((report.expected, report.arrived), (1, 1));
        assert_eq!(report.waited, Duration::from_millis(60));
    }
}
