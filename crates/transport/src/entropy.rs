//! Randomness for libraries that draw it themselves, from the run's seed.
//!
//! A TLS library asks a global object for random bytes, not its caller. So an
//! endpoint owns an [`Entropy`] and lends it to its thread for the length of
//! a call into such a library; the objects handed to the library
//! ([`draw`]) take from whatever is lent at that moment. Two endpoints in
//! one thread never share a sequence, and a handshake repeats byte for byte
//! on any thread.
//!
//! The sequences are predictable by design: what is encrypted with them is a
//! benchmark's filling, never a secret.

use std::cell::RefCell;

use fastrand::Rng;
use thiserror::Error;

use crate::seed::derive;

thread_local! {
    static LENT: RefCell<Option<Rng>> = const { RefCell::new(None) };
}

/// A seeded sequence of random bytes that can be lent to the thread.
#[derive(Clone, Debug)]
pub(crate) struct Entropy {
    rng: Rng,
}

impl Entropy {
    /// The sequence number `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self {
            rng: Rng::with_seed(derive(seed, stream)),
        }
    }

    /// Makes `call` with this sequence lent to the thread.
    pub(crate) fn lend<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let loan = Loan {
            lender: &mut self.rng,
            outer: LENT.take(),
        };
        LENT.set(Some(loan.lender.clone()));
        call()
    }

    /// The next bytes of the sequence.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill(&mut bytes);
        bytes
    }
}

/// Puts things back as they were when a call ends, even by panic: the
/// sequence moves on in its owner, and an outer loan resumes.
struct Loan<'a> {
    lender: &'a mut Rng,
    outer: Option<Rng>,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(rng) = LENT.replace(self.outer.take()) {
            *self.lender = rng;
        }
    }
}

/// Nothing was lent to the thread: a library was called outside
/// [`Entropy::lend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no seeded randomness was lent to this thread")]
pub(crate) struct NothingLent;

/// Fills `bytes` from the sequence lent to this thread.
pub(crate) fn draw(bytes: &mut [u8]) -> Result<(), NothingLent> {
    LENT.with_borrow_mut(|lent| match lent {
        Some(rng) => {
            rng.fill(bytes);
            Ok(())
        }
        None => Err(NothingLent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eight() -> [u8; 8] {
        let mut bytes = [0; 8];
        draw(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn loans_nest_and_each_sequence_moves_on() {
        let mut outer = Entropy::new(1, 0);
        let mut inner = Entropy::new(1, 1);
        let mixed: Vec<_> = (0..3)
            .map(|_| outer.lend(|| (eight(), inner.lend(eight), eight())))
            .collect();
        let (mut outer, mut inner) = (Entropy::new(1, 0), Entropy::new(1, 1));
        for (first, between, second) in mixed {
            assert_eq!(outer.lend(eight), first);
            assert_eq!(outer.lend(eight), second);
            assert_eq!(inner.lend(eight), between);
            assert_ne!(first, between);
            assert_ne!(first, second);
        }
    }

    #[test]
    fn nothing_is_drawn_outside_a_loan() {
        assert_eq!(draw(&mut [0; 4]), Err(NothingLent));
        Entropy::new(1, 0).lend(|| ());
        assert_eq!(draw(&mut [0; 4]), Err(NothingLent));
    }
}
