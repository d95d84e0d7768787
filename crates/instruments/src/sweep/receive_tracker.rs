//! What the receiver of a bandwidth test has seen. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payload::Payload;

/// Stretches of missing numbers that are remembered; of older ones nothing
/// counts any more.
const MOST_GAPS: usize = 4096;

/// What arrived, as the remote end reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Messages that arrived and were verified, each once.
    pub received: u64,
    /// Messages that came after a later one, or twice.
    pub disordered: u64,
    /// Arrivals of wrong length or content.
    pub corrupt: u64,
    /// From the first arrival to the last, in nanoseconds.
    pub span_ns: u64,
}

/// Checks datagrams and counts them.
#[derive(Clone, Debug)]
pub struct ReceiveTracker {
    payload: Payload,
    /// The number that comes next if nothing is lost.
    expected: u64,
    /// Numbers that are missing: first to one behind the last.
    gaps: BTreeMap<u64, u64>,
    found: Found,
}

impl ReceiveTracker {
    /// Nothing has arrived.
    #[must_use]
    pub const fn new(payload: Payload) -> Self {
        Self {
            payload,
            expected: 0,
            gaps: BTreeMap::new(),
            found: Found {
                received: 0,
                disordered: 0,
                corrupt: 0,
                span_ns: 0,
            },
        }
    }

    /// A datagram has arrived.
    #[inline]
    pub fn take(&mut self, datagram: &[u8]) {
        match self.payload.check(datagram, self.expected) {
            Ok(number) if number == self.expected => {
                self.expected += 1;
                self.found.received += 1;
            }
            Ok(number) if number > self.expected => {
                self.gaps.insert(self.expected, number);
                if self.gaps.len() > MOST_GAPS {
                    self.gaps.pop_first();
                }
                self.expected = number + 1;
                self.found.received += 1;
            }
            Ok(number) => self.came_late(number),
            Err(_) => self.found.corrupt += 1,
        }
    }

    /// What has been found, over `span_ns` nanoseconds.
    #[must_use]
    pub const fn found(&self, span_ns: u64) -> Found {
        Found {
            span_ns,
            ..self.found
        }
    }

    /// Arrivals of any kind.
    #[must_use]
    pub const fn arrivals(&self) -> u64 {
        self.found.received + self.found.disordered + self.found.corrupt
    }

    fn came_late(&mut self, number: u64) {
        self.found.disordered += 1;
        let gap = self.gaps.range(..=number).next_back();
        let Some((&from, &to)) = gap.filter(|(_, to)| number < **to) else {
            return;
        };
        self.found.received += 1;
        self.gaps.remove(&from);
        if from < number {
            self.gaps.insert(from, number);
        }
        if number + 1 < to {
            self.gaps.insert(number + 1, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found_of(numbers: &[u64], size: usize) -> Found {
        let payload = Payload::new(5, size);
        let mut tracker = ReceiveTracker::new(payload.clone());
        for &number in numbers {
            let mut message = vec![0; size];
            payload.write(number, &mut message);
            tracker.take(&message);
        }
        tracker.found(0)
    }

    #[test]
    fn each_message_counts_once_whenever_it_comes() {
        let found = found_of(&[0, 1, 4, 2, 2, 7, 5, 0], 20);
        assert_eq!((found.received, found.disordered), (6, 4));
    }

    #[test]
    fn losses_of_single_bytes_are_bridged() {
        let found = found_of(&[0, 1, 2, 100, 101, 227], 1);
        assert_eq!((found.received, found.disordered), (6, 0));
    }

    #[test]
    fn what_is_not_of_the_run_counts_as_corrupt() {
        let mut tracker = ReceiveTracker::new(Payload::new(5, 20));
        tracker.take(&[0; 20]);
        tracker.take(&[0; 19]);
        assert_eq!(tracker.found(0).corrupt, 2);
    }

    proptest! {
        #[test]
        fn received_is_the_number_of_different_messages(
            numbers in prop::collection::vec(0_u64..300, 0..200),
        ) {
            let found = found_of(&numbers, 12);
            let mut different = numbers.clone();
            different.sort_unstable();
            different.dedup();
            prop_assert_eq!(found.received, different.len() as u64);
        }
    }
}
