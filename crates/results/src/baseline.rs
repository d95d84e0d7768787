//! A run held against an earlier one of the same experiment: what became worse
//! beyond chance.
//!
//! Every lane that both played is compared by every figure of [`figures_of`].
//! All comparisons together are held to one chance of [`BASELINE_ERRING`] to
//! find a change where there is none (Holm's procedure), so that a gate on a
//! dozen lanes does not cry wolf every other night. In virtual time the same
//! seeds meet the same network conditions in both runs and are compared seed by
//! seed, see [`difference`](crate::difference()).
//!
//! What is certain may still not matter: a figure may become worse by a share of
//! itself, the tolerance, before it counts. Of a share in time it is what is
//! late that may grow.

use lagometer_stats::holm;

use crate::difference::{difference, floor, noise_ms};
use crate::document::{Document, Lane};
use crate::metric::{Metric, Statistic};
use crate::verdict::ranking_limit_ms;

/// The chance that any figure of any lane is said to have changed although
/// none has.
pub const BASELINE_ERRING: f64 = 0.05;

/// Histograms keep three significant digits: what is closer is the same.
const RESOLUTION: f64 = 1e-3;

/// One figure of one lane in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The lane.
    pub lane: String,
    /// The figure.
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
/// played in neither; one that no longer plays has no figure `now` and is worse
/// in all it had.
#[must_use]
pub fn against_baseline(baseline: &Document, now: &Document, tolerance: f64) -> Vec<Shift> {
    let noise_ms = noise_ms(baseline) + noise_ms(now);
    let mut shifts = Vec::new();
    // Of each shift that chance has a hold on, the chance of it.
    let (mut doubtful, mut p_values) = (Vec::new(), Vec::new());
    for before in &baseline.lanes {
        let Some(now) = now.lanes.iter().find(|lane| lane.lane == before.lane) else {
            continue;
        };
        for metric in figures_of(ranking_limit_ms(baseline)) {
            let Some(mut shift) = Shift::of(metric, before, now) else {
                continue;
            };
            let allowed = tolerance * shift.badness_before() + floor(metric, noise_ms);
            let way = shift.way();
            if shift.now.is_none() || way == ShiftFinding::Same {
                shift.finding = way;
            } else if let Some(found) = difference(metric, now, before) {
                doubtful.push(shifts.len());
                p_values.push(found.p_value(allowed));
                shift.finding = way;
            } else if !metric.is_estimated() || is_of_the_wire(metric) {
                shift.finding = shift.fact(allowed);
            }
            shifts.push(shift);
        }
    }
    for (index, sure) in doubtful.into_iter().zip(holm(&p_values, BASELINE_ERRING)) {
        if !sure {
            shifts[index].finding = ShiftFinding::Same;
        }
    }
    shifts
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

/// What a player puts on the wire hardly varies with luck: where too little was played to
/// draw it anew, it is compared as it is.
const fn is_of_the_wire(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Overhead | Metric::BytesPerHour | Metric::MoneyPerHour
    )
}

#[cfg(test)]
mod tests;
