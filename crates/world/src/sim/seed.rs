//! Splitting one seed into independent ones.

use lagometer_units::{GOLDEN, SplitMix64};

/// A seed for the use named by `purpose` and `index`, independent of all
/// others.
pub(crate) const fn derive(seed: u64, purpose: u64, index: u64) -> u64 {
    SplitMix64::first(SplitMix64::first(seed ^ purpose.wrapping_mul(GOLDEN)) ^ index)
}

/// A number from 0 up to, not including, 1 made of a seed's upper 53 bits.
pub(crate) fn unit_interval(seed: u64) -> f64 {
    (seed >> 11) as f64 / (1_u64 << 53) as f64
}
