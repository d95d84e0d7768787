//! What settings are to achieve: one figure as good as can be, within limits.

use std::cmp::Ordering;

use lagometer_results::{Budget, Metric, SeedFigures, Statistic, UnknownMetric};
use thiserror::Error;

/// A round trip that was lost counts as so many milliseconds, longer than any that
/// is waited for.
pub(crate) const ENDLESS_MS: f64 = 120_000.0;

/// Bytes of a lane that got nothing through.
const MOST_OVERHEAD: f64 = 1000.0;

/// What an hour takes and costs where it is not known: more than anything that is played.
const MOST_PER_HOUR: f64 = 1e15;

/// What settings are to achieve.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    goal: Metric,
    limits: Vec<Budget>,
}

/// Why nothing can be searched for like this.
#[derive(Debug, Error)]
pub enum BadAim {
    /// There is no such figure.
    #[error(transparent)]
    UnknownMetric(#[from] UnknownMetric),
    /// The figure hangs on single messages, or on what virtual time does not have.
    #[error(
        "`{0}` cannot be searched by: name a share (`within 150 ms`, `lost`), `lag`, `freezes`, \
         `overhead`, `bytes per player hour`, `money per player hour`, or `p50`, `p90`, `p99` or `p99.9`; of a game `interpolation needed`, \
         `view frozen`, `view freezes` or `event p99`"
    )]
    NotSearchable(Metric),
    /// Two limits on one figure.
    #[error(
        "there are two limits on `{metric}`, {first} and {second}; leave out the one that is not \
         meant"
    )]
    Twice {
        /// The figure that is limited.
        metric: Metric,
        /// One limit.
        first: f64,
        /// The other limit, in the same unit.
        second: f64,
    },
    /// Nothing can be within the limit.
    #[error("no settings keep `{metric}` at most {limit}: {why}")]
    Impossible {
        /// The figure that is limited.
        metric: Metric,
        /// The limit.
        limit: f64,
        /// Why no settings can.
        why: String,
    },
}

/// How good figures are by an aim. The least is the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merit {
    /// By how much limits are missed, each in parts of itself; 0 where none is.
    pub violation: f64,
    /// The goal, so that less is better.
    pub cost: f64,
    /// Bytes on the wire over payload bytes.
    pub overhead: f64,
}

impl Merit {
    /// Limits first, then the goal, then bytes.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        self.violation
            .total_cmp(&other.violation)
            .then(self.cost.total_cmp(&other.cost))
            .then(self.overhead.total_cmp(&other.overhead))
    }
}

impl Aim {
    /// Where the goal stands among the figures of a seed.
    pub const GOAL: usize = 0;
    /// Where bytes on the wire over payload bytes stand.
    pub const OVERHEAD: usize = 1;
    /// Where the 99th percentile of the round trip stands.
    pub const DELAY: usize = 2;

    /// `goal` as good as can be, within `limits`.
    ///
    /// # Errors
    ///
    /// [`BadAim`] for figures that cannot be searched by and limits that nothing
    /// keeps.
    pub fn new(goal: Metric, limits: Vec<Budget>) -> Result<Self, BadAim> {
        for (index, limit) in limits.iter().enumerate() {
            let metric = limit.metric();
            if let Some(other) = limits[..index].iter().find(|it| it.metric() == metric) {
                return Err(BadAim::Twice {
                    metric,
                    first: other.limit(),
                    second: limit.limit(),
                });
            }
            if metric == Metric::Overhead && limit.limit() < 1.0 {
                return Err(BadAim::Impossible {
                    metric,
                    limit: limit.limit(),
                    why: "it counts all bytes on the wire over the payload's, and is above 1"
                        .to_owned(),
                });
            }
        }
        let aim = Self { goal, limits };
        let unfit = aim.metrics().find(|metric| !Self::is_searchable(*metric));
        match unfit {
            Some(metric) => Err(BadAim::NotSearchable(metric)),
            None => Ok(aim),
        }
    }

    /// Whether settings can be searched by a figure: it is kept by seed in virtual time and
    /// hangs on many messages.
    #[must_use]
    pub const fn is_searchable(metric: Metric) -> bool {
        matches!(
            metric,
            Metric::Within(_)
                | Metric::Lost
                | Metric::Lag
                | Metric::Freezes
                | Metric::ViewFreezes
                | Metric::ViewFrozen
                | Metric::InterpolationNeeded
                | Metric::Overhead
                | Metric::BytesPerHour
                | Metric::MoneyPerHour
                | Metric::Event(Statistic::P50 | Statistic::P90 | Statistic::P99)
                | Metric::Rtt(Statistic::P50 | Statistic::P90 | Statistic::P99 | Statistic::P99_9)
        )
    }

    /// Whether limits leave room on a network whose calm round trip is
    /// `base_rtt_ms`.
    ///
    /// # Errors
    ///
    /// [`BadAim::Impossible`] for a limit below it.
    pub fn check_network(&self, network: &str, base_rtt_ms: f64) -> Result<(), BadAim> {
        let too_short = |limit: &&Budget| {
            matches!(limit.metric(), Metric::Rtt(_)) && limit.limit() < base_rtt_ms
        };
        match self.limits.iter().find(too_short) {
            None => Ok(()),
            Some(limit) => Err(BadAim::Impossible {
                metric: limit.metric(),
                limit: limit.limit(),
                why: format!("the calm round trip of `{network}` is {base_rtt_ms} ms"),
            }),
        }
    }

    /// The figure that is to become best.
    #[must_use]
    pub const fn goal(&self) -> Metric {
        self.goal
    }

    /// What is to be kept.
    #[must_use]
    pub fn limits(&self) -> &[Budget] {
        &self.limits
    }

    /// The figures that are kept of a seed, in order: [`Self::GOAL`],
    /// [`Self::OVERHEAD`], [`Self::DELAY`], and one for each limit.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        [self.goal, Metric::Overhead, Metric::Rtt(Statistic::P99)]
            .into_iter()
            .chain(self.limits.iter().map(Budget::metric))
    }

    /// The figures of one seed; what was endless is very long, and what is missing
    /// as bad as can be.
    #[must_use]
    pub fn figures(&self, seed: &SeedFigures) -> Vec<f64> {
        self.metrics()
            .map(|metric| match metric.of_seed(seed) {
                Some(value) if value.is_finite() => value,
                _ => worst(metric),
            })
            .collect()
    }

    /// The figures of a seed in which nothing could be played.
    #[must_use]
    pub fn worst(&self) -> Vec<f64> {
        self.metrics().map(worst).collect()
    }

    /// How good figures are.
    #[must_use]
    pub fn merit(&self, figures: &[f64]) -> Merit {
        self.merit_with(figures, &vec![0.0; figures.len()])
    }

    /// How good figures are if every limited one may be worse by its `margin`.
    #[must_use]
    pub fn merit_with(&self, figures: &[f64], margins: &[f64]) -> Merit {
        let limited = self.limits.iter().zip(&figures[3..]).zip(&margins[3..]);
        let violation = limited.map(|((limit, value), margin)| {
            let (excess, whole) = if limit.metric().more_is_better() {
                (limit.limit() - value, 1.0 - limit.limit())
            } else {
                (value - limit.limit(), limit.limit())
            };
            (excess + margin).max(0.0) / whole.max(1e-3)
        });
        Merit {
            violation: violation.sum(),
            cost: self.cost(figures[Self::GOAL]),
            overhead: figures[Self::OVERHEAD],
        }
    }

    /// The goal's value so that less is better.
    #[must_use]
    pub fn cost(&self, goal: f64) -> f64 {
        if self.goal.more_is_better() {
            -goal
        } else {
            goal
        }
    }
}

/// Whether a figure of a search stands for something that was measured, and is not what
/// stands in for an endless or missing one.
pub(crate) fn is_known(metric: Metric, value: f64) -> bool {
    let most = match metric {
        Metric::BytesPerHour | Metric::MoneyPerHour => MOST_PER_HOUR,
        _ => ENDLESS_MS,
    };
    value < most
}

fn worst(metric: Metric) -> f64 {
    match metric {
        Metric::Within(_) => 0.0,
        Metric::Lost => 1.0,
        Metric::Lag | Metric::Freezes | Metric::ViewFrozen => 60.0,
        Metric::ViewFreezes => 1000.0,
        Metric::Overhead => MOST_OVERHEAD,
        Metric::BytesPerHour | Metric::MoneyPerHour => MOST_PER_HOUR,
        _ => ENDLESS_MS,
    }
}
