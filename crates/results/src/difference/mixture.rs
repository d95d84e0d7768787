//! A figure over several networks together: its mean, weighted by how many players
//! have each network, with what chance makes of it.
//!
//! Networks that were played under as many seeds were drawn alike (see
//! [`Resamples`](crate::document::Resamples)), so the draws of a mean are the means of
//! the draws, and what one seed does to all networks stays together.

use super::{Difference, Drawn, resolution};
use crate::document::Lane;
use crate::metric::Metric;

/// The mean of `metric` over lanes of several networks, each with its weight above
/// zero. Infinite where it is of any; `None` where a lane has no such figure, or
/// there is none.
#[must_use]
pub fn mixed(metric: Metric, lanes: &[(f64, &Lane)]) -> Option<f64> {
    let mut sum = 0.0;
    for (weight, lane) in lanes {
        sum += weight * metric.of(lane)?;
    }
    (!lanes.is_empty()).then(|| sum / total(lanes.iter().map(|lane| lane.0)))
}

/// The 95 % interval of [`mixed()`], as [`interval`](crate::interval()) gives one
/// lane's.
#[must_use]
pub fn mixed_interval(metric: Metric, lanes: &[(f64, &Lane)]) -> Option<(f64, f64)> {
    Some(Drawn::mixed(metric, lanes)?.interval(mixed_resolution(metric, lanes)))
}

/// How far [`mixed()`] of the first lanes is from that of the second ones, each pair
/// having played one network under the same seeds, as
/// [`difference`](crate::difference()) has it for two lanes.
#[must_use]
pub fn mixed_difference(metric: Metric, pairs: &[(f64, &Lane, &Lane)]) -> Option<Difference> {
    let first: Vec<(f64, &Lane)> = pairs.iter().map(|pair| (pair.0, pair.1)).collect();
    let second: Vec<(f64, &Lane)> = pairs.iter().map(|pair| (pair.0, pair.2)).collect();
    let resolution = mixed_resolution(metric, &first).max(mixed_resolution(metric, &second));
    Drawn::mixed(metric, &first)?.less(&Drawn::mixed(metric, &second)?, resolution)
}

impl Drawn {
    fn mixed(metric: Metric, lanes: &[(f64, &Lane)]) -> Option<Self> {
        let whole = total(lanes.iter().map(|lane| lane.0));
        let mut parts = lanes.iter();
        let (weight, lane) = parts.next()?;
        let mut sum = Self::of(metric, lane)?.times(weight / whole);
        for (weight, lane) in parts {
            let part = Self::of(metric, lane)?.times(weight / whole);
            if part.units != sum.units || part.draws.len() != sum.draws.len() {
                return None;
            }
            sum.value += part.value;
            for (sum, draw) in sum.draws.iter_mut().zip(part.draws) {
                *sum += draw;
            }
        }
        Some(sum)
    }

    fn times(mut self, share: f64) -> Self {
        self.value *= share;
        for draw in &mut self.draws {
            *draw *= share;
        }
        self
    }
}

fn mixed_resolution(metric: Metric, lanes: &[(f64, &Lane)]) -> f64 {
    let whole = total(lanes.iter().map(|lane| lane.0));
    let each = lanes.iter();
    each.map(|(weight, lane)| weight / whole * resolution(metric, lane))
        .sum()
}

fn total(weights: impl Iterator<Item = f64>) -> f64 {
    weights.sum::<f64>().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::tests::seeds_lane;
    use crate::difference::{difference, interval};

    /// A lane of six seeds, late in more seconds of one than of the next.
    fn late(seconds: u64) -> Lane {
        seeds_lane(&[1, 2, 3, 4, 5, 6], |seed, second| {
            if second % 60 < seconds + seed {
                400
            } else {
                60
            }
        })
    }

    #[test]
    fn a_mixture_of_one_network_is_that_network() {
        let (one, other) = (late(3), late(9));
        let metric = Metric::Within(150);
        assert_eq!(
            mixed_difference(metric, &[(7.0, &one, &other)]),
            difference(metric, &one, &other)
        );
        assert_eq!(
            mixed_interval(metric, &[(7.0, &one)]),
            interval(metric, &one)
        );
        assert_eq!(mixed(metric, &[(7.0, &one)]), metric.of(&one));
        assert_eq!(mixed(metric, &[]), None);
    }

    #[test]
    fn weights_draw_a_mixture_towards_their_network() {
        let (one, other) = (late(3), late(9));
        let metric = Metric::Within(150);
        let (low, high) = (metric.of(&other).unwrap(), metric.of(&one).unwrap());
        let value = mixed(metric, &[(3.0, &one), (1.0, &other)]).unwrap();
        assert!((value - (0.75 * high + 0.25 * low)).abs() < 1e-12);
        let (from, to) = mixed_interval(metric, &[(3.0, &one), (1.0, &other)]).unwrap();
        assert!(from <= value && value <= to, "{from} {value} {to}");
    }
}
