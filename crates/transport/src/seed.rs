//! Splitting one seed into independent ones.

/// A seed for the use named by `purpose`, independent of those for other
/// purposes: the finaliser of `SplitMix64` (Steele, Lea and Flood 2014) over
/// both.
pub(crate) const fn derive(seed: u64, purpose: u64) -> u64 {
    let mut mixed = seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
