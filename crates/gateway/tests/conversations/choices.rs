//! Choices, drawn from a seed or read from the bytes of a fuzzer.

/// Where choices come from.
#[derive(Clone, Debug)]
pub(crate) enum Choices<'d> {
    /// The `SplitMix64` generator.
    Seed(u64),
    /// Bytes; zeros once they are used up.
    Bytes(&'d [u8]),
}

impl Choices<'_> {
    /// A number below `limit`, which must not be zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let number = match self {
            Self::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
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
