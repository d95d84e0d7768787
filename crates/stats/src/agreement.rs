//! Whether two testbeds tell the same of the same experiment: virtual time
//! beside real sockets, lane by lane.
//!
//! Both play the same schedule over the same network conditions, yet not the same
//! packets: real threads wake late, kernels have buffers of their own, and a
//! packet that leaves a millisecond later may meet another coin. So they are
//! held to agree within a tolerance that is stated, widened by what that luck of
//! the single packet does. How much it does is not reckoned but played: virtual
//! time plays the same network conditions several times with other coins, and the plays'
//! spread is the luck. (Reckoning with independent messages would find far less,
//! since one lost packet delays all that wait behind it.)

use crate::difference::noise_ms;
use crate::document::{Document, Lane, WITHIN_LIMITS_MS};
use crate::metric::{Metric, Statistic};

/// How far two testbeds may be apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Medians, in milliseconds, beside what late wake-ups can do.
    pub median_ms: f64,
    /// 99th percentiles, in milliseconds: at least this …
    pub p99_ms: f64,
    /// … or this share of the larger one, whichever is more.
    pub p99_share: f64,
    /// Shares delivered within a limit, as a share between 0 and 1.
    pub within: f64,
}

impl Default for Tolerance {
    /// Two milliseconds in the middle; at the edge a quarter or 15 ms, since
    /// there a single packet's luck is a whole retransmission; two points of
    /// a hundred delivered within each limit.
    fn default() -> Self {
        Self {
            median_ms: 2.0,
            p99_ms: 15.0,
            p99_share: 0.25,
            within: 0.02,
        }
    }
}

/// How two runs of one experiment agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// What was permitted.
    pub tolerance: Tolerance,
    /// How often the first testbed played, with other luck each time.
    pub plays: usize,
    /// What late wake-ups of the machines can add, in milliseconds.
    pub noise_ms: f64,
    /// Why neither can be held against the other, where that is so: a run
    /// that is not valid.
    pub invalid: Option<String>,
    /// The lanes both runs measured, in the first one's order.
    pub lanes: Vec<LaneAgreement>,
}

/// A figure in both testbeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Both {
    /// In the first: the mean of its plays.
    pub first: f64,
    /// In the second.
    pub second: f64,
    /// How far chance puts one play from the mean of the first testbed's:
    /// three standard deviations.
    pub luck: f64,
}

/// How one lane's two runs agree.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneAgreement {
    /// The lane.
    pub lane: String,
    /// Median round trips, in milliseconds.
    pub median_ms: Both,
    /// 99th percentiles, in milliseconds.
    pub p99_ms: Both,
    /// Of the shares delivered within a limit those that come nearest to what
    /// is permitted, between 0 and 1.
    pub within: Both,
    /// The limit they are for, in milliseconds.
    pub within_limit_ms: u32,
    /// Bytes on the wire over payload bytes.
    pub overhead: Both,
    /// What is beyond the tolerance, each in a few words.
    pub beyond: Vec<String>,
}

impl Agreement {
    /// Whether every lane is within the tolerance, there is at least one, and
    /// both runs are valid.
    #[must_use]
    pub fn holds(&self) -> bool {
        let within = self.lanes.iter().all(|lane| lane.beyond.is_empty());
        self.invalid.is_none() && !self.lanes.is_empty() && within
    }
}

/// Sets a run in the second testbed beside several in the first, which differ
/// in nothing but the luck of single packets, lane by lane.
#[must_use]
pub fn agreement(first: &[Document], second: &Document, tolerance: Tolerance) -> Agreement {
    let noise_ms = first.first().map_or(0.0, noise_ms) + noise_ms(second);
    let invalid = first
        .iter()
        .chain([second])
        .filter_map(|document| document.audit.as_ref())
        .find(|audit| !audit.valid)
        .map(|audit| audit.faults.join("; "));
    let lanes = first
        .first()
        .iter()
        .flat_map(|document| &document.lanes)
        .filter_map(|lane| {
            let other = named(second, &lane.lane)?;
            let plays: Vec<&Lane> = first
                .iter()
                .filter_map(|document| named(document, &lane.lane))
                .collect();
            Some(of_lane(&plays, other, tolerance, noise_ms))
        })
        .collect();
    Agreement {
        tolerance,
        plays: first.len(),
        noise_ms,
        invalid,
        lanes,
    }
}

fn named<'a>(document: &'a Document, lane: &str) -> Option<&'a Lane> {
    document.lanes.iter().find(|other| other.lane == lane)
}

/// `plays` has at least one lane, and all are of one name.
fn of_lane(plays: &[&Lane], second: &Lane, tolerance: Tolerance, noise_ms: f64) -> LaneAgreement {
    let both = |of: &dyn Fn(&Lane) -> f64| {
        let values: Vec<f64> = plays.iter().map(|lane| of(lane)).collect();
        Both::of(&values, of(second))
    };
    let (within_limit_ms, within) = WITHIN_LIMITS_MS
        .into_iter()
        .map(|limit| (limit, both(&|lane| share_within(lane, limit))))
        .max_by(|(_, a), (_, b)| {
            let stretch = |figure: &Both| figure.apart() / tolerance.within.max(figure.luck);
            stretch(a).total_cmp(&stretch(b))
        })
        .unwrap_or_default();
    let mut lane = LaneAgreement {
        lane: second.lane.clone(),
        median_ms: both(&|lane| delay(lane, Statistic::P50)),
        p99_ms: both(&|lane| delay(lane, Statistic::P99)),
        within,
        within_limit_ms,
        overhead: both(&|lane| lane.wire.as_ref().map_or(0.0, |wire| wire.overhead)),
        beyond: Vec::new(),
    };
    let first_failure = plays.iter().find_map(|lane| lane.failure.as_ref());
    for (failure, which) in [
        (first_failure, "first"),
        (second.failure.as_ref(), "second"),
    ] {
        if let Some(why) = failure {
            lane.beyond.push(format!("the {which} run failed: {why}"));
        }
    }
    let mut hold = |figure: Both, allowed: f64, name: &str| {
        if figure.apart() > allowed.max(figure.luck) {
            lane.beyond.push(name.to_owned());
        }
    };
    hold(lane.median_ms, tolerance.median_ms + noise_ms, "median");
    let larger = lane.p99_ms.first.max(lane.p99_ms.second);
    // One that is lost in one testbed alone is beyond every tolerance.
    let share = if larger.is_finite() {
        tolerance.p99_share * larger
    } else {
        0.0
    };
    let p99_ms = tolerance.p99_ms.max(share) + noise_ms;
    hold(lane.p99_ms, p99_ms, "99th percentile");
    let share = format!("share within {within_limit_ms} ms");
    hold(within, tolerance.within, &share);
    lane
}

/// Infinite where the quantile was lost.
fn delay(lane: &Lane, statistic: Statistic) -> f64 {
    Metric::Rtt(statistic).of(lane).unwrap_or(f64::INFINITY)
}

fn share_within(lane: &Lane, limit: u32) -> f64 {
    let found = lane.within.iter().find(|(key, _)| key.0 == limit);
    found.map_or(0.0, |(_, share)| *share)
}

impl Both {
    /// The mean of the first testbed's plays beside the second's one. A single
    /// play tells nothing of luck.
    fn of(plays: &[f64], second: f64) -> Self {
        let count = plays.len() as f64;
        let mean = plays.iter().sum::<f64>() / count;
        let squares: f64 = plays.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = squares / (count - 1.0).max(1.0);
        Self {
            first: mean,
            second,
            // That of one play, and that of the mean of the others.
            luck: 3.0 * (variance * (1.0 + 1.0 / count)).sqrt(),
        }
    }

    /// How far the two are apart.
    #[must_use]
    pub fn apart(self) -> f64 {
        if self.first.is_infinite() && self.second.is_infinite() {
            return 0.0;
        }
        (self.first - self.second).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Audit;
    use crate::document::sample::sample_document;

    fn pair() -> (Document, Document) {
        let mut first = sample_document();
        first.audit = None;
        (first.clone(), first)
    }

    #[test]
    fn a_run_agrees_with_itself() {
        let (first, second) = pair();
        let agreement = agreement(&[first], &second, Tolerance::default());
        assert!(agreement.holds(), "{agreement:?}");
        assert_eq!(agreement.lanes.len(), 2);
    }

    #[test]
    fn each_figure_is_held_to_its_own_tolerance() {
        type Damage = fn(&mut Lane);
        let damages: [(Damage, &str); 5] = [
            (
                |lane| lane.rtt_ms.p50 = lane.rtt_ms.p50.map(|p50| p50 + 2.5),
                "median",
            ),
            (
                |lane| lane.rtt_ms.p99 = lane.rtt_ms.p99.map(|p99| p99 * 4.0),
                "99th percentile",
            ),
            (|lane| lane.rtt_ms.p99 = None, "99th percentile"),
            (
                |lane| {
                    for (_, share) in lane.within.iter_mut().take(1) {
                        *share += 0.2;
                    }
                },
                "share within 50 ms",
            ),
            (
                |lane| lane.failure = Some("gone".to_owned()),
                "the second run failed: gone",
            ),
        ];
        for (damage, said) in damages {
            let (first, mut second) = pair();
            damage(&mut second.lanes[0]);
            let agreement = agreement(&[first], &second, Tolerance::default());
            assert!(!agreement.holds());
            assert_eq!(agreement.lanes[0].beyond, [said]);
            assert!(agreement.lanes[1].beyond.is_empty());
        }
    }

    #[test]
    fn a_run_that_is_not_valid_agrees_with_nothing() {
        let (first, mut second) = pair();
        second.audit = sample_document().audit.map(|audit| Audit {
            valid: false,
            ..audit
        });
        let first = [first];
        assert!(!agreement(&first, &second, Tolerance::default()).holds());
        second.audit = None;
        second.lanes.clear();
        assert!(!agreement(&first, &second, Tolerance::default()).holds());
        assert!(!agreement(&[], &second, Tolerance::default()).holds());
    }

    #[test]
    fn what_luck_does_is_permitted_and_no_more() {
        let (first, mut second) = pair();
        let p99_ms = first.lanes[0].rtt_ms.p99.unwrap();
        let plays = |factors: [f64; 3]| {
            factors.map(|factor| {
                let mut play = first.clone();
                play.lanes[0].rtt_ms.p99 = Some(p99_ms * factor);
                play
            })
        };
        second.lanes[0].rtt_ms.p99 = Some(2.0 * p99_ms);
        let narrow = agreement(&plays([0.95, 1.0, 1.05]), &second, Tolerance::default());
        assert_eq!(narrow.lanes[0].beyond, ["99th percentile"]);
        let wide = agreement(&plays([0.6, 1.0, 1.4]), &second, Tolerance::default());
        assert!(wide.holds(), "{wide:?}");
        assert_eq!(wide.plays, 3);
    }
}
