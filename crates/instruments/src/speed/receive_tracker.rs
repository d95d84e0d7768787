//! What the receiver of a lane has seen: messages, duplicates, reordering, damage. Pure.

use serde::{Deserialize, Serialize};

/// Numbers behind the highest that are still distinguished from duplicates.
const WINDOW: u64 = 4096;
const WORDS: usize = (WINDOW / 64) as usize;

/// What has come of one lane, message by message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReceiveTracker {
    /// The number after the highest that came.
    next: u64,
    /// Which of the last [`WINDOW`] numbers before `next` came, in a ring.
    seen: [u64; WORDS],
    counts: Counts,
}

/// What has come of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Messages that came, whole, for the first time.
    pub(super) messages: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Messages that came once more; those so late that it cannot be known
    /// count as such too.
    pub(super) duplicates: u64,
    /// Messages that came after one that was sent later.
    pub(super) reordered: u64,
    /// Messages with a wrong length or wrong bytes.
    pub(super) damaged: u64,
}

impl Default for ReceiveTracker {
    fn default() -> Self {
        Self {
            next: 0,
            seen: [0; WORDS],
            counts: Counts::default(),
        }
    }
}

impl ReceiveTracker {
    /// Message `number` of `bytes` bytes came, whole.
    pub(super) fn enter(&mut self, number: u64, bytes: usize) {
        if number >= self.next {
            // In order nothing is skipped, and the loop runs once.
            let skipped = (number - self.next).min(WINDOW);
            for back in 0..=skipped {
                self.set(number - back, back == 0);
            }
            self.next = number.saturating_add(1);
        } else {
            let too_old = self.next - number > WINDOW;
            if too_old || self.has(number) {
                self.counts.duplicates += 1;
                return;
            }
            self.set(number, true);
            self.counts.reordered += 1;
        }
        self.counts.messages += 1;
        self.counts.bytes += bytes as u64;
    }

    /// A piece of a stream came, in its place.
    pub(super) fn enter_stream(&mut self, bytes: usize) {
        self.counts.bytes += bytes as u64;
    }

    /// A message came that is not what was sent.
    pub(super) fn enter_damaged(&mut self) {
        self.counts.damaged += 1;
    }

    /// What has come so far.
    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    fn set(&mut self, number: u64, seen: bool) {
        let bit = 1 << (number % 64);
        let word = &mut self.seen[(number / 64) as usize % WORDS];
        if seen {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    const fn has(&self, number: u64) -> bool {
        self.seen[(number / 64) as usize % WORDS] & (1 << (number % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_largest_number_is_no_trouble() {
        let mut tracker = ReceiveTracker::default();
        tracker.enter(u64::MAX, 1);
        tracker.enter(3, 1);
        assert_eq!(tracker.counts().messages, 1);
        assert_eq!(tracker.counts().duplicates, 1);
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_all_numbers(
            steps in prop::collection::vec((0_u64..3000, any::<bool>()), 1..400),
        ) {
            let mut tracker = ReceiveTracker::default();
            let (mut all, mut highest) = (BTreeSet::new(), 0_u64);
            let mut expected = Counts::default();
            for (step, back) in steps {
                let number = if back { highest.saturating_sub(step) } else { highest + step };
                tracker.enter(number, 10);
                let late = all.last().is_some_and(|&last| number < last);
                if all.insert(number) {
                    expected.messages += 1;
                    expected.bytes += 10;
                    expected.reordered += u64::from(late);
                } else {
                    expected.duplicates += 1;
                }
                highest = highest.max(number);
            }
            prop_assert_eq!(tracker.counts(), expected);
        }
    }
}
