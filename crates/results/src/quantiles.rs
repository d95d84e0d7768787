//! Quantiles as the document has them, of what was recorded: in milliseconds, and
//! censored where some samples never end.

use lagometer_stats::{Distribution, at_rank, in_millis, nanos, position};

use crate::document::{CensoredQuantiles, Population, Quantiles};

impl Quantiles {
    /// The quantiles of a distribution in milliseconds, each to one part in a
    /// thousand. All zero when it is empty.
    #[must_use]
    pub fn of(distribution: &Distribution) -> Self {
        let millis = |duration| in_millis(nanos(duration));
        let [p50, p90, p99, p99_9] = distribution.at_per_mille([500, 900, 990, 999]).map(millis);
        Self {
            min: millis(distribution.min()),
            p50,
            p90,
            p99,
            p99_9,
            max: millis(distribution.max()),
            mean: distribution.mean_nanos() / 1e6,
        }
    }

    /// The exact quantiles, in milliseconds, of samples in nanoseconds, which
    /// are left sorted. All zero when there are none.
    #[must_use]
    pub fn of_nanos(samples: &mut [u64]) -> Self {
        samples.sort_unstable();
        Self::of_sorted_nanos(samples)
    }

    /// The same of samples in ascending order.
    #[must_use]
    pub fn of_sorted_nanos(samples: &[u64]) -> Self {
        let (Some(&min), Some(&max)) = (samples.first(), samples.last()) else {
            return Self::default();
        };
        let sum: u128 = samples.iter().copied().map(u128::from).sum();
        Self {
            min: in_millis(min),
            p50: in_millis(at_rank(samples, 500)),
            p90: in_millis(at_rank(samples, 900)),
            p99: in_millis(at_rank(samples, 990)),
            p99_9: in_millis(at_rank(samples, 999)),
            max: in_millis(max),
            mean: sum as f64 / samples.len() as f64 / 1e6,
        }
    }
}

impl CensoredQuantiles {
    /// The exact quantiles, in milliseconds, of `sorted` samples in
    /// nanoseconds and `never` that are infinite.
    #[must_use]
    pub fn of_sorted_nanos(of: Population, sorted: &[u64], never: u64) -> Self {
        let ended = sorted.len() as u64;
        let at = |per_mille| {
            position(per_mille, ended, never)
                .value(|rank| in_millis(sorted[rank as usize - 1]))
                .filter(|value| value.is_finite())
        };
        let sum: u128 = sorted.iter().copied().map(u128::from).sum();
        Self {
            of,
            min: at(0),
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p99_9: at(999),
            max: at(1000),
            mean: (never == 0 && ended > 0).then(|| sum as f64 / ended as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(Quantiles::of_nanos(&mut []), Quantiles::default());
        assert_eq!(Quantiles::of(&Distribution::new()), Quantiles::default());
    }

    #[test]
    fn figures_of_nanoseconds_are_milliseconds() {
        let found = CensoredQuantiles::of_sorted_nanos(
            Population::Intended,
            &[1_000_000, 2_000_000, 4_500_000],
            0,
        );
        assert_eq!((found.min, found.p50), (Some(1.0), Some(2.0)));
        assert_eq!((found.max, found.mean), (Some(4.5), Some(2.5)));
        let lost = CensoredQuantiles::of_sorted_nanos(Population::Intended, &[1_000_000], 1);
        assert_eq!((lost.min, lost.max, lost.mean), (Some(1.0), None, None));
    }

    proptest! {
        #[test]
        fn at_least_the_share_lies_at_or_below(
            mut samples in proptest::collection::vec(0_u64..1_000, 1..300),
        ) {
            let quantiles = Quantiles::of_nanos(&mut samples);
            for (value, per_mille) in [
                (quantiles.p50, 500_u64),
                (quantiles.p90, 900),
                (quantiles.p99, 990),
                (quantiles.p99_9, 999),
            ] {
                let below = samples.iter().filter(|&&s| in_millis(s) < value).count() as u64;
                let at_or_below =
                    samples.iter().filter(|&&s| in_millis(s) <= value).count() as u64;
                let len = samples.len() as u64;
                prop_assert!(at_or_below * 1000 >= len * per_mille);
                prop_assert!(below * 1000 < len * per_mille);
            }
        }
    }
}
