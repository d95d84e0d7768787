//! The standard normal distribution: its cumulative function and quantile,
//! in arithmetic that gives the same bits on every machine.

/// The probability that a standard normal variable is below `x`.
pub(crate) fn cumulative(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The value below which a standard normal variable falls with `probability`
/// (strictly between 0 and 1).
///
/// P. J. Acklam's rational approximation; its relative error is below 1.2e-9.
pub(crate) fn quantile(probability: f64) -> f64 {
    const TAIL: f64 = 0.024_25;
    if probability < TAIL {
        tail_quantile(probability)
    } else if probability > 1.0 - TAIL {
        -tail_quantile(1.0 - probability)
    } else {
        let q = probability - 0.5;
        let r = q * q;
        polynomial(&CENTRE_OVER, r) * q / (polynomial(&CENTRE_UNDER, r) * r + 1.0)
    }
}

fn tail_quantile(probability: f64) -> f64 {
    let q = libm::sqrt(-2.0 * libm::log(probability));
    polynomial(&TAIL_OVER, q) / (polynomial(&TAIL_UNDER, q) * q + 1.0)
}

/// Horner's scheme, the highest power's coefficient first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients
        .iter()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

const CENTRE_OVER: [f64; 6] = [
    -3.969_683_028_665_376e1,
    2.209_460_984_245_205e2,
    -2.759_285_104_469_687e2,
    1.383_577_518_672_69e2,
    -3.066_479_806_614_716e1,
    2.506_628_277_459_239,
];
const CENTRE_UNDER: [f64; 5] = [
    -5.447_609_879_822_406e1,
    1.615_858_368_580_409e2,
    -1.556_989_798_598_866e2,
    6.680_131_188_771_972e1,
    -1.328_068_155_288_572e1,
];
const TAIL_OVER: [f64; 6] = [
    -7.784_894_002_430_293e-3,
    -3.223_964_580_411_365e-1,
    -2.400_758_277_161_838,
    -2.549_732_539_343_734,
    4.374_664_141_464_968,
    2.938_163_982_698_783,
];
const TAIL_UNDER: [f64; 4] = [
    7.784_695_709_041_462e-3,
    3.224_671_290_700_398e-1,
    2.445_134_137_142_996,
    3.754_408_661_907_416,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_undoes_the_cumulative() {
        for step in -600..=600 {
            let x = f64::from(step) / 100.0;
            let back = quantile(cumulative(x));
            // Above 5 the cumulative has too few digits left before 1.
            if x < 5.0 {
                assert!(
                    (back - x).abs() < 2e-8 * x.abs().max(1.0),
                    "{x} became {back}"
                );
            }
        }
    }

    #[test]
    fn well_known_values() {
        assert!((cumulative(1.959_963_984_540_054) - 0.975).abs() < 1e-12);
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-8);
        assert!(quantile(0.5).abs() < 1e-12);
    }
}
