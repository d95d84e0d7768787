//! A run held against an earlier one of the same experiment: what became worse
//! beyond chance.
//!
//! Every lane that both played is compared by every figure of [`figures_of`], as two runs
//! are that are set beside each other ([`difference_of_runs`]): all comparisons together
//! are held to one chance of [`TWO_RUNS_ERRING`] to find a change where there is none
//! (Holm's procedure), so that a gate on a dozen lanes does not cry wolf every other
//! night. In virtual time the same seeds meet the same network conditions in both runs and
//! are compared seed by seed.
//!
//! What is certain may still not matter: a figure may become worse by a share of
//! itself, the tolerance, before it counts. Of a share in time it is what is
//! late that may grow.

use lagometer_stats::unsure;

use crate::difference::{
    TWO_RUNS_ERRING, difference_of_runs, floor, is_spent, is_virtual_time, may_compare, noise_ms,
};
use crate::document::{Document, Lane};
use crate::metric::{Metric, Statistic};
use crate::verdict::ranking_limit_ms;

/// Histograms keep three significant digits: what is closer is the same.
const RESOLUTION: f64 = 1e-3;

/// One figure of one lane in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The lane's name, the same in both runs.
    pub lane: String,
    /// The figure that is compared.
    pub metric: Metric,
    /// In the baseline, in the figure's unit. Infinite where so many messages
    /// were lost that a quantile lies among them; `None` where it was not
    /// measured.
    pub before: Option<f64>,
    /// In the run, likewise.
    pub now: Option<f64>,
    /// What can be said.
    pub finding: ShiftFinding,
}

/// What two runs say of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShiftFinding {
    /// Nothing that chance or the tolerance would not cover.
    Same,
    /// It became better, beyond both.
    Better,
    /// It became worse, beyond both.
    Worse,
    /// There is too little to judge by: few seeds, a short run, not as many of
    /// them in both.
    Unknown,
}

/// The figures that are compared: the share in time, median and tail, lag, what
/// was lost, what was sent for it; of a game the view and its events.
const fn figures_of(limit_ms: u32) -> [Metric; 10] {
    [
        Metric::Within(limit_ms),
        Metric::Rtt(Statistic::P50),
        Metric::Rtt(Statistic::P99),
        Metric::Rtt(Statistic::P99_9),
        Metric::Lag,
        Metric::Lost,
        Metric::Overhead,
        Metric::InterpolationNeeded,
        Metric::ViewFrozen,
        Metric::Event(Statistic::P99),
    ]
}

/// Holds every lane of `now` against the lane of the same name in `baseline`,
/// in the order of the baseline. `tolerance` is the share of itself by which a
/// figure may change, at least 0.
///
/// A lane that only one of the documents has is left out, and so is one that
/// played in neither, and what one put on the wire that died ([`may_compare`]); one that no
/// longer plays has no figure `now` and is worse in all it had. Of one that plays and has a figure no more nothing is known.
#[must_use]
pub fn against_baseline(baseline: &Document, now: &Document, tolerance: f64) -> Vec<Shift> {
    let noise_ms = noise_ms(baseline) + noise_ms(now);
    let is_repeated = is_repeated(baseline, now);
    let limit_ms = common_limit_ms(baseline, now);
    let mut shifts = Vec::new();
    // Of each shift that chance has a hold on, the chance of it.
    let mut doubtful = Vec::new();
    for before in &baseline.lanes {
        let Some(now) = now.lanes.iter().find(|lane| lane.lane == before.lane) else {
            continue;
        };
        let figures = figures_of(limit_ms).into_iter();
        for metric in figures.filter(|&metric| may_compare(metric, before, now)) {
            let Some(mut shift) = Shift::of(metric, before, now) else {
                continue;
            };
            let allowed = tolerance * shift.badness_before() + floor(metric, noise_ms);
            let (finding, p_value) = shift.judged(before, now, allowed, is_repeated);
            shift.finding = finding;
            doubtful.extend(p_value.map(|p_value| (shifts.len(), p_value)));
            shifts.push(shift);
        }
    }
    for index in unsure(doubtful, TWO_RUNS_ERRING) {
        shifts[index].finding = ShiftFinding::Same;
    }
    shifts
}

/// Whether both runs played the same seeds in virtual time, so that what they put on the
/// wire differs by what changed alone.
fn is_repeated(baseline: &Document, now: &Document) -> bool {
    let is_virtual = |document: &Document| document.testbed.as_deref().is_some_and(is_virtual_time);
    is_virtual(baseline) && is_virtual(now) && baseline.seeds == now.seeds
}

/// The limit that the baseline's lanes are ranked by, or the run's where not both have a share
/// within the baseline's.
fn common_limit_ms(baseline: &Document, now: &Document) -> u32 {
    let limits = [ranking_limit_ms(baseline), ranking_limit_ms(now)];
    let is_kept = |limit_ms: &u32| {
        [baseline, now].into_iter().all(|document| {
            let mut lanes = document.lanes.iter();
            lanes.any(|lane| Metric::Within(*limit_ms).of(lane).is_some())
        })
    };
    limits.into_iter().find(is_kept).unwrap_or(limits[0])
}

impl Shift {
    /// `None` where the baseline has no such figure.
    fn of(metric: Metric, before: &Lane, now: &Lane) -> Option<Self> {
        let value = |lane: &Lane| {
            (lane.messages.intended > 0)
                .then(|| metric.of(lane))
                .flatten()
        };
        Some(Self {
            lane: before.lane.clone(),
            metric,
            before: Some(value(before)?),
            now: value(now),
            finding: ShiftFinding::Unknown,
        })
    }

    /// How bad the figure was, in its unit, where less of it is better; 0 where
    /// it was lost.
    fn badness_before(&self) -> f64 {
        let before = self.before.filter(|value| value.is_finite());
        before.map_or(0.0, |before| self.badness(before).abs())
    }

    fn badness(&self, value: f64) -> f64 {
        if self.metric.more_is_better() {
            1.0 - value
        } else {
            value
        }
    }

    /// What is to be said of the figure if chance did not make it, and the chance of that where
    /// it has a hold on it. `allowed` is by how much it may change, and `is_repeated` says that
    /// both lanes met the same.
    fn judged(
        &self,
        before: &Lane,
        now: &Lane,
        allowed: f64,
        is_repeated: bool,
    ) -> (ShiftFinding, Option<f64>) {
        let way = self.way();
        if self.now.is_none() && now.messages.intended > 0 {
            // It played, and nobody measured it.
            return (ShiftFinding::Unknown, None);
        }
        if self.now.is_none() || way == ShiftFinding::Same {
            return (way, None);
        }
        if let Some(found) = difference_of_runs(self.metric, before, now) {
            return (way, Some(found.p_value(allowed)));
        }
        let is_fact = !self.metric.is_estimated() || (is_repeated && is_spent(self.metric));
        let finding = if is_fact {
            self.fact(allowed)
        } else {
            ShiftFinding::Unknown
        };
        (finding, None)
    }

    /// Which way the figure went, by whatever little.
    fn way(&self) -> ShiftFinding {
        let (Some(before), Some(now)) = (self.before, self.now) else {
            return ShiftFinding::Worse;
        };
        match self.badness(now).total_cmp(&self.badness(before)) {
            std::cmp::Ordering::Less => ShiftFinding::Better,
            std::cmp::Ordering::Equal => ShiftFinding::Same,
            std::cmp::Ordering::Greater => ShiftFinding::Worse,
        }
    }

    /// Which way a figure went that chance has no hold on.
    fn fact(&self, allowed: f64) -> ShiftFinding {
        match (self.before, self.now) {
            (Some(before), Some(now)) if before.is_finite() && now.is_finite() => {
                let resolution = RESOLUTION * before.abs().max(now.abs());
                if (now - before).abs() <= allowed.max(resolution) {
                    ShiftFinding::Same
                } else {
                    self.way()
                }
            }
            _ => self.way(),
        }
    }
}

#[cfg(test)]
mod tests;
