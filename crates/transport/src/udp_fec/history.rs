//! The latest messages, to compute others from.

use std::collections::VecDeque;

/// What one message costs beyond its bytes, so that a flood of tiny ones is
/// bounded too.
const ENTRY_COST_BYTES: usize = 64;

/// Messages by their numbers: so many of the latest, in so many bytes.
#[derive(Debug)]
pub(super) struct History {
    /// A message's place follows from its number.
    places: Vec<Option<(u32, Vec<u8>)>>,
    /// Their numbers in the order in which they came.
    order: VecDeque<u32>,
    held_bytes: usize,
    limit_bytes: usize,
}

impl History {
    /// Keeps `messages` (rounded up to a power of two, so that the places go on
    /// where the numbers wrap) in `limit_bytes`, 64 for each included.
    pub(super) fn new(messages: usize, limit_bytes: usize) -> Self {
        Self {
            places: vec![None; messages.next_power_of_two()],
            order: VecDeque::new(),
            held_bytes: 0,
            limit_bytes,
        }
    }

    /// Keeps a message, in place of the oldest where there is no room.
    pub(super) fn insert(&mut self, number: u32, message: Vec<u8>) {
        if let Some(there) = self.remove(number) {
            self.order.retain(|&number| number != there);
        }
        self.held_bytes += message.len() + ENTRY_COST_BYTES;
        let place = self.place(number);
        self.places[place] = Some((number, message));
        self.order.push_back(number);
        while self.held_bytes > self.limit_bytes {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.remove(oldest);
        }
    }

    /// The message so numbered, if it is kept.
    pub(super) fn get(&self, number: u32) -> Option<&[u8]> {
        let (kept, message) = self.places[self.place(number)].as_ref()?;
        (*kept == number).then_some(message)
    }

    /// Empties the place of a number. Returns the number that had it.
    fn remove(&mut self, number: u32) -> Option<u32> {
        let place = self.place(number);
        let (number, message) = self.places[place].take()?;
        self.held_bytes -= message.len() + ENTRY_COST_BYTES;
        Some(number)
    }

    const fn place(&self, number: u32) -> usize {
        number as usize % self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_latest_are_kept_across_the_wrap() {
        let mut history = History::new(3, 1 << 20);
        for step in 0..6_u32 {
            history.insert(step.wrapping_sub(3), vec![step as u8]);
        }
        let kept: Vec<_> = (0..7_u32)
            .map(|step| history.get(step.wrapping_sub(3)))
            .collect();
        let expected = [
            None,
            None,
            Some(&[2][..]),
            Some(&[3]),
            Some(&[4]),
            Some(&[5]),
            None,
        ];
        assert_eq!(kept, expected);
    }

    proptest! {
        #[test]
        fn it_holds_no_more_than_its_limit_and_gives_back_what_came(
            steps in prop::collection::vec((0_u32..64, 0_usize..300), 1..200),
        ) {
            let mut history = History::new(8, 1_000);
            for (number, length) in steps {
                history.insert(number, vec![number as u8; length]);
                let kept: Vec<_> = (0..64).filter_map(|n| Some((n, history.get(n)?))).collect();
                prop_assert!(kept.len() <= 8);
                let bytes: usize = kept.iter().map(|(_, m)| m.len() + ENTRY_COST_BYTES).sum();
                prop_assert_eq!(bytes, history.held_bytes);
                prop_assert!(bytes <= 1_000);
                prop_assert!(history.order.len() <= 8);
                for (n, message) in kept {
                    prop_assert!(message.iter().all(|&byte| byte == n as u8));
                }
                prop_assert_eq!(history.get(number).map(<[u8]>::len), Some(length));
            }
        }
    }
}
