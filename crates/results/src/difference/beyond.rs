//! How far a lane's figure is from a budget's limit, and whether enough was played to say so.
//!
//! Where what is bad is rare and long, a run that met little of it also shows little
//! variance: that a budget is kept is believed only where one more unit, up to five times as
//! bad as the worst of them, would not break it ([`rare`]), and, where rare events make the
//! figure, where ten minutes were played ([`is_enough_to_keep`]).

use lagometer_stats::{rare, student};

use super::{Difference, Drawn, resolution, squared};
use crate::document::Lane;
use crate::game::FREEZES_PER_MIN;
use crate::metric::Metric;

/// How much worse than the worst unit one more is reckoned with, where lengths are added up:
/// with the tail of the outages that were tried (Pareto, 1.3) one that is longer than all so
/// far is 1.5 times as long in three of five cases. Of numbers of freezes it is as bad.
const USUALLY_WORSE: f64 = 1.5;

/// The same where a quantile leaves less than a unit's messages: beyond it there are a few of
/// the longest events alone, and one in eight of those that are longer than all so far is five
/// times as long.
const NEXT_WORSE: f64 = 5.0;

/// How far a lane's figure is from `limit`; `None` as in [`difference()`].
///
/// A quantile of delays is within its limit where at least its share of them is, and the
/// interpolation that is needed is where the view freezes seldom enough at the limit.
/// Both are asked, and the less certain of the two answers: the draws of the first do not
/// show how much more may be just beyond the limit, nor those of the second how far
/// beyond it is.
pub(crate) fn beyond(metric: Metric, lane: &Lane, limit: f64) -> Option<Difference> {
    let own = beyond_limit(metric, lane, limit, usually_worse(metric))?;
    let value = metric.of(lane)?;
    let is_kept = if metric.more_is_better() {
        value >= limit
    } else {
        value <= limit
    };
    let drawn = lane.resamples.as_ref()?;
    if is_kept
        && !is_enough_to_keep(
            metric,
            drawn.blocks,
            f64::from(drawn.blocks) * drawn.block_s,
        )
    {
        return None;
    }
    // Between two whole milliseconds the one that lets the run say more.
    let [below, above] = whole_limits(limit);
    let other = if is_kept { above } else { below }
        .and_then(|limit_ms| judged_by(metric, limit_ms))
        .and_then(|(by, its_limit)| beyond_limit(by, lane, its_limit, next_worse(metric, lane)));
    Some(other.filter(|other| other.t < own.t).unwrap_or(own))
}

/// What a budget on a figure of a distribution is judged by beside its own draws, at so
/// many milliseconds, or frames of a rollback: a figure that adds up what is bad in each
/// unit of play, and the limit of it that says the same.
pub(crate) fn judged_by(metric: Metric, limit_ms: u32) -> Option<(Metric, f64)> {
    let share = || Some(f64::from(metric.quantile_per_mille()?) / 1000.0);
    match metric {
        Metric::Rtt(_) => Some((Metric::Within(limit_ms), share()?)),
        Metric::InterpolationNeeded => Some((Metric::ViewFreezesAt(limit_ms), FREEZES_PER_MIN)),
        _ => {
            let share = share()?;
            Some((Metric::ShareWithin(metric.sampled()?, limit_ms), share))
        }
    }
}

/// How much worse than the worst unit one more is reckoned with.
fn next_worse(metric: Metric, lane: &Lane) -> f64 {
    let units = lane.resamples.as_ref().map_or(0, |drawn| drawn.blocks);
    match metric.quantile_per_mille() {
        Some(per_mille) if u64::from(1000 - per_mille) * u64::from(units) < 1000 => NEXT_WORSE,
        _ => usually_worse(metric),
    }
}

const fn usually_worse(metric: Metric) -> f64 {
    match metric {
        Metric::Freezes
        | Metric::Episodes
        | Metric::Episodes500ms
        | Metric::ViewFreezes
        | Metric::ViewFreezesAt(_)
        | Metric::InterpolationNeeded => 1.0,
        _ => USUALLY_WORSE,
    }
}

/// Seconds of play without which no budget is said to be met on what rare events make:
/// what is late or lost, lag, freezes, means, throughput, slow quantiles. On `4g-moving`,
/// where a handover fails every two minutes, a budget on the share in time or on lag whose
/// limit was the truth, nearly always on lag, was decided in 17 to 25 % of runs of five seeds
/// of 30 s and in 10 % of ten, and in 3 % of twenty and of one of ten minutes.
const LEAST_PLAY_S: f64 = 600.0;

/// The quantile, in thousandths, from which on rare events make it.
const SLOW_PER_MILLE: u32 = 900;

/// Whether so many units of play, so many seconds in all, are enough for a budget to be said
/// to be met: [`LEAST_PLAY_S`] where rare events make the figure; and of a quantile so many
/// units that it leaves a tenth of one, for otherwise one long outage, which so short a run
/// need not meet, is all of what it leaves. Any are enough for other figures.
pub(crate) fn is_enough_to_keep(metric: Metric, units: u32, play_s: f64) -> bool {
    let is_of_rare_events = match metric.quantile_per_mille() {
        Some(per_mille) => {
            if units < 100_u32.div_ceil(1000 - per_mille) {
                return false;
            }
            per_mille >= SLOW_PER_MILLE
        }
        None => !is_spent(metric),
    };
    // Messages show how long was played up to the pause at a seed's end, and stretches leave
    // out what is no whole one.
    !is_of_rare_events || play_s >= 0.95 * LEAST_PLAY_S
}

/// What a player puts on the wire and pays for it hardly hangs on rare events.
pub(crate) const fn is_spent(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Overhead | Metric::BytesPerHour | Metric::MoneyPerHour
    )
}

/// The whole milliseconds next to a limit, below it and above, or twice the limit itself;
/// none where shares are not kept, below one millisecond and beyond all of them.
pub(crate) fn whole_limits(limit_ms: f64) -> [Option<u32>; 2] {
    [limit_ms.floor(), limit_ms.ceil()].map(|limit| {
        let is_kept = limit >= 1.0 && limit <= f64::from(u32::MAX);
        is_kept.then_some(limit as u32)
    })
}

/// As [`beyond`], of the figure itself, and reckoning with one more unit that is
/// `next_worse` times as bad as the worst.
fn beyond_limit(metric: Metric, lane: &Lane, limit: f64, next_worse: f64) -> Option<Difference> {
    let drawn = Drawn::of(metric, lane)?;
    let mut found = drawn.less(&Drawn::constant(limit, &drawn), resolution(metric, lane))?;
    if let Some(chance) = chance_if_rare(metric, lane, &drawn, limit, next_worse) {
        // No surer than this.
        found.t = found
            .t
            .min(student::two_sided_quantile(chance, drawn.freedom));
    }
    Some(found)
}

/// The chance that a figure keeps its limit as well as it does where the truth lies on it,
/// as [`rare`] has it; `None` where it does not keep it, or is no sum of what is bad in
/// each unit of play.
fn chance_if_rare(
    metric: Metric,
    lane: &Lane,
    drawn: &Drawn,
    limit: f64,
    next_worse: f64,
) -> Option<f64> {
    let worst_unit = *lane
        .resamples
        .as_ref()?
        .worst_unit
        .get(&metric.to_string())?;
    let bad = |value: f64| {
        if metric.more_is_better() {
            1.0 - value
        } else {
            value
        }
    };
    let (value, limit) = (bad(drawn.value), bad(limit));
    let variance = squared(drawn.error(drawn.draws.iter().copied()));
    // Where no unit had anything, one might have had the least there is.
    let least = resolution(
        match metric {
            Metric::ViewFreezes | Metric::ViewFreezesAt(_) => Metric::Freezes,
            metric => metric,
        },
        lane,
    ) / f64::from(drawn.units.max(1)).sqrt();
    let worst_unit = worst_unit.max(least) * next_worse;
    (value < limit && worst_unit > 0.0).then(|| rare::p_value(value, variance, worst_unit, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::tests::seeds_lane_of;
    use crate::metric::Statistic;

    #[test]
    fn one_more_unit_is_reckoned_as_worse_where_few_may_be_bad() {
        let lane = seeds_lane_of(30, &[1, 2, 3, 4, 5, 6], |_, _| 40);
        // Of six seeds less than one may be slower than the 99th percentile, three than the median.
        let worse = |metric| next_worse(metric, &lane).to_bits();
        assert_eq!(worse(Metric::Rtt(Statistic::P99)), NEXT_WORSE.to_bits());
        assert_eq!(worse(Metric::Rtt(Statistic::P50)), USUALLY_WORSE.to_bits());
        assert_eq!(worse(Metric::Freezes), 1.0_f64.to_bits());
        assert_eq!(worse(Metric::Within(150)), USUALLY_WORSE.to_bits());
    }
}
