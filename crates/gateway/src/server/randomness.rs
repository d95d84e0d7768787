//! The one place of the gateway that draws from the operating system's
//! randomness: secrets that an attacker must not predict.

use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes nobody can foresee.
///
/// # Panics
///
/// If the operating system has no randomness to give: nothing that is safe
/// could be done without.
pub(super) fn unforeseeable<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system gives randomness");
    bytes
}
