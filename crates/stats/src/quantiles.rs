//! Nearest-rank quantiles, of samples some of which never end.
//!
//! A message that is lost is infinitely late. Its place is therefore behind
//! every delay that was measured, and a quantile that lies there has no value:
//! it is censored. [`position_of`] decides that for tables, spreads, resamples,
//! comparisons and the page alike; what they differ in is only where they look
//! up the delay of a rank, and whether they say which quantile in thousandths
//! ([`position`]) or, as curves do, in nines.

use std::time::Duration;

/// Which quantile: the share of the samples at or below it, as a whole number of parts
/// so small that two that are written alike are the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(u64);

impl Quantile {
    /// Parts of all samples.
    const ALL: u64 = 1_000_000_000_000;

    /// The smallest of all samples.
    pub const MIN: Self = Self(0);

    /// The largest.
    pub const MAX: Self = Self(Self::ALL);

    /// That of so many thousandths; more than a thousand are a thousand.
    #[must_use]
    pub const fn per_mille(per_mille: u32) -> Self {
        let per_mille = if per_mille > 1000 { 1000 } else { per_mille };
        Self(Self::ALL / 1000 * per_mille as u64)
    }

    /// That of so many nines, 0 to 12: of 1 it is p90, of 2 p99, of 2.5 p99.68.
    #[must_use]
    pub fn nines(nines: f64) -> Self {
        let beyond = libm::pow(10.0, -nines.max(0.0)) * Self::ALL as f64;
        Self(Self::ALL.saturating_sub(libm::round(beyond) as u64))
    }

    /// The rank, counted from 1, among `len` sorted samples: the smallest that leaves at
    /// least that share of the samples at or below it (nearest rank, without
    /// interpolation). Zero only when there are no samples.
    #[must_use]
    pub fn rank(self, len: u64) -> u64 {
        let rank = (u128::from(len) * u128::from(self.0)).div_ceil(u128::from(Self::ALL));
        // At most `len`, for a share is at most all.
        u64::try_from(rank)
            .unwrap_or(len)
            .clamp(1, len.max(1))
            .min(len)
    }
}

/// Where a quantile lies among samples of which some never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantilePosition {
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
pub fn position(per_mille: u32, ended: u64, never: u64) -> QuantilePosition {
    position_of(Quantile::per_mille(per_mille), ended, never)
}

/// Where `quantile` lies among `ended` samples that have a value and `never` that are
/// infinite.
#[must_use]
pub fn position_of(quantile: Quantile, ended: u64, never: u64) -> QuantilePosition {
    match quantile.rank(ended.saturating_add(never)) {
        0 => QuantilePosition::Nowhere,
        rank if rank <= ended => QuantilePosition::Rank(rank),
        _ => QuantilePosition::Never,
    }
}

impl QuantilePosition {
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
/// `len` sorted samples, as [`Quantile::rank`] has it.
#[must_use]
pub fn nearest_rank(len: u64, per_mille: u32) -> u64 {
    Quantile::per_mille(per_mille).rank(len)
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
    fn nanoseconds_are_thousandths_of_thousandths_of_milliseconds() {
        assert!((in_millis(2_500_000) - 2.5).abs() < 1e-12);
        assert!(in_millis(0).abs() < 1e-12);
        assert_eq!(nanos(Duration::from_millis(3)), 3_000_000);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }

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
    fn nines_and_thousandths_of_one_quantile_are_the_same_quantile() {
        for (nines, per_mille) in [(0.0, 0), (1.0, 900), (2.0, 990), (3.0, 999)] {
            assert_eq!(Quantile::nines(nines), Quantile::per_mille(per_mille));
        }
        assert_eq!(Quantile::nines(-1.0), Quantile::MIN);
        assert_eq!(Quantile::nines(400.0), Quantile::MAX);
        assert_eq!(Quantile::per_mille(1001), Quantile::MAX);
        // A share that is written 0.9 is exactly nine tenths.
        assert_eq!(Quantile::nines(1.0).rank(70), 63);
    }

    #[test]
    fn deeper_into_the_tail_no_rank_falls() {
        let ranks: Vec<u64> = (0..=1200)
            .map(|hundredths| Quantile::nines(f64::from(hundredths) / 100.0).rank(123_456_789))
            .collect();
        assert!(ranks.is_sorted());
        assert_eq!(Quantile::nines(7.0).rank(100_000_000), 99_999_990);
    }

    #[test]
    fn of_a_hundred_with_one_lost_only_what_is_beyond_p99_is_lost() {
        assert_eq!(position(990, 99, 1), QuantilePosition::Rank(99));
        assert_eq!(position(999, 99, 1), QuantilePosition::Never);
        assert_eq!(position(0, 0, 3), QuantilePosition::Never);
        assert_eq!(position(500, 0, 0), QuantilePosition::Nowhere);
        assert_eq!(
            position(1000, u64::MAX, u64::MAX),
            QuantilePosition::Rank(u64::MAX)
        );
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
            let found = position(per_mille, ended.len() as u64, never)
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
                position(per_mille, ended.len() as u64, never)
                    .value(|rank| ended[rank as usize - 1] as f64)
                    .unwrap_or(f64::NAN)
            };
            let whole = quantile(&ended, 0);
            ended.remove(lost % ended.len());
            prop_assert!(quantile(&ended, 1) >= whole);
        }

    }
}
