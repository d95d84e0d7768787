//! Nearest-rank quantiles, of samples some of which never end.
//!
//! A message that is lost is infinitely late. Its place is therefore behind
//! every delay that was measured, and a quantile that lies there has no value:
//! it is censored. [`place`] decides that for tables, spreads, resamples,
//! comparisons and the page alike; what they differ in is only where they look
//! up the delay of a rank.

use crate::document::{CensoredQuantiles, Population, Quantiles};

/// Where a quantile lies among samples of which some never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There are no samples at all.
    Nowhere,
    /// At this rank, counted from 1, among those that ended, in ascending
    /// order.
    Rank(u64),
    /// Among those that never end: the quantile is infinite.
    Never,
}

/// Where the quantile of `per_mille` thousandths (0 to 1000; 0 is the smallest
/// sample, 1000 the largest) lies among `ended` samples that have a value and
/// `never` that are infinite.
#[must_use]
pub fn place(per_mille: u32, ended: u64, never: u64) -> Place {
    match nearest_rank(ended.saturating_add(never), per_mille) {
        0 => Place::Nowhere,
        rank if rank <= ended => Place::Rank(rank),
        _ => Place::Never,
    }
}

impl Place {
    /// The quantile's value, with infinity where it never ends; `None` where
    /// there are no samples. `at` gives the value of a rank.
    pub fn value(self, at: impl FnOnce(u64) -> f64) -> Option<f64> {
        match self {
            Self::Nowhere => None,
            Self::Rank(rank) => Some(at(rank)),
            Self::Never => Some(f64::INFINITY),
        }
    }
}

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
            place(per_mille, ended, never)
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

    #[test]
    fn of_a_hundred_with_one_lost_only_what_is_beyond_p99_is_lost() {
        assert_eq!(place(990, 99, 1), Place::Rank(99));
        assert_eq!(place(999, 99, 1), Place::Never);
        assert_eq!(place(0, 0, 3), Place::Never);
        assert_eq!(place(500, 0, 0), Place::Nowhere);
        assert_eq!(place(1000, u64::MAX, u64::MAX), Place::Rank(u64::MAX));
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
        /// What a quantile is by its definition: infinity takes its place among
        /// the samples like any other number.
        #[test]
        fn a_lost_sample_is_one_of_infinite_length(
            mut ended in proptest::collection::vec(0_u64..1_000, 0..200),
            never in 0_u64..200,
            per_mille in 0_u32..=1000,
        ) {
            ended.sort_unstable();
            let mut all: Vec<f64> = ended.iter().map(|&each| each as f64).collect();
            all.extend((0..never).map(|_| f64::INFINITY));
            let rank = (all.len() as u64 * u64::from(per_mille)).div_ceil(1000).max(1);
            let wanted = all.get(rank as usize - 1).copied();
            let found = place(per_mille, ended.len() as u64, never)
                .value(|rank| ended[rank as usize - 1] as f64);
            prop_assert_eq!(found, wanted);
        }

        /// Losing what had arrived never makes a quantile better.
        #[test]
        fn a_loss_never_flatters(
            mut ended in proptest::collection::vec(0_u64..1_000, 1..200),
            lost in 0_usize..200,
            per_mille in 0_u32..=1000,
        ) {
            ended.sort_unstable();
            let quantile = |ended: &[u64], never: u64| {
                place(per_mille, ended.len() as u64, never)
                    .value(|rank| ended[rank as usize - 1] as f64)
                    .unwrap_or(f64::NAN)
            };
            let whole = quantile(&ended, 0);
            ended.remove(lost % ended.len());
            prop_assert!(quantile(&ended, 1) >= whole);
        }

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
