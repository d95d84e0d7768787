//! Whether a run that kept a limit is evidence that the limit is kept, where what is bad
//! comes seldom and at length.
//!
//! A few long outages make most of what is late. A run that happened to meet none of
//! them is early *and* varies little, so an error made of its own units makes it certain
//! of what it did not see. What is bad in a figure is therefore also taken for a sum of
//! events of unlike size, and one more event is reckoned with, as bad as the caller says: the
//! worst unit of play that was met, or worse. It is the upper end of M. P. Fay and E. J. Feuer
//! ("Confidence intervals for directly standardized rates: a method based on the gamma
//! distribution", Statistics in Medicine 16, 1997), turned around into the chance of a run as
//! good as this one where the truth lies on the limit. A run of one worst unit only, or of
//! none, gets what the Poisson distribution gives it.

use statrs::function::gamma::gamma_ur;

use crate::steady::steady;

/// The chance, counted for both sides, that so little as `bad` is met where `limit` is true;
/// `variance` is that of `bad`, `worst` what one unit added to it at most. One where `bad` is
/// not below `limit`.
#[must_use]
pub fn p_value(bad: f64, variance: f64, worst: f64, limit: f64) -> f64 {
    let (mean, variance) = (bad + worst, variance + worst * worst);
    let are_numbers = [mean, variance, limit].into_iter().all(f64::is_finite);
    let is_known = are_numbers && mean > 0.0 && variance > 0.0;
    if bad >= limit || !is_known {
        return 1.0;
    }
    steady(2.0 * gamma_ur(mean * mean / variance, limit * mean / variance)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `count` events of one size, none or some: the chance is Poisson's own.
    #[test]
    fn events_of_one_size_are_counted_as_poisson_does() {
        let size = 0.001_f64;
        for (count, expected, chance) in [
            // e^-3, the rule of three.
            (0.0, 3.0_f64, 0.049_787),
            // (1 + 5) e^-5.
            (1.0, 5.0, 0.040_428),
            // (1 + 8 + 32) e^-8.
            (2.0, 8.0, 0.013_754),
        ] {
            let found = p_value(count * size, count * size * size, size, expected * size);
            assert!((found - 2.0 * chance).abs() < 1e-5, "{count}: {found}");
        }
    }

    #[test]
    fn a_worse_worst_unit_makes_a_run_less_of_a_proof() {
        let with = |worst| p_value(0.003, 7e-7, worst, 0.01);
        assert!(with(0.000_1) < with(0.000_75) && with(0.000_75) < with(0.003));
        assert!(with(0.000_75) < 0.001 && with(0.003) > 0.05);
    }

    #[test]
    fn what_is_not_below_its_limit_or_not_a_number_proves_nothing() {
        for found in [
            p_value(0.01, 1e-7, 1e-4, 0.01),
            // Of so uneven units hardly any run has as much.
            p_value(0.01, 0.01, 1e-4, 0.01),
            p_value(0.0, 0.0, 0.0, 0.01),
            p_value(0.001, 0.0, 0.0, 0.01),
            p_value(0.0, 1e-7, 0.0, 0.01),
            p_value(f64::NAN, 1e-7, 1e-4, 0.01),
            p_value(0.0, f64::INFINITY, 1e-4, 0.01),
            p_value(0.0, 1e-7, f64::INFINITY, 0.01),
            p_value(0.0, 1e-7, 1e-4, f64::INFINITY),
        ] {
            assert!((found - 1.0).abs() < 1e-12, "{found}");
        }
    }
}
