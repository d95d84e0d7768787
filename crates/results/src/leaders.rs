//! Which lanes a table may show as the best by its figures.

use crate::difference::{Judgement, judge_together};
use crate::document::Lane;
use crate::metric::Metric;

/// Of each group of a table, of each lane and each of these figures, in their order: whether
/// no other of its group is shown to surpass it by that figure, where it is shown to surpass
/// any itself. Nobody leads by a fact of the run, of which it is not known how it varies.
///
/// A reader scans the whole table, so all comparisons of all its groups by all its
/// figures are one family: together they find a difference where there is none in at most
/// one of twenty tables (Holm's procedure). `noise_ms` is as in [`judge`](crate::judge()).
#[must_use]
pub fn leaders(metrics: &[Metric], groups: &[&[&Lane]], noise_ms: f64) -> Vec<Vec<Vec<bool>>> {
    let (mut pairs, mut places) = (Vec::new(), Vec::new());
    for (group, lanes) in groups.iter().enumerate() {
        for (first, &one) in lanes.iter().enumerate() {
            for (second, &other) in lanes.iter().enumerate().skip(first + 1) {
                for (column, &metric) in metrics.iter().enumerate() {
                    pairs.push((metric, one, other));
                    places.push((group, column, first, second));
                }
            }
        }
    }
    let of_each = |lanes: &&[&Lane]| vec![vec![Seen::default(); metrics.len()]; lanes.len()];
    let mut seen: Vec<Vec<Vec<Seen>>> = groups.iter().map(of_each).collect();
    let judged = judge_together(&pairs, noise_ms);
    for ((group, column, first, second), judgement) in places.into_iter().zip(judged) {
        let (winner, loser) = match judgement {
            Judgement::First => (first, second),
            Judgement::Second => (second, first),
            Judgement::Neither | Judgement::Unknown => continue,
        };
        seen[group][winner][column].surpasses = true;
        seen[group][loser][column].is_beaten = true;
    }
    let leads = |lane: Vec<Seen>| lane.into_iter().map(Seen::leads).collect();
    seen.into_iter()
        .map(|lanes| lanes.into_iter().map(leads).collect())
        .collect()
}

/// What is shown of a lane by one figure.
#[derive(Clone, Copy, Default)]
struct Seen {
    surpasses: bool,
    is_beaten: bool,
}

impl Seen {
    /// Whom nobody surpasses only because it varies surpasses nobody either.
    const fn leads(self) -> bool {
        self.surpasses && !self.is_beaten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::difference;
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
        let lanes: Vec<&Lane> = lanes.iter().collect();
        let mut groups = leaders(&[metric], &[&lanes], 0.0);
        let of_only = |lane: Vec<bool>| lane[0];
        groups.remove(0).into_iter().map(of_only).collect()
    }

    #[test]
    fn each_group_has_leaders_of_its_own_and_each_figure() {
        let lanes = [late(20, 1), late(5, 1), late(40, 1), late(20, 1)];
        let groups: [&[&Lane]; 3] = [&[&lanes[0], &lanes[1]], &[], &[&lanes[2], &lanes[3]]];
        let metrics = [Metric::LongestFreeze, Metric::Within(150)];
        let leads = leaders(&metrics, &groups, 0.0);
        let of = |leads: bool| vec![false, leads];
        assert_eq!(
            leads,
            [vec![of(false), of(true)], vec![], vec![of(false), of(true)]]
        );
    }

    /// What is certain enough by itself may be chance where much else is compared.
    #[test]
    fn a_table_of_more_columns_asks_for_more() {
        let (one, other) = (late(20, 1), late(19, 2));
        let share = Metric::Within(150);
        let p = difference(share, &one, &other).unwrap().p_value(0.0);
        let lanes: [&Lane; 2] = [&one, &other];
        let alone = leaders(&[share], &[&lanes], 0.0);
        assert!((0.005..0.05).contains(&p) && alone[0][1][0], "{p}");
        // Medians are the same.
        let many = [vec![share], vec![Metric::Rtt(Statistic::P50); 10]].concat();
        assert!(!leaders(&many, &[&lanes], 0.0)[0][1][0]);
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
