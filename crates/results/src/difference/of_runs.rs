//! What is known of the difference of one figure between a lane's two runs.
//!
//! The draws of a quantile do not show how much more may be just beyond it. Where it leaves
//! less than a unit's messages, those beyond it may be one outage's, which the other run did
//! not meet, and its draws are too sure of it: with rare long outages p99.9 of identical
//! runs differed "beyond chance" ten to twenty times as often as it may. So it is asked,
//! too, what the quantile says: whether the share of messages beyond a limit differs, which
//! many units must show. The less certain of the two answers counts, as for a budget on a
//! quantile.

use super::{Difference, difference, is_spent};
use crate::document::{Lane, Milliseconds};
use crate::metric::{Metric, Statistic};

/// The chance that any figure of any lane is called better or worse in one of two runs
/// although nothing changed. Half of what is promised: the draws are a little too sure
/// where so many figures are asked at once, and held to one in twenty 5.5 % of comparisons
/// of 13 lanes erred (`false_comparisons` of `lagometer-report`).
pub const TWO_RUNS_ERRING: f64 = 0.025;

/// Whether a figure of a lane's two runs can be held against each other: not what one put on
/// the wire that died, for it was silent from then on, which is no thrift.
#[must_use]
pub fn may_compare(metric: Metric, first: &Lane, second: &Lane) -> bool {
    let has_died = first.failure.is_some() || second.failure.is_some();
    !(has_died && is_spent(metric))
}

/// The difference of a figure, second less first, where something shows what chance makes
/// of it: never of a fact of the run, nor where the runs were not cut into the same units.
#[must_use]
pub fn difference_of_runs(metric: Metric, first: &Lane, second: &Lane) -> Option<Difference> {
    let unit = |lane: &Lane| Some(lane.resamples.as_ref()?.unit);
    if !metric.is_estimated() || unit(first)? != unit(second)? {
        return None;
    }
    let mut found = difference(metric, second, first)?;
    if leaves_less_than_a_unit(metric, first) {
        let limit_ms = limit_between(metric, first, second)?;
        let within = Metric::Within(limit_ms);
        let is_all = |lane: &Lane| within.of(lane) == Some(1.0);
        // Where nothing at all was later there was no outage to be too sure of.
        if !(is_all(first) && is_all(second)) {
            let share = difference(within, second, first)?;
            // Who is slower has less within the limit.
            let is_opposite = share.mean * found.mean < 0.0;
            found.t = if is_opposite {
                found.t.min(share.t)
            } else {
                0.0
            };
        }
    }
    Some(found)
}

/// Whether fewer messages lie beyond the quantile of round trips that the metric is, if it
/// is one, than a unit of play has.
fn leaves_less_than_a_unit(metric: Metric, lane: &Lane) -> bool {
    let Metric::Rtt(statistic) = metric else {
        return false;
    };
    let units = lane.resamples.as_ref().map_or(0, |drawn| drawn.blocks);
    let beyond = statistic.per_mille().map(|per_mille| 1000 - per_mille);
    statistic != Statistic::P50
        && beyond.is_some_and(|beyond| u64::from(beyond) * u64::from(units) < 1000)
}

/// Of the limits for which both documents have the share within, in milliseconds, the one
/// nearest to the middle of the two values, by their ratio.
fn limit_between(metric: Metric, first: &Lane, second: &Lane) -> Option<u32> {
    let limits = first.within.keys().copied();
    let limits = limits.filter(|limit| second.within.contains_key(limit));
    let limits: Vec<u32> = limits.map(|Milliseconds(limit_ms)| limit_ms).collect();
    let longest = f64::from(*limits.iter().max()?);
    // What was lost is beyond all of them.
    let value = |lane: &Lane| Some(metric.of(lane)?.min(longest).max(f64::MIN_POSITIVE));
    let (one, other) = (value(first)?, value(second)?);
    let distance = |&limit_ms: &u32| {
        let limit = f64::from(limit_ms);
        let (low, high) = (limit / one, limit / other);
        (low * high).max(1.0 / (low * high))
    };
    let nearest = |a: &u32, b: &u32| distance(a).total_cmp(&distance(b));
    limits.iter().copied().min_by(|a, b| nearest(a, b))
}
