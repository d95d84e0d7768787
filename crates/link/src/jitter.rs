//! Jitter: the extra delay of a packet beyond its direction's base delay.

use std::sync::Arc;

use crate::keyed::Stream;
use crate::normal;
use crate::wander::Wander;

/// How extra delay is distributed, in nanoseconds, before it is cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Distribution {
    /// Even between zero and the maximum.
    Uniform,
    /// The bell curve.
    Normal { mean: f64, deviation: f64 },
    /// Lomax (Pareto of the second kind, starting at zero): the chance of more
    /// than x is (1 + x/scale)^-shape; the mean is scale / (shape - 1).
    Pareto { scale: f64, shape: f64 },
}

/// The quantile function of a distribution truncated to `0..=maximum`: what
/// would fall outside is drawn again inside, so no probability piles up at
/// the ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncated {
    distribution: Distribution,
    maximum: f64,
    /// The untruncated probability below zero, and within `0..=maximum`.
    below: f64,
    within: f64,
}

/// The jitter of one direction.
///
/// Both kinds begin with a standard normal *level*: a packet's own, by way of
/// its coin, or the one that wanders. The normal's cumulative function makes
/// it even, the distribution's quantile makes it extra delay; the two together
/// are smooth in the level and tabulated, since powers and error functions are
/// too slow for each packet.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    table: Table,
    level: Level,
}

/// The extra delay in nanoseconds at levels from one extreme to the other.
/// Cheap to clone: all lanes of a profile share it.
#[derive(Clone, Debug)]
pub(crate) struct Table(Arc<[f64]>);

/// Where a packet's place in the distribution comes from.
#[derive(Clone, Debug)]
enum Level {
    /// From its own coin.
    Independent(Stream),
    /// From a level common to all packets of the same instant.
    Wandering(Box<Wander>),
}

/// Levels beyond are taken as this: one draw in 6 000 million is.
const EXTREME_LEVEL: f64 = 6.4;
const ENTRIES_PER_LEVEL: f64 = 80.0;
/// From one extreme to the other, and one more to interpolate towards.
const ENTRIES: usize = 1026;

impl Truncated {
    pub(crate) fn new(distribution: Distribution, maximum_ns: u64) -> Self {
        let maximum = maximum_ns as f64;
        let (below, within) = match distribution {
            Distribution::Uniform => (0.0, 1.0),
            Distribution::Normal { mean, deviation } => {
                let below = normal::cumulative(-mean / deviation);
                let above = normal::cumulative((mean - maximum) / deviation);
                (below, 1.0 - below - above)
            }
            Distribution::Pareto { scale, shape } => {
                (0.0, 1.0 - libm::pow(1.0 + maximum / scale, -shape))
            }
        };
        Self {
            distribution,
            maximum,
            below,
            within,
        }
    }

    /// The share of the untruncated distribution that lies within the limits.
    pub(crate) const fn within(&self) -> f64 {
        self.within
    }

    /// The extra delay below which a share `unit` of all packets stays, in
    /// nanoseconds.
    fn quantile(&self, unit: f64) -> f64 {
        let extra = match self.distribution {
            Distribution::Uniform => unit * self.maximum,
            Distribution::Normal { mean, deviation } => {
                let probability = (self.below + unit * self.within).clamp(1e-300, 1.0 - 1e-16);
                mean + deviation * normal::quantile(probability)
            }
            Distribution::Pareto { scale, shape } => {
                scale * (libm::pow(1.0 - unit * self.within, -1.0 / shape) - 1.0)
            }
        };
        extra.clamp(0.0, self.maximum)
    }
}

impl Jitter {
    /// Jitter drawn for each packet by itself.
    pub(crate) fn independent(table: Table, coins: Stream) -> Self {
        Self {
            table,
            level: Level::Independent(coins),
        }
    }

    /// Jitter that all packets of one instant share and that keeps its
    /// likeness over the correlation time of `wander`.
    pub(crate) fn wandering(table: Table, wander: Wander) -> Self {
        Self {
            table,
            level: Level::Wandering(Box::new(wander)),
        }
    }

    /// The extra delay in nanoseconds of the packet with the coin
    /// (`slot`, `index`) that enters at `instant`.
    #[inline]
    pub(crate) fn extra(&mut self, instant: u64, slot: u64, index: u64) -> u64 {
        let level = match &mut self.level {
            Level::Independent(coins) => normal::quantile(coins.unit(slot, index)),
            Level::Wandering(wander) => wander.level(instant),
        };
        self.table.at_level(level)
    }

    /// The extra delay a packet meets at `instant` in the middle case: the
    /// level itself where it wanders, the median where each packet draws.
    pub(crate) fn typical(&mut self, instant: u64) -> u64 {
        let level = match &mut self.level {
            Level::Independent(_) => 0.0,
            Level::Wandering(wander) => wander.level(instant),
        };
        self.table.at_level(level)
    }
}

impl Table {
    pub(crate) fn new(truncated: Truncated) -> Self {
        let entries = (0..ENTRIES)
            .map(|entry| entry as f64 / ENTRIES_PER_LEVEL - EXTREME_LEVEL)
            .map(|level| truncated.quantile(normal::cumulative(level)));
        Self(entries.collect())
    }

    fn at_level(&self, level: f64) -> u64 {
        let level = level.clamp(-EXTREME_LEVEL, EXTREME_LEVEL);
        let place = (level + EXTREME_LEVEL) * ENTRIES_PER_LEVEL;
        let entry = place as usize;
        let towards = place - entry as f64;
        let (from, to) = (self.0[entry], self.0[entry + 1]);
        (from + (to - from) * towards).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::{Purpose, Scope};

    const MS: f64 = 1e6;

    fn shapes() -> [Truncated; 4] {
        [
            Truncated::new(Distribution::Uniform, 8_000_000),
            Truncated::new(
                Distribution::Normal {
                    mean: 3.0 * MS,
                    deviation: 2.0 * MS,
                },
                20_000_000,
            ),
            Truncated::new(
                Distribution::Pareto {
                    scale: 4.0 * MS,
                    shape: 3.0,
                },
                100_000_000,
            ),
            Truncated::new(
                Distribution::Pareto {
                    scale: 4.0 * MS,
                    shape: 1.5,
                },
                10_000_000,
            ),
        ]
    }

    /// The probability of at most `x` as the formula has it.
    fn probability(truncated: &Truncated, x: f64) -> f64 {
        let raw = match truncated.distribution {
            Distribution::Uniform => return x / truncated.maximum,
            Distribution::Normal { mean, deviation } => normal::cumulative((x - mean) / deviation),
            Distribution::Pareto { scale, shape } => 1.0 - (1.0 + x / scale).powf(-shape),
        };
        (raw - truncated.below) / truncated.within
    }

    #[test]
    fn marginals_are_what_was_asked_for_with_and_without_correlation() {
        for truncated in shapes() {
            let coins = Stream::new(9, Scope::Up, Purpose::Jitter);
            let wander = Wander::new(Stream::new(9, Scope::Up, Purpose::JitterWander), 1_000_000);
            for mut jitter in [
                Jitter::independent(Table::new(truncated), coins),
                Jitter::wandering(Table::new(truncated), wander),
            ] {
                let n = 20_000_u64;
                let mut extras: Vec<u64> = (0..n)
                    .map(|i| jitter.extra(i * 5_000_000 + 300_000, i, 0))
                    .collect();
                extras.sort_unstable();
                // Kolmogorov-Smirnov: 1.95/sqrt(n) is passed once in a
                // thousand; the seed is fixed, so it passes always or never.
                let distance = (0..n)
                    .map(|i| {
                        let x = extras[i as usize] as f64;
                        (probability(&truncated, x) - (i as f64 + 0.5) / n as f64).abs()
                    })
                    .fold(0.0, f64::max);
                assert!(
                    distance < 1.95 / (n as f64).sqrt(),
                    "{distance} {truncated:?}"
                );
            }
        }
    }

    #[test]
    fn the_table_is_exact_to_a_tenth_of_a_per_mille() {
        for truncated in shapes() {
            let table = Table::new(truncated);
            for step in -6390..=6390 {
                let level = f64::from(step) / 1000.0;
                let exact = truncated.quantile(normal::cumulative(level));
                let error = (table.at_level(level) as f64 - exact).abs();
                assert!(error <= 1e-4 * exact + 20.0, "{error} at {level}");
            }
        }
    }

    #[test]
    fn nothing_is_beyond_the_maximum_or_piles_up_there() {
        for truncated in shapes() {
            assert!(truncated.quantile(1.0 - 1e-16) <= truncated.maximum);
            assert!(truncated.quantile(0.99) < truncated.maximum);
            assert!(truncated.quantile(1e-16) < 100.0);
        }
    }
}
