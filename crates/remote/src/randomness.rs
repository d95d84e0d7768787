//! The one place that draws from the operating system's randomness.
//!
//! Everything that is measured follows from a seed. What is drawn here must
//! follow from nothing: nonces and secrets that an unauthenticated peer could foresee would
//! let that peer in. No result depends on it.

use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes nobody can foresee.
///
/// # Panics
///
/// If the operating system has no randomness to give: nothing that is safe
/// could be done without.
pub(crate) fn unforeseeable<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system gives randomness");
    bytes
}
