//! Splitting one seed into independent ones.

use lagometer_units::{GOLDEN, mix};

/// A seed for the use named by `purpose`, independent of those for other
/// purposes.
pub(crate) const fn derive(seed: u64, purpose: u64) -> u64 {
    mix(seed ^ purpose.wrapping_mul(GOLDEN))
}
