//! Which lanes a table may show as the best by one figure.

use lagometer_stats::holm;

use crate::difference::{CONFIDENCE, difference, floor};
use crate::document::Lane;
use crate::metric::Metric;

/// Which of these lanes no other is shown to surpass by a figure, in their order: none
/// where no lane beats any, or where the figure is a fact of the run, of which it is
/// not known how it varies.
///
/// All comparisons of all lanes together find a difference where there is none in at
/// most one of twenty runs (Holm's procedure). `noise_ms` is as in
/// [`judge`](crate::judge()).
#[must_use]
pub fn leaders(metric: Metric, lanes: &[&Lane], noise_ms: f64) -> Vec<bool> {
    let mut is_compared = vec![false; lanes.len()];
    let (mut p_values, mut losers) = (Vec::new(), Vec::new());
    for (first, one) in lanes.iter().enumerate() {
        for (second, other) in lanes.iter().enumerate().skip(first + 1) {
            let Some(found) = difference(metric, one, other) else {
                continue;
            };
            is_compared[first] = true;
            is_compared[second] = true;
            p_values.push(found.p_value(floor(metric, noise_ms)));
            let wins = (found.mean > 0.0) == metric.more_is_better();
            losers.push(if wins { second } else { first });
        }
    }
    let sure = holm(&p_values, 1.0 - CONFIDENCE);
    let mut is_beaten = vec![false; lanes.len()];
    for (loser, sure) in losers.into_iter().zip(sure) {
        is_beaten[loser] |= sure;
    }
    let is_decided = is_beaten.contains(&true);
    is_compared
        .into_iter()
        .zip(is_beaten)
        .map(|(is_compared, is_beaten)| is_decided && is_compared && !is_beaten)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::tests::seeds_lane;
    use crate::metric::Statistic;

    const SEEDS: [u64; 6] = [1, 2, 3, 4, 5, 6];

    /// Late for some seconds of each minute, a little differently in each seed.
    fn late(seconds: u64, spread: u64) -> Lane {
        seeds_lane(&SEEDS, |seed, second| {
            if second % 60 < seconds + (seed * spread) % 3 {
                400
            } else {
                60
            }
        })
    }

    fn found(metric: Metric, lanes: &[Lane]) -> Vec<bool> {
        leaders(metric, &lanes.iter().collect::<Vec<_>>(), 0.0)
    }

    #[test]
    fn those_lead_whom_no_other_is_shown_to_surpass() {
        let lanes = [late(20, 1), late(5, 1), late(5, 2)];
        let share = Metric::Within(150);
        // One of the two is ahead of the other by what chance makes.
        assert_eq!(found(share, &lanes), [false, true, true]);
        assert_eq!(found(share, &lanes[1..]), [false, false]);
        assert_eq!(found(share, &lanes[..1]), [false]);
        assert_eq!(found(share, &[]), [false; 0]);
    }

    #[test]
    fn nobody_leads_by_a_fact_of_the_run() {
        let lanes = [late(20, 1), late(5, 1)];
        assert_eq!(found(Metric::Rtt(Statistic::Max), &lanes), [false, false]);
        assert_eq!(found(Metric::LongestFreeze, &lanes), [false, false]);
    }
}
