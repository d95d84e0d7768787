//! Loss as the receiver measures it and as the sender makes use of it.

use std::time::Duration;

use lagometer_units::Time;

use crate::replay_window::ReplayWindow;

/// So many messages are worth a report at least.
const LEAST_EXPECTED: u32 = 10;

/// What an earlier report weighs when the next comes: at one a second the last
/// five seconds or so decide.
const MEMORY: f64 = 0.8;

/// How many messages came of those that should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The newest message that had come; distinguishes an old report from a new one.
    pub(super) newest: u32,
    /// Messages sent since the last report.
    pub(super) expected: u16,
    /// How many of them came by themselves, neither as a copy nor computed.
    pub(super) received: u16,
}

/// The receiver's part: counts what comes.
#[derive(Debug)]
pub(super) struct LossMeter {
    interval: Duration,
    seen: ReplayWindow,
    period: Option<Period>,
}

/// Since the last report.
#[derive(Debug)]
struct Period {
    since: Time,
    /// The newest message at the time of the last report, and now.
    from: u32,
    newest: u32,
    received: u32,
}

impl LossMeter {
    /// Reports are at least `interval` apart.
    pub(super) const fn new(interval: Duration) -> Self {
        Self {
            interval,
            seen: ReplayWindow::new(),
            period: None,
        }
    }

    /// A message came by itself. Returns a report if one is due.
    pub(super) fn on_message(&mut self, now: Time, number: u32) -> Option<Report> {
        if !self.seen.accept(number) {
            return None;
        }
        let Some(period) = &mut self.period else {
            self.period = Some(Period {
                since: now,
                from: number,
                newest: number,
                received: 0,
            });
            return None;
        };
        period.received += 1;
        if number.wrapping_sub(period.newest) < u32::MAX / 2 {
            period.newest = number;
        }
        let expected = period.newest.wrapping_sub(period.from);
        if expected < LEAST_EXPECTED || now.since(period.since) < self.interval {
            return None;
        }
        let expected = expected.min(u32::from(u16::MAX));
        let report = Report {
            newest: period.newest,
            expected: expected as u16,
            received: period.received.min(expected) as u16,
        };
        *period = Period {
            since: now,
            from: period.newest,
            newest: period.newest,
            received: 0,
        };
        Some(report)
    }
}

/// The sender's part: the loss that recent reports show.
#[derive(Debug, Default)]
pub(super) struct LossEstimate {
    newest: Option<u32>,
    /// Messages lost and sent, older ones weighing less.
    lost: f64,
    sent: f64,
}

impl LossEstimate {
    /// Takes in a report; one that is not newer than the last changes nothing.
    pub(super) fn on_report(&mut self, report: Report) {
        let is_newer =
            |newest: u32| (1..u32::MAX / 2).contains(&report.newest.wrapping_sub(newest));
        let is_sound = report.received <= report.expected;
        if !is_sound || !self.newest.is_none_or(is_newer) {
            return;
        }
        self.newest = Some(report.newest);
        self.lost = MEMORY * self.lost + f64::from(report.expected - report.received);
        self.sent = MEMORY * self.sent + f64::from(report.expected);
    }

    /// The share that is lost on its way; nothing before the first report.
    pub(super) fn share(&self) -> f64 {
        if self.sent > 0.0 {
            self.lost / self.sent
        } else {
            0.0
        }
    }
}

/// The least number of parity datagrams from `range` for a group of `data`
/// messages with which no more than `residual` of the messages stay lost, where
/// each datagram is lost by itself with the probability `loss`; the most if none
/// does.
pub(super) fn parity_for(
    data: u8,
    loss: f64,
    residual: f64,
    range: std::ops::RangeInclusive<u8>,
) -> u8 {
    let most = *range.end();
    let suffices = |&parity: &u8| residual_loss(data, parity, loss) <= residual;
    range.into_iter().find(suffices).unwrap_or(most)
}

/// The share of messages that stay lost: those that are lost themselves, and with
/// them at least `parity` of the others of their group.
fn residual_loss(data: u8, parity: u8, loss: f64) -> f64 {
    if loss >= 1.0 {
        return 1.0;
    }
    let others = u32::from(data) + u32::from(parity) - 1;
    // Binomial: the probability that fewer than `parity` of the others are lost.
    let mut term = (0..others).fold(1.0, |power, _| power * (1.0 - loss));
    let mut repaired = 0.0;
    for lost in 0..u32::from(parity) {
        repaired += term;
        term *= f64::from(others - lost) / f64::from(lost + 1) * loss / (1.0 - loss);
    }
    loss * (1.0 - repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_what_came_by_itself_and_comes_at_its_interval() {
        let mut meter = LossMeter::new(Duration::from_secs(1));
        let mut reports = Vec::new();
        for number in 0..100 {
            // Each fifth is lost, the others come twice.
            if number % 5 != 3 {
                let now = Time::from_millis(u64::from(number) * 50);
                reports.extend(meter.on_message(now, number));
                reports.extend(meter.on_message(now, number));
            }
        }
        let expected = |newest| Report {
            newest,
            expected: 20,
            received: 16,
        };
        assert_eq!(reports, [20, 40, 60, 80].map(expected));
    }

    #[test]
    fn an_estimate_follows_the_newest_reports_and_no_old_one() {
        let mut estimate = LossEstimate::default();
        let report = |newest, received| Report {
            newest,
            expected: 20,
            received,
        };
        assert!(estimate.share() <= 0.0);
        estimate.on_report(report(20, 15));
        assert!((estimate.share() - 0.25).abs() < 1e-9);
        estimate.on_report(report(20, 0));
        estimate.on_report(report(5, 0));
        estimate.on_report(report(40, 21));
        assert!((estimate.share() - 0.25).abs() < 1e-9);
        for newest in 2..20 {
            estimate.on_report(report(newest * 20, 20));
        }
        assert!(estimate.share() < 0.01);
    }

    #[test]
    fn residual_loss_is_what_counting_every_case_gives() {
        for (data, parity) in [(1, 1), (2, 1), (4, 2), (3, 3), (4, 0)] {
            let all = u32::from(data + parity);
            let mut expected = 0.0;
            for case in 0_u32..1 << all {
                let gone = case.count_ones();
                if gone > u32::from(parity) {
                    let there = (all - gone).cast_signed();
                    let probability = 0.1_f64.powi(gone.cast_signed()) * 0.9_f64.powi(there);
                    // The first message stands for all.
                    expected += probability * f64::from(case & 1);
                }
            }
            let computed = residual_loss(data, parity, 0.1);
            assert!((computed - expected).abs() < 1e-12, "{data} {parity}");
        }
    }

    #[test]
    fn more_loss_asks_for_more_parity_within_the_range() {
        let parity = |loss| parity_for(4, loss, 0.001, 0..=4);
        let asked = [0.0, 0.01, 0.03, 0.05, 0.1, 1.0].map(parity);
        assert_eq!(asked, [0, 1, 2, 3, 4, 4]);
    }
}
