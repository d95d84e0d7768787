//! How a duration was distributed, recorded without allocating.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest duration told apart; longer ones count as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Durations as they are recorded: a histogram of a fixed size, three digits
/// exact from `finest` on.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    histogram: Histogram<u64>,
}

/// How a duration was distributed, in the unit the field's name gives. All
/// zero when nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How often it was recorded.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

impl Durations {
    /// Nothing recorded yet; durations below `finest` are not told apart.
    pub(crate) fn new(finest: Duration) -> Self {
        let finest = u64::try_from(finest.as_nanos())
            .unwrap_or(LONGEST_NS)
            .clamp(1, LONGEST_NS / 2);
        let histogram = Histogram::new_with_bounds(finest, LONGEST_NS, 3)
            .expect("the bounds are in order and three digits are possible");
        Self { histogram }
    }

    /// Records a duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(nanos);
    }

    /// Adds what `other`, made with the same `finest`, recorded.
    pub(crate) fn add(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("two histograms of the same bounds can be added");
    }

    /// The distribution in microseconds.
    pub(crate) fn in_micros(&self) -> Spread {
        self.spread(1e3)
    }

    /// The distribution in milliseconds.
    pub(crate) fn in_millis(&self) -> Spread {
        self.spread(1e6)
    }

    fn spread(&self, unit_ns: f64) -> Spread {
        if self.histogram.is_empty() {
            return Spread::default();
        }
        // A quantile is the highest value of its bucket, which may lie above the maximum.
        let max = self.histogram.max();
        let quantile = |q| self.histogram.value_at_quantile(q).min(max) as f64 / unit_ns;
        Spread {
            count: self.histogram.len(),
            mean: self.histogram.mean().min(max as f64) / unit_ns,
            p50: quantile(0.5),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max: max as f64 / unit_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_their_unit() {
        let mut durations = Durations::new(Duration::from_nanos(100));
        for micros in 1..=1000 {
            durations.record(Duration::from_micros(micros));
        }
        let spread = durations.in_micros();
        assert_eq!(spread.count, 1000);
        assert!((spread.p50 - 500.0).abs() < 1.0, "{spread:?}");
        assert!((spread.p99 - 990.0).abs() < 2.0, "{spread:?}");
        assert!((durations.in_millis().mean - 0.5).abs() < 0.01);
    }

    #[test]
    fn no_figure_lies_above_the_longest() {
        let mut durations = Durations::new(Duration::from_nanos(100));
        durations.record(Duration::ZERO);
        let spread = durations.in_micros();
        let most = spread.p50.max(spread.p99).max(spread.mean);
        assert!(most <= spread.max, "{spread:?}");
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest() {
        let mut durations = Durations::new(Duration::from_micros(1));
        durations.record(Duration::MAX);
        let spread = durations.in_millis();
        assert_eq!(spread.count, 1);
        assert!(spread.max >= 3_600_000.0);
    }
}
