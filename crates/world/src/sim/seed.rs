//! Splitting one seed into independent ones.

/// A seed for the use named by `purpose` and `index`, independent of all
/// others: the finaliser of `SplitMix64` (Steele, Lea and Flood 2014), twice.
pub(crate) const fn derive(seed: u64, purpose: u64, index: u64) -> u64 {
    mix(mix(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ index)
}

const fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number from 0 up to, not including, 1 made of a seed's upper 53 bits.
pub(crate) fn unit_interval(seed: u64) -> f64 {
    (seed >> 11) as f64 / (1_u64 << 53) as f64
}
