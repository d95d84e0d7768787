//! Whether two testbeds tell the same of the same experiment: virtual time
//! beside real sockets, lane by lane.
//!
//! Both play the same schedule over the same weather, yet not the same
//! packets: real threads wake late, kernels have buffers of their own, and a
//! packet that leaves a millisecond later may meet another coin. So they are
//! held to agree within a tolerance that is stated, widened where the run is
//! so short that chance alone exceeds it.

use crate::difference::noise_ms;
use crate::distribution::Distribution;
use crate::document::{Document, Lane, WITHIN_LIMITS_MS};

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
    /// What late wake-ups of the machines can add, in milliseconds.
    pub noise_ms: f64,
    /// Why neither can be held against the other, where that is so: a run
    /// that is not valid.
    pub invalid: Option<String>,
    /// The lanes both runs measured, in the first one's order.
    pub lanes: Vec<LaneAgreement>,
}

/// A figure in both runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Both {
    /// In the first run.
    pub first: f64,
    /// In the second.
    pub second: f64,
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
    /// Of the shares delivered within a limit those that are farthest apart,
    /// between 0 and 1.
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

/// Sets the second run beside the first, lane by lane.
#[must_use]
pub fn agreement(first: &Document, second: &Document, tolerance: Tolerance) -> Agreement {
    let noise_ms = noise_ms(first) + noise_ms(second);
    let invalid = [first, second]
        .into_iter()
        .filter_map(|document| document.audit.as_ref())
        .find(|audit| !audit.valid)
        .map(|audit| audit.faults.join("; "));
    let lanes = first
        .lanes
        .iter()
        .filter_map(|lane| {
            let other = second.lanes.iter().find(|other| other.lane == lane.lane)?;
            Some(of_lane(lane, other, tolerance, noise_ms))
        })
        .collect();
    Agreement {
        tolerance,
        noise_ms,
        invalid,
        lanes,
    }
}

fn of_lane(first: &Lane, second: &Lane, tolerance: Tolerance, noise_ms: f64) -> LaneAgreement {
    let both = |of: fn(&Lane) -> f64| Both {
        first: of(first),
        second: of(second),
    };
    let (within_limit_ms, within) = farthest_shares(first, second);
    let mut lane = LaneAgreement {
        lane: first.lane.clone(),
        median_ms: both(|lane| lane.rtt_ms.p50),
        p99_ms: both(|lane| lane.rtt_ms.p99),
        within,
        within_limit_ms,
        overhead: both(|lane| lane.wire.as_ref().map_or(0.0, |wire| wire.overhead)),
        beyond: Vec::new(),
    };
    for (failure, which) in [(&first.failure, "first"), (&second.failure, "second")] {
        if let Some(why) = failure {
            lane.beyond.push(format!("the {which} run failed: {why}"));
        }
    }
    if lane.median_ms.apart() > tolerance.median_ms + noise_ms {
        lane.beyond.push("median".to_owned());
    }
    let larger = lane.p99_ms.first.max(lane.p99_ms.second);
    let allowed = tolerance.p99_ms.max(tolerance.p99_share * larger) + noise_ms;
    if lane.p99_ms.apart() > allowed && !luck_explains_p99(first, second) {
        lane.beyond.push("99th percentile".to_owned());
    }
    let share = lane.within.first.midpoint(lane.within.second);
    if lane.within.apart() > tolerance.within.max(luck(share, first, second)) {
        lane.beyond
            .push(format!("share within {within_limit_ms} ms"));
    }
    lane
}

/// How far apart chance puts the shares of two runs whose messages each had
/// the probability `share`: three standard deviations of their difference.
fn luck(share: f64, first: &Lane, second: &Lane) -> f64 {
    let messages = first.messages.intended.min(second.messages.intended).max(1);
    3.0 * (2.0 * share * (1.0 - share) / messages as f64).sqrt()
}

/// Whether one run's 99th percentile lies, in the other, among the quantiles
/// that chance makes of it: a short run's slowest hundredth is a handful of
/// messages, each with coins of its own.
fn luck_explains_p99(first: &Lane, second: &Lane) -> bool {
    let luck = luck(0.99, first, second);
    let (low, high) = (0.99 - luck, 0.99 + luck);
    [(first, second), (second, first)]
        .into_iter()
        .all(|(one, other)| {
            let Ok(distribution) = Distribution::from_base64(&other.histogram) else {
                return false;
            };
            let at = |share: f64| distribution.at_share(share.min(1.0)).as_secs_f64() * 1e3;
            (at(low)..=at(high)).contains(&one.rtt_ms.p99)
        })
}

/// The limit whose shares are farthest apart, and the shares.
fn farthest_shares(first: &Lane, second: &Lane) -> (u32, Both) {
    let share = |lane: &Lane, limit| {
        let found = lane.within.iter().find(|(key, _)| key.0 == limit);
        found.map_or(0.0, |(_, share)| *share)
    };
    WITHIN_LIMITS_MS
        .into_iter()
        .map(|limit| {
            let both = Both {
                first: share(first, limit),
                second: share(second, limit),
            };
            (limit, both)
        })
        .max_by(|(_, a), (_, b)| a.apart().total_cmp(&b.apart()))
        .unwrap_or_default()
}

impl Both {
    /// How far the two are apart.
    #[must_use]
    pub fn apart(self) -> f64 {
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
        let agreement = agreement(&first, &second, Tolerance::default());
        assert!(agreement.holds(), "{agreement:?}");
        assert_eq!(agreement.lanes.len(), 2);
    }

    #[test]
    fn each_figure_is_held_to_its_own_tolerance() {
        type Damage = fn(&mut Lane);
        let damages: [(Damage, &str); 4] = [
            (|lane| lane.rtt_ms.p50 += 2.5, "median"),
            (|lane| lane.rtt_ms.p99 *= 4.0, "99th percentile"),
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
            let agreement = agreement(&first, &second, Tolerance::default());
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
        assert!(!agreement(&first, &second, Tolerance::default()).holds());
        second.audit = None;
        second.lanes.clear();
        assert!(!agreement(&first, &second, Tolerance::default()).holds());
    }
}
