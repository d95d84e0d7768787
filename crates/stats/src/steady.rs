//! What a library reckons with the platform's mathematics, the same on every system.

/// The value to nine significant digits. `statrs` takes the logarithms and powers of the
/// platform, which differ from one to the next in the last of sixteen digits, and some more
/// once they are summed; what stands in a document must not.
pub(crate) fn steady(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digits_of_a_number_are_not_its_own() {
        let third = 1.0_f64 / 3.0;
        assert_eq!(steady(third).to_bits(), 0.333_333_333_f64.to_bits());
        assert_eq!(
            steady(third * (1.0 + 1e-13)).to_bits(),
            steady(third).to_bits()
        );
        assert!(steady(f64::INFINITY).is_infinite() && steady(f64::NAN).is_nan());
        assert!(steady(0.0).abs() < f64::MIN_POSITIVE && steady(1e-300) > 0.0);
    }
}
