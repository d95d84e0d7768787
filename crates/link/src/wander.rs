//! A level that wanders: what makes the jitter of neighbouring packets alike.
//!
//! A Gaussian autoregressive process of the first order on a fixed grid of
//! time. Its value at an instant depends on the seed and the instant alone,
//! and is standard normal at every instant, so that any marginal distribution
//! can be had from it by way of the normal's cumulative function.

use crate::keyed::Stream;
use crate::normal;

/// Grid steps per correlation time. Between grid points the level is
/// interpolated, so it is continuous, and a little more alike at short
/// distances than the process on the grid: after one correlation time the
/// autocorrelation is between 0.37 (on the grid) and 0.42 (halfway).
const STEPS_PER_CORRELATION: u64 = 4;

/// Grid steps after which the level is drawn anew, independent of what was.
/// It bounds the work of asking for any instant; it happens once in 64
/// correlation times, when the memory of the start has long faded (e^-64).
const STEPS_PER_BLOCK: u64 = 256;

/// A wandering level and where it was last asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wander {
    stream: Stream,
    step_ns: u64,
    /// The correlation of neighbouring grid points, e^(-step / correlation).
    carry: f64,
    /// The share of fresh randomness in a step, sqrt(1 - carry^2).
    fresh: f64,
    /// The grid point last computed, its level and the level after it.
    at: u64,
    level: f64,
    next: f64,
}

impl Wander {
    /// A level whose autocorrelation falls to 1/e after `correlation_ns`.
    pub(crate) fn new(stream: Stream, correlation_ns: u64) -> Self {
        let carry = libm::exp(-1.0 / STEPS_PER_CORRELATION as f64);
        let mut wander = Self {
            stream,
            step_ns: (correlation_ns / STEPS_PER_CORRELATION).max(1),
            carry,
            fresh: libm::sqrt(1.0 - carry * carry),
            at: 0,
            level: 0.0,
            next: 0.0,
        };
        wander.level = wander.innovation(0);
        wander.next = wander.after(0, wander.level);
        wander
    }

    /// The level at `instant` (nanoseconds), standard normal. Cheapest when
    /// instants do not decrease, right in any order.
    pub(crate) fn level(&mut self, instant: u64) -> f64 {
        let point = instant / self.step_ns;
        self.move_to(point);
        let towards = (instant % self.step_ns) as f64 / self.step_ns as f64;
        let rho = if Self::starts_block(point + 1) {
            0.0
        } else {
            self.carry
        };
        let away = 1.0 - towards;
        // Weights that sum to one would make the level calmer between grid
        // points than on them; dividing by the deviation keeps it at one.
        let deviation = libm::sqrt(away * away + towards * towards + 2.0 * rho * away * towards);
        (away * self.level + towards * self.next) / deviation
    }

    fn move_to(&mut self, point: u64) {
        if point == self.at {
            return;
        }
        let block = point - point % STEPS_PER_BLOCK;
        if point < self.at || block > self.at {
            self.at = block;
            self.level = self.innovation(block);
            self.next = self.after(block, self.level);
        }
        while self.at < point {
            self.at += 1;
            self.level = self.next;
            self.next = self.after(self.at, self.level);
        }
    }

    /// The level one grid point after `point`, where it is `level`.
    fn after(&self, point: u64, level: f64) -> f64 {
        let innovation = self.innovation(point + 1);
        if Self::starts_block(point + 1) {
            innovation
        } else {
            self.carry * level + self.fresh * innovation
        }
    }

    fn innovation(&self, point: u64) -> f64 {
        normal::quantile(self.stream.unit(point, 0))
    }

    const fn starts_block(point: u64) -> bool {
        point.is_multiple_of(STEPS_PER_BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::{Purpose, Scope};

    fn wander(correlation_ns: u64) -> Wander {
        Wander::new(
            Stream::new(5, Scope::Up, Purpose::JitterWander),
            correlation_ns,
        )
    }

    #[test]
    fn is_standard_normal_at_grid_points_and_between() {
        let mut wander = wander(4_000);
        for offset in [0, 250, 500, 900] {
            let n = 100_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for point in 0..n {
                // Every 20th point: correlation e^-5, as good as independent.
                let level = wander.level(point * 20_000 + offset);
                sum += level;
                squares += level * level;
            }
            let mean = sum / n as f64;
            let variance = squares / n as f64 - mean * mean;
            assert!(mean.abs() < 0.015, "{mean}");
            assert!((variance - 1.0).abs() < 0.025, "{variance}");
        }
    }

    #[test]
    fn forgets_at_the_rate_asked_for() {
        let mut wander = wander(1_000);
        let n = 200_000_u64;
        let levels: Vec<f64> = (0..n).map(|i| wander.level(i * 250)).collect();
        let correlation = |lag: usize| {
            let pairs = levels.iter().zip(&levels[lag..]);
            pairs.map(|(a, b)| a * b).sum::<f64>() / (n as usize - lag) as f64
        };
        assert!((correlation(4) - (-1.0_f64).exp()).abs() < 0.03);
        assert!((correlation(8) - (-2.0_f64).exp()).abs() < 0.03);

        let halfway: Vec<f64> = (0..n).map(|i| wander.level(i * 250 + 125)).collect();
        let pairs = halfway.iter().zip(&halfway[4..]);
        let correlation = pairs.map(|(a, b)| a * b).sum::<f64>() / n as f64;
        assert!((correlation - 0.42).abs() < 0.03, "{correlation}");
    }

    #[test]
    fn does_not_depend_on_what_was_asked_before() {
        let mut asked_often = wander(1_000);
        let mut instants: Vec<u64> = (0..5_000).map(|i| i * 137).collect();
        let often: Vec<f64> = instants.iter().map(|&i| asked_often.level(i)).collect();
        for (&instant, &level) in instants.iter().zip(&often).step_by(97) {
            assert_eq!(wander(1_000).level(instant).to_bits(), level.to_bits());
        }
        instants.reverse();
        for (&instant, &level) in instants.iter().zip(often.iter().rev()) {
            assert_eq!(asked_often.level(instant).to_bits(), level.to_bits());
        }
    }
}
