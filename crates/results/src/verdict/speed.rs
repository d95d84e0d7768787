//! What the lanes of a speed run say together, in one sentence.
//!
//! That a lane carries more than another is said only where the rates of both under the
//! same seeds show it: the logarithm of their ratio, seed by seed, is held against none
//! (Student's paired t-test, "The probable error of a mean", 1908), all pairs of lanes
//! together (Holm's procedure). One run, as over a real path, shows nothing of how a rate
//! varies from one to the next: its figures are listed and put in no order.

use std::fmt::Write as _;

use lagometer_stats::{holm, student};

use super::ERRING;
use crate::document::{Bulk, Lane, SeedValue};
use crate::resample::FEWEST_SEEDS;

/// A lane that carried something, and what.
type Carried<'a> = (&'a str, &'a Bulk);

/// Logarithms of ratios that are closer than this are the same: a rate's first three
/// digits.
const RESOLUTION: f64 = 1e-3;

/// A lane that carried nothing under a seed is taken to have carried this part of what
/// the other did.
const LEAST_PART: f64 = 1e-3;

/// What each lane carried, or which carried most where that is shown, and what was lost.
#[must_use]
pub fn speed_verdict(lanes: &[Lane]) -> String {
    let carried: Vec<Carried<'_>> = lanes
        .iter()
        .filter_map(|lane| Some((lane.lane.as_str(), lane.bulk.as_ref()?)))
        .filter(|(_, bulk)| bulk.received_bytes > 0)
        .collect();
    let mut text = match carried.as_slice() {
        [] => return "Nothing was carried.".to_owned(),
        [_] => listed(&carried),
        several => side_by_side(several),
    };
    let losers: Vec<String> = carried
        .iter()
        .filter(|(_, bulk)| bulk.loss_pct > 0.0)
        .map(|(name, bulk)| format!("{name} loses {} %", bulk.loss_pct))
        .collect();
    if !losers.is_empty() {
        let _ = write!(text, "; {}", losers.join(", "));
    }
    text + "."
}

/// What several lanes carry, with what is known of their order.
fn side_by_side(carried: &[Carried<'_>]) -> String {
    let seeds = carried.iter().map(|(_, bulk)| bulk.rate_per_seed.len());
    let seeds = seeds.min().unwrap_or(0).max(1);
    if seeds < FEWEST_SEEDS {
        let what = match seeds {
            1 => "one run decides no order".to_owned(),
            seeds => format!("{seeds} seeds decide no order: play at least five"),
        };
        return format!("{}; {what}", listed(carried));
    }
    let by_rate = |one: &usize, other: &usize| {
        let rate = |at: &usize| carried[*at].1.recv_mbit_per_s;
        rate(one).total_cmp(&rate(other))
    };
    // Of equal ones the first that was asked for.
    let Some(most) = (0..carried.len()).rev().max_by(by_rate) else {
        return String::new();
    };
    let shown = shown_less(carried, most);
    let (beaten, equal): (Vec<usize>, Vec<usize>) = (0..carried.len())
        .filter(|&lane| lane != most)
        .partition(|&lane| shown[lane]);
    let (fastest, its) = carried[most];
    let equal: Vec<&str> = equal.into_iter().map(|lane| carried[lane].0).collect();
    let equal = equal.join(", ");
    let Some(least) = beaten.into_iter().min_by(by_rate) else {
        return format!(
            "{} (means of {seeds} seeds); {fastest} is not told apart from {equal}",
            listed(carried)
        );
    };
    let (slowest, least) = carried[least];
    let times = its.recv_mbit_per_s / least.recv_mbit_per_s.max(0.01);
    let mut text = format!(
        "{fastest} carries {}, {times:.1} times as much as {slowest} with {} (means of {seeds} seeds)",
        rate(its.recv_mbit_per_s),
        rate(least.recv_mbit_per_s),
    );
    if !equal.is_empty() {
        let _ = write!(text, "; it is not told apart from {equal}");
    }
    text
}

/// Which lanes are shown to carry less than the one at `most`: all pairs of lanes
/// together are wrong at most with the chance of a verdict.
fn shown_less(carried: &[Carried<'_>], most: usize) -> Vec<bool> {
    let (mut p_values, mut less) = (Vec::new(), Vec::new());
    for (first, (_, one)) in carried.iter().enumerate() {
        for (second, (_, other)) in carried.iter().enumerate().skip(first + 1) {
            let Some((ratio, p_value)) = compare(one, other) else {
                continue;
            };
            p_values.push(p_value);
            let (more, fewer) = if ratio > 0.0 {
                (first, second)
            } else {
                (second, first)
            };
            less.push((more == most).then_some(fewer));
        }
    }
    let mut shown = vec![false; carried.len()];
    for (fewer, sure) in less.into_iter().zip(holm(&p_values, ERRING)) {
        if let (Some(fewer), true) = (fewer, sure) {
            shown[fewer] = true;
        }
    }
    shown
}

/// The mean logarithm of the ratio of two lanes' rates under the seeds that both have,
/// and the chance of one as far from none; `None` of too few seeds.
fn compare(one: &Bulk, other: &Bulk) -> Option<(f64, f64)> {
    let ratios: Vec<f64> = one
        .rate_per_seed
        .iter()
        .filter_map(|first| {
            let seed = |second: &&SeedValue| second.seed == first.seed;
            let second = other.rate_per_seed.iter().find(seed)?;
            let most = first.value.max(second.value);
            let log = |rate: f64| libm::log(rate.max(LEAST_PART * most));
            // Where neither carried anything they are alike.
            Some(if most > 0.0 {
                log(first.value) - log(second.value)
            } else {
                0.0
            })
        })
        .collect();
    if ratios.len() < FEWEST_SEEDS {
        return None;
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares: f64 = ratios
        .iter()
        .map(|ratio| (ratio - mean) * (ratio - mean))
        .sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    // Seeds that happen to agree are no proof of certainty.
    let error = error.max(RESOLUTION / count.sqrt());
    let freedom = u32::try_from(ratios.len() - 1).ok()?;
    Some((mean, student::two_sided_p(mean / error, freedom)))
}

/// What each lane carries, in the order in which they were asked for.
fn listed(carried: &[Carried<'_>]) -> String {
    let each: Vec<String> = carried
        .iter()
        .enumerate()
        .map(|(nth, (name, bulk))| {
            let verb = if nth == 0 { " carries" } else { "" };
            format!("{name}{verb} {}", rate(bulk.recv_mbit_per_s))
        })
        .collect();
    each.join(", ")
}

/// A rate in the unit in which it has one to three digits.
fn rate(mbit_per_s: f64) -> String {
    if mbit_per_s >= 1000.0 {
        format!("{:.2} Gbit/s", mbit_per_s / 1000.0)
    } else {
        format!("{mbit_per_s:.1} Mbit/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::figures;

    fn lane(name: &str, recv_mbit_per_s: f64, loss_pct: f64) -> Lane {
        Lane {
            bulk: Some(Bulk {
                recv_mbit_per_s,
                loss_pct,
                received_bytes: 1,
                ..Bulk::default()
            }),
            ..figures(&[], &[], None).into_lane(name, name)
        }
    }

    /// A lane with these rates under the seeds from 1 on.
    fn seeds(name: &str, rates: &[f64]) -> Lane {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let mut lane = lane(name, mean, 0.0);
        if let Some(bulk) = &mut lane.bulk {
            let value = |(seed, value): (u64, &f64)| SeedValue {
                seed,
                value: *value,
            };
            bulk.rate_per_seed = (1..).zip(rates).map(value).collect();
        }
        lane
    }

    #[test]
    fn one_run_lists_what_was_carried_and_what_was_lost_as_asked() {
        let lanes = [
            lane("enet", 500.0, 0.0),
            lane("kcp", 15_000.0, 0.0),
            lane("udp", 7_500.0, 1.25),
        ];
        assert_eq!(
            speed_verdict(&lanes),
            "enet carries 500.0 Mbit/s, kcp 15.00 Gbit/s, udp 7.50 Gbit/s; one run decides no order; \
             udp loses 1.25 %."
        );
        assert_eq!(speed_verdict(&lanes[1..2]), "kcp carries 15.00 Gbit/s.");
        assert_eq!(speed_verdict(&[]), "Nothing was carried.");
    }

    #[test]
    fn few_seeds_decide_no_order_either() {
        let lanes = [
            seeds("kcp", &[2.0, 2.0, 2.0, 2.0]),
            seeds("enet", &[8.0, 8.0, 8.0, 8.0]),
        ];
        assert_eq!(
            speed_verdict(&lanes),
            "kcp carries 2.0 Mbit/s, enet 8.0 Mbit/s; 4 seeds decide no order: play at least five."
        );
    }

    /// The seeds differ far more than the lanes do, and both lanes alike.
    #[test]
    fn what_every_seed_shows_is_said_with_those_that_are_not_told_apart() {
        let lanes = [
            seeds("enet", &[1.0, 5.1, 20.0, 2.05, 9.8]),
            seeds("kcp", &[2.1, 9.9, 41.0, 4.0, 20.0]),
            seeds("tcp", &[2.0, 10.2, 39.0, 4.1, 20.4]),
        ];
        assert_eq!(
            speed_verdict(&lanes),
            "kcp carries 15.4 Mbit/s, 2.0 times as much as enet with 7.6 Mbit/s \
             (means of 5 seeds); it is not told apart from tcp."
        );
    }

    /// Twice as much in the mean, and that is one seed's doing.
    #[test]
    fn lanes_that_chance_could_have_set_apart_are_not_told_apart() {
        let lanes = [
            seeds("kcp", &[2.0, 4.0, 6.0, 3.0, 30.0]),
            seeds("enet", &[2.1, 3.9, 6.2, 2.8, 7.5]),
        ];
        assert_eq!(
            speed_verdict(&lanes),
            "kcp carries 9.0 Mbit/s, enet 4.5 Mbit/s (means of 5 seeds); \
             kcp is not told apart from enet."
        );
    }

    #[test]
    fn seeds_that_agree_to_the_last_digit_show_a_difference_beyond_the_resolution_alone() {
        let agreed = |name, rate: f64| seeds(name, &[rate; 5]);
        let close = [agreed("kcp", 2.0), agreed("enet", 2.000_5)];
        assert!(speed_verdict(&close).contains("enet is not told apart from kcp"));
        let apart = [agreed("kcp", 2.0), agreed("enet", 2.2)];
        assert!(speed_verdict(&apart).starts_with("enet carries 2.2 Mbit/s, 1.1 times as much"));
    }

    #[test]
    fn a_lane_that_carried_nothing_under_a_seed_is_compared_all_the_same() {
        let lanes = [
            seeds("kcp", &[2.0, 4.0, 6.0, 3.0, 5.0]),
            seeds("enet", &[1.0, 0.0, 3.0, 1.5, 2.5]),
        ];
        assert!(speed_verdict(&lanes).contains("kcp is not told apart from enet"));
    }
}
