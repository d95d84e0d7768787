//! Nearest-rank quantiles of samples that are all at hand.

use crate::document::Quantiles;

/// The rank, counted from 1, of the quantile of `per_mille` thousandths among
/// `len` sorted samples: the smallest rank that leaves at least that share of
/// the samples at or below it (nearest rank, without interpolation). Zero
/// only when there are no samples.
#[must_use]
pub fn nearest_rank(len: u64, per_mille: u32) -> u64 {
    let rank = (u128::from(len) * u128::from(per_mille)).div_ceil(1000);
    // At most `len` for up to a thousand thousandths.
    u64::try_from(rank)
        .unwrap_or(len)
        .clamp(1, len.max(1))
        .min(len)
}

impl Quantiles {
    /// The exact quantiles, in milliseconds, of samples in nanoseconds, which
    /// are left sorted. All zero when there are none.
    #[must_use]
    pub fn of_nanos(samples: &mut [u64]) -> Self {
        samples.sort_unstable();
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

/// The nearest-rank quantile of sorted samples; zero when there are none.
pub(crate) fn at_rank(sorted: &[u64], per_mille: u32) -> u64 {
    let rank = nearest_rank(sorted.len() as u64, per_mille);
    rank.checked_sub(1)
        .and_then(|index| sorted.get(index as usize).copied())
        .unwrap_or(0)
}

/// Nanoseconds in milliseconds.
pub(crate) fn in_millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_ranks() {
        assert_eq!(nearest_rank(0, 500), 0);
        assert_eq!(nearest_rank(1, 999), 1);
        assert_eq!(nearest_rank(4, 500), 2);
        assert_eq!(nearest_rank(5, 500), 3);
        assert_eq!(nearest_rank(1000, 999), 999);
        assert_eq!(nearest_rank(1001, 999), 1000);
        assert_eq!(nearest_rank(7, 0), 1);
        assert_eq!(nearest_rank(u64::MAX, 1000), u64::MAX);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(Quantiles::of_nanos(&mut []), Quantiles::default());
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
