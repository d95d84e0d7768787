//! Which of the channel numbers that are given out in order are taken.
//!
//! One bit a number: the next free one is found a word at a time, so that it
//! costs next to nothing even where nearly all are taken and a peer makes and
//! removes channels as fast as it can.

/// Numbers that are taken. Memory grows with the largest of them.
#[derive(Debug, Default)]
pub(super) struct TakenNumbers {
    words: Vec<u64>,
    len: u32,
}

impl TakenNumbers {
    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn insert(&mut self, number: u32) {
        let (word, bit) = place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.len += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    pub(super) fn remove(&mut self, number: u32) {
        let (word, bit) = place(number);
        if let Some(word) = self.words.get_mut(word) {
            self.len -= u32::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    /// The first free number of `from..end`.
    pub(super) fn free(&self, from: u32, end: u32) -> Option<u32> {
        let mut at = from;
        while at < end {
            let word = self.words.get((at / 64) as usize).copied().unwrap_or(0);
            // Those before `at` count as taken.
            let free = !word & (u64::MAX << (at % 64));
            if free != 0 {
                let number = at / 64 * 64 + free.trailing_zeros();
                return (number < end).then_some(number);
            }
            at = (at / 64 + 1).checked_mul(64)?;
        }
        None
    }
}

fn place(number: u32) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_next_free_number_is_the_one_a_plain_search_finds(
            changes in proptest::collection::vec((0u32..300, any::<bool>()), 0..400),
            from in 0u32..300,
            end in 0u32..400,
        ) {
            let mut taken = TakenNumbers::default();
            let mut plain = BTreeSet::new();
            for (number, is_insert) in changes {
                if is_insert {
                    taken.insert(number);
                    plain.insert(number);
                } else {
                    taken.remove(number);
                    plain.remove(&number);
                }
            }
            prop_assert_eq!(taken.len() as usize, plain.len());
            let wanted = (from..end).find(|number| !plain.contains(number));
            prop_assert_eq!(taken.free(from, end), wanted);
        }
    }
}
