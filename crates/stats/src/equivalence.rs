//! Whether a figure is the same in two testbeds, as far as anybody need care:
//! two one-sided tests.
//!
//! That no difference was found is no evidence that there is none: few or noisy
//! seeds find nothing ever. So the burden of proof is turned round. Both
//! testbeds play the same seeds; the mean of the differences, seed by seed, must
//! be shown to be above minus a margin *and* below the margin, each by a
//! one-sided t-test (D. J. Schuirmann, "A comparison of the two one-sided tests
//! procedure and the power approach for assessing the equivalence of average
//! bioavailability", 1987). The chance to call two things equal that are apart
//! by the margin or more is then at most [`CHANCE`], however few the seeds: with
//! too few nothing is called equal.
//!
//! Where several figures must *all* be equivalent, each may be tested with the
//! whole chance: the procedure as a whole errs no more often (R. L. Berger,
//! "Multiparameter hypothesis testing and acceptance sampling", 1982).

use crate::student::{one_sided_p, one_sided_quantile, two_sided_p, two_sided_quantile};

/// The chance to call two figures equal that are apart by the margin, and to
/// call two different that are not.
pub const CHANCE: f64 = 0.05;

/// With fewer seeds than this two testbeds are not to be called equal.
pub const FEWEST_EQUIVALENCE_SEEDS: usize = 20;

/// More seeds than this nobody is advised to play.
const MOST_SEEDS: usize = 1_000;

/// Standard errors by which an estimate exceeds its expectation less than once
/// in five times.
const FOUR_OF_FIVE: f64 = 0.841_621;

/// What is known of the difference of one figure between two testbeds, in the
/// figure's unit: the second less the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equivalence {
    /// How many seeds both played.
    pub seeds: usize,
    /// The mean difference.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Lower end of the 90 % confidence interval: by two one-sided tests with a
    /// chance of 5 % each, equivalence is this interval's lying between the
    /// margins.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The margin within which differences do not matter.
    pub margin: f64,
    /// The larger p-value of the two one-sided tests.
    pub p_value: f64,
    /// The chance of a difference at least as large, either way, where there is none.
    pub difference_p_value: f64,
    /// The smallest true difference that a two-sided test of so many seeds as
    /// noisy as these finds in four runs of five. Where it is larger than the
    /// margin, more seeds are needed for any answer.
    pub smallest_detectable: f64,
    /// What can be said.
    pub finding: EquivalenceFinding,
}

/// What two one-sided tests and a test for difference say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EquivalenceFinding {
    /// The difference is shown to be smaller than the margin, whether there is
    /// one or not.
    Equivalent,
    /// There is a difference, and it is not shown to be smaller than the margin.
    Different,
    /// Neither: too few seeds, or too noisy ones.
    Undecided,
}

impl Equivalence {
    /// About how many seeds as noisy as these would show the figures to be
    /// equal in four runs of five, were they truly apart as they were found;
    /// none where they are apart by the margin, or a thousand are too few.
    #[must_use]
    pub fn seeds_needed(&self) -> Option<usize> {
        let deviation = self.error * (self.seeds as f64).sqrt();
        let room = self.margin - self.mean.abs();
        (self.seeds + 1..=MOST_SEEDS).find(|&seeds| {
            let freedom = u32::try_from(seeds - 1).unwrap_or(u32::MAX);
            let errors = one_sided_quantile(CHANCE, freedom) + FOUR_OF_FIVE;
            errors * deviation / (seeds as f64).sqrt() <= room
        })
    }
}

/// Holds a figure of two testbeds against each other: of each seed its value in
/// the first and in the second.
///
/// `margin` is the largest difference that does not matter, above 0, and
/// `resolution` the smallest that the figure of one seed can have, 0 or more:
/// seeds that happen to agree are no proof of certainty. An infinite value, a
/// quantile that was lost, counts as twice the largest finite one of either
/// testbed; pairs of which both are infinite are equal. `None` for fewer than
/// two seeds, a value that is no number, or a margin that is none.
#[must_use]
pub fn equivalence(pairs: &[(f64, f64)], margin: f64, resolution: f64) -> Option<Equivalence> {
    let is_nan = pairs.iter().any(|pair| pair.0.is_nan() || pair.1.is_nan());
    if pairs.len() < 2 || is_nan || !(margin > 0.0 && resolution >= 0.0) {
        return None;
    }
    let differences = differences(pairs);
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences
        .iter()
        .map(|each| (each - mean) * (each - mean))
        .sum();
    let least = (resolution / count.sqrt()).max(f64::MIN_POSITIVE);
    let error = (squares / (count - 1.0) / count).sqrt().max(least);
    let freedom = u32::try_from(differences.len() - 1).unwrap_or(u32::MAX);
    let half_width = one_sided_quantile(CHANCE, freedom) * error;
    let p_value = one_sided_p((margin - mean.abs()) / error, freedom);
    let difference_p_value = two_sided_p(mean / error, freedom);
    let finding = if p_value <= CHANCE {
        EquivalenceFinding::Equivalent
    } else if difference_p_value <= CHANCE {
        EquivalenceFinding::Different
    } else {
        EquivalenceFinding::Undecided
    };
    Some(Equivalence {
        seeds: differences.len(),
        mean,
        error,
        low: mean - half_width,
        high: mean + half_width,
        margin,
        p_value,
        difference_p_value,
        smallest_detectable: (two_sided_quantile(CHANCE, freedom) + FOUR_OF_FIVE) * error,
        finding,
    })
}

/// The second of each pair less the first.
fn differences(pairs: &[(f64, f64)]) -> Vec<f64> {
    let largest = pairs
        .iter()
        .flat_map(|&(first, second)| [first, second])
        .filter(|value| value.is_finite())
        .fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let ceiling = if largest > 0.0 { 2.0 * largest } else { 1.0 };
    let finite = |value: f64| {
        if value.is_finite() {
            value
        } else {
            ceiling.copysign(value)
        }
    };
    pairs
        .iter()
        .map(|&(first, second)| finite(second) - finite(first))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_units::SplitMix64;
    use proptest::prelude::*;

    /// Normal deviates that are the same on every machine.
    struct Normal(SplitMix64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// By the sum of twelve: good enough beyond two deviations.
        fn next(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// The share of runs of `seeds` seeds, whose testbeds are truly apart by
    /// `apart` standard deviations of a seed's difference, with this finding.
    fn rate(seeds: usize, apart: f64, margin: f64, finding: EquivalenceFinding) -> f64 {
        const RUNS: usize = 4_000;
        let mut normal = Normal(SplitMix64::new(seeds as u64));
        let found = (0..RUNS).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..seeds)
                .map(|_| {
                    // Both meet the same impairments, which is far more than the rest.
                    let shared = 100.0 + 30.0 * normal.next();
                    (shared, shared + apart + normal.next())
                })
                .collect();
            equivalence(&pairs, margin, 0.0).is_some_and(|found| found.finding == finding)
        });
        found.count() as f64 / RUNS as f64
    }

    #[test]
    fn what_is_apart_by_the_margin_is_called_equal_once_in_twenty_times() {
        for seeds in [3, 5, 20, 40] {
            for margin in [0.5, 1.0, 3.0] {
                let wrong = rate(seeds, margin, margin, EquivalenceFinding::Equivalent);
                assert!(wrong <= 0.062, "{seeds} seeds, ± {margin}: {wrong}");
            }
        }
        let sharp = rate(20, 1.0, 1.0, EquivalenceFinding::Equivalent);
        assert!(sharp >= 0.04, "the chance is used: {sharp}");
    }

    #[test]
    fn what_is_equal_is_called_different_once_in_twenty_times() {
        for seeds in [5, 20] {
            let wrong = rate(seeds, 0.0, 1e-9, EquivalenceFinding::Different);
            assert!((0.04..=0.062).contains(&wrong), "{seeds} seeds: {wrong}");
        }
    }

    #[test]
    fn the_smallest_detectable_difference_is_found_in_four_runs_of_five() {
        let seeds = 20;
        // Of twenty seeds with a deviation of 1.
        let error = 1.0 / (seeds as f64).sqrt();
        let apart = (two_sided_quantile(CHANCE, 19) + FOUR_OF_FIVE) * error;
        let found = rate(seeds, apart, 1e-9, EquivalenceFinding::Different);
        assert!((0.77..=0.83).contains(&found), "{found}");
        let pairs: Vec<(f64, f64)> = (0..20).map(|n| (0.0, f64::from(n % 2) * 2.0)).collect();
        let is = equivalence(&pairs, 5.0, 0.0).unwrap();
        let wanted = (two_sided_quantile(CHANCE, 19) + FOUR_OF_FIVE) * is.error;
        assert!((is.smallest_detectable - wanted).abs() < 1e-12);
        assert!((is.error - (20.0 / 19.0 / 20.0_f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn the_seeds_that_are_needed_show_equality_in_four_runs_of_five() {
        // Of a deviation of 2 and a mean of 0.4, all but.
        let pairs: Vec<(f64, f64)> = (0..20)
            .map(|n| (0.4 - f64::from(n % 2) * 4.0, -2.0))
            .collect();
        let found = equivalence(&pairs, 1.0, 0.0).unwrap();
        assert_eq!(found.finding, EquivalenceFinding::Undecided);
        let seeds = found.seeds_needed().unwrap();
        // Half of it all, of a deviation of 1.
        let shown = rate(seeds, 0.2, 0.5, EquivalenceFinding::Equivalent);
        assert!((0.75..=0.9).contains(&shown), "{seeds} seeds: {shown}");
        let apart = equivalence(&pairs, 0.2, 0.0).unwrap();
        assert_eq!(apart.seeds_needed(), None);
    }

    #[test]
    fn too_few_or_too_noisy_seeds_decide_nothing() {
        let noisy = [(0.0, 100.0), (0.0, -100.0), (0.0, 3.0)];
        let found = equivalence(&noisy, 5.0, 0.0).unwrap();
        assert_eq!(found.finding, EquivalenceFinding::Undecided);
        assert!(found.smallest_detectable > 5.0);
        assert_eq!(equivalence(&noisy[..1], 5.0, 0.0), None);
        assert_eq!(equivalence(&noisy, 0.0, 0.0), None);
        assert_eq!(equivalence(&noisy, f64::NAN, 0.0), None);
        assert_eq!(equivalence(&[(f64::NAN, 0.0); 9], 5.0, 0.0), None);
    }

    #[test]
    fn agreement_to_the_last_digit_is_no_certainty_below_the_resolution() {
        let same = [(7.0, 7.0); 4];
        let of = |margin, resolution| equivalence(&same, margin, resolution).unwrap().finding;
        assert_eq!(of(0.5, 0.1), EquivalenceFinding::Equivalent);
        assert_eq!(of(0.5, 1.0), EquivalenceFinding::Undecided);
        let apart = [(7.0, 8.0); 4];
        let found = equivalence(&apart, 0.5, 0.1).unwrap();
        assert_eq!(found.finding, EquivalenceFinding::Different);
    }

    #[test]
    fn what_is_lost_in_one_testbed_alone_is_far_off() {
        let lost = f64::INFINITY;
        let both = [(lost, lost), (10.0, 10.0), (11.0, 11.0), (12.0, 12.0)];
        let found = equivalence(&both, 1.0, 0.1).unwrap();
        assert_eq!(found.finding, EquivalenceFinding::Equivalent);
        let one = [(10.0, lost), (10.0, lost), (11.0, lost), (12.0, lost)];
        let found = equivalence(&one, 1.0, 0.1).unwrap();
        assert_eq!(found.finding, EquivalenceFinding::Different);
        assert!(found.mean > 10.0);
    }

    proptest! {
        #[test]
        fn it_is_equivalent_exactly_where_the_interval_lies_between_the_margins(
            pairs in proptest::collection::vec((-50.0_f64..50.0, -50.0_f64..50.0), 2..40),
            margin in 0.01_f64..80.0,
        ) {
            let found = equivalence(&pairs, margin, 0.01).unwrap();
            let between = -margin <= found.low && found.high <= margin;
            prop_assert_eq!(found.finding == EquivalenceFinding::Equivalent, between);
            // A wider margin never takes it back.
            let wider = equivalence(&pairs, 2.0 * margin, 0.01).unwrap();
            prop_assert!(wider.p_value <= found.p_value);
            // Which testbed is called the first changes nothing but the sign.
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let other = equivalence(&swapped, margin, 0.01).unwrap();
            prop_assert_eq!(other.finding, found.finding);
            prop_assert!((other.mean + found.mean).abs() < 1e-9);
        }
    }
}
