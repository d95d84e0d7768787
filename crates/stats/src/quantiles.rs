//! Nearest-rank quantiles, of samples some of which never end.
//!
//! A message that is lost is infinitely late. Its place is therefore behind
//! every delay that was measured, and a quantile that lies there has no value:
//! it is censored. [`place`] decides that for tables, spreads, resamples,
//! comparisons and the page alike; what they differ in is only where they look
//! up the delay of a rank.

use std::time::Duration;

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

/// The nearest-rank quantile of sorted samples; zero when there are none.
#[must_use]
pub fn at_rank(sorted: &[u64], per_mille: u32) -> u64 {
    let rank = nearest_rank(sorted.len() as u64, per_mille);
    rank.checked_sub(1)
        .and_then(|index| sorted.get(index as usize).copied())
        .unwrap_or(0)
}

/// Nanoseconds in milliseconds.
#[must_use]
pub fn in_millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Whole nanoseconds of a duration, saturating after 584 years.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
    fn of_a_hundred_with_one_lost_only_what_is_beyond_p99_is_lost() {
        assert_eq!(place(990, 99, 1), Place::Rank(99));
        assert_eq!(place(999, 99, 1), Place::Never);
        assert_eq!(place(0, 0, 3), Place::Never);
        assert_eq!(place(500, 0, 0), Place::Nowhere);
        assert_eq!(place(1000, u64::MAX, u64::MAX), Place::Rank(u64::MAX));
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

    }
}
