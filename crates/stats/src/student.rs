//! Student's t-distribution, and Holm's procedure for many tests at once.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::steady::steady;

/// The chance that a variable of Student's t-distribution with `freedom`
/// degrees of freedom is at least as far from zero as `t`.
#[must_use]
pub fn two_sided_p(t: f64, freedom: u32) -> f64 {
    match distribution(freedom) {
        Some(student) if t.is_finite() => steady(2.0 * student.cdf(-t.abs())).min(1.0),
        Some(_) => 0.0,
        None => 1.0,
    }
}

/// How far from zero such a variable is with the chance `p`, either way.
#[must_use]
pub fn two_sided_quantile(p: f64, freedom: u32) -> f64 {
    distribution(freedom).map_or(f64::INFINITY, |student| {
        steady(student.inverse_cdf(1.0 - p / 2.0).abs())
    })
}

/// The chance that such a variable is at least `t`.
#[must_use]
pub fn one_sided_p(t: f64, freedom: u32) -> f64 {
    match distribution(freedom) {
        Some(student) if t.is_finite() => steady(student.cdf(-t)),
        Some(_) if t > 0.0 => 0.0,
        _ => 1.0,
    }
}

/// What such a variable exceeds with the chance `p`.
#[must_use]
pub fn one_sided_quantile(p: f64, freedom: u32) -> f64 {
    distribution(freedom).map_or(f64::INFINITY, |student| {
        steady(student.inverse_cdf(1.0 - p))
    })
}

fn distribution(freedom: u32) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, f64::from(freedom)).ok()
}

/// Which of these tests find something, if the chance that any of them errs
/// is to be at most `chance` whatever they have to do with each other (S. Holm,
/// "A simple sequentially rejective multiple test procedure", 1979): the
/// smallest p-value is held against `chance` over all tests, the next against
/// `chance` over the rest, and so on until one fails.
#[must_use]
pub fn holm(p_values: &[f64], chance: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut found = vec![false; p_values.len()];
    for (place, &test) in order.iter().enumerate() {
        if p_values[test] > chance / (p_values.len() - place) as f64 {
            break;
        }
        found[test] = true;
    }
    found
}

/// Those of several things, each with its p-value, of which [`holm`] says that chance may have
/// made them.
pub fn unsure<T>(
    judged: impl IntoIterator<Item = (T, f64)>,
    chance: f64,
) -> impl Iterator<Item = T> {
    let (things, p_values): (Vec<T>, Vec<f64>) = judged.into_iter().unzip();
    let found = holm(&p_values, chance);
    let judged = things.into_iter().zip(found);
    judged.filter_map(|(thing, is_sure)| (!is_sure).then_some(thing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_the_usual_tables() {
        for (freedom, quantile) in [
            (1, 12.706),
            (4, 2.776),
            (10, 2.228),
            (29, 2.045),
            (120, 1.980),
        ] {
            let found = two_sided_quantile(0.05, freedom);
            assert!((found - quantile).abs() < 5e-4, "{freedom}: {found}");
            assert!((two_sided_p(found, freedom) - 0.05).abs() < 1e-9);
        }
        // Far out, where many tests at once look: t with 19 degrees of freedom
        // exceeds 5.0492 either way seven times in a hundred thousand.
        assert!((two_sided_p(5.049_2, 19) / 7.1e-5 - 1.0).abs() < 0.05);
    }

    #[test]
    fn nothing_is_certain_without_freedom_and_nothing_likely_at_infinity() {
        assert!((two_sided_p(9.0, 0) - 1.0).abs() < 1e-12);
        assert!(two_sided_quantile(0.05, 0).is_infinite());
        assert!(two_sided_p(f64::INFINITY, 4).abs() < 1e-12);
        assert!(one_sided_p(f64::INFINITY, 4).abs() < 1e-12);
        assert!((one_sided_p(f64::NEG_INFINITY, 4) - 1.0).abs() < 1e-12);
        assert!(
            (one_sided_p(f64::NAN, 4) - 1.0).abs() < 1e-12,
            "no statistic"
        );
    }

    #[test]
    fn holm_stops_at_the_first_test_that_fails() {
        assert_eq!(holm(&[0.04, 0.01, 0.03], 0.05), [false, true, false]);
        assert_eq!(holm(&[0.01, 0.02, 0.04], 0.05), [true, true, true]);
        assert_eq!(holm(&[], 0.05), Vec::<bool>::new());
        // The third would do by itself, but the second does not.
        assert_eq!(holm(&[0.001, 0.026, 0.049], 0.05), [true, false, false]);
        let named = [("a", 0.04), ("b", 0.01), ("c", 0.03)];
        assert!(unsure(named, 0.05).eq(["a", "c"]));
    }

    proptest! {
        #[test]
        fn holm_finds_what_bonferroni_finds_and_nothing_beyond_the_chance(
            p_values in proptest::collection::vec(0.0_f64..0.2, 0..40),
        ) {
            let found = holm(&p_values, 0.05);
            for (p, found) in p_values.iter().zip(found) {
                prop_assert!(found || *p > 0.05 / p_values.len() as f64);
                prop_assert!(!found || *p <= 0.05);
            }
        }
    }
}
