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
    let (mut p_values, mut pairs) = (Vec::new(), Vec::new());
    for (first, one) in lanes.iter().enumerate() {
        for (second, other) in lanes.iter().enumerate().skip(first + 1) {
            let Some(found) = difference(metric, one, other) else {
                continue;
            };
            p_values.push(found.p_value(floor(metric, noise_ms)));
            let wins = (found.mean > 0.0) == metric.more_is_better();
            pairs.push(if wins {
                (first, second)
            } else {
                (second, first)
            });
        }
    }
    let sure = holm(&p_values, 1.0 - CONFIDENCE);
    let (mut surpasses, mut is_beaten) = (vec![false; lanes.len()], vec![false; lanes.len()]);
    for ((winner, loser), sure) in pairs.into_iter().zip(sure) {
        surpasses[winner] |= sure;
        is_beaten[loser] |= sure;
    }
    // Whom nobody surpasses only because it varies surpasses nobody either.
    surpasses
        .into_iter()
        .zip(is_beaten)
        .map(|(surpasses, is_beaten)| surpasses && !is_beaten)
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

    /// Nobody is shown to surpass a lane that varies too much, though its value is the
    /// worst; that is no reason to show it as the best.
    #[test]
    fn who_surpasses_nobody_does_not_lead() {
        let erratic = seeds_lane(
            &SEEDS,
            |seed, second| {
                if seed == 1 && second < 1500 { 400 } else { 60 }
            },
        );
        let lanes = [late(20, 1), late(2, 1), erratic];
        let share = Metric::Within(150);
        let shares = lanes.each_ref().map(|lane| share.of(lane).unwrap());
        assert!(shares[2] < shares[1], "{shares:?}");
        assert_eq!(found(share, &lanes), [false, true, false]);
    }

    #[test]
    fn nobody_leads_by_a_fact_of_the_run() {
        let lanes = [late(20, 1), late(5, 1)];
        assert_eq!(found(Metric::Rtt(Statistic::Max), &lanes), [false, false]);
        assert_eq!(found(Metric::LongestFreeze, &lanes), [false, false]);
    }
}
