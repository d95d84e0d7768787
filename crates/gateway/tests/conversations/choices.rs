//! Choices, drawn from a seed or read from the bytes of a fuzzer.

use lagometer_units::SplitMix64;

/// Where choices come from.
#[derive(Clone, Debug)]
pub(crate) enum Choices<'d> {
    /// A generator.
    Seed(SplitMix64),
    /// Bytes; zeros once they are used up.
    Bytes(&'d [u8]),
}

impl Choices<'_> {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self::Seed(SplitMix64::new(seed))
    }

    /// A number below `limit`, which must not be zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let number = match self {
            Self::Seed(generator) => generator.next_u64(),
            Self::Bytes(bytes) => {
                let take = if limit > 256 { 3 } else { 1 };
                let (head, rest) = bytes.split_at(take.min(bytes.len()));
                *bytes = rest;
                head.iter()
                    .fold(0, |number, &byte| number << 8 | u64::from(byte))
            }
        };
        (number % limit as u64) as usize
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Whether there is nothing left to choose from.
    pub(crate) fn are_over(&self) -> bool {
        matches!(self, Self::Bytes([]))
    }
}
