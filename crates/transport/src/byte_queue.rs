//! A first-in-first-out queue of byte strings that is bounded in memory.

use std::collections::VecDeque;

/// What one entry costs beyond its bytes, so that a flood of tiny entries is
/// bounded too.
const ENTRY_COST_BYTES: usize = 64;

/// Byte strings, or what holds one, in order of arrival, up to a fixed amount
/// of memory.
#[derive(Debug)]
pub(crate) struct ByteQueue<T = Vec<u8>> {
    entries: VecDeque<T>,
    used_bytes: usize,
    limit_bytes: usize,
}

impl<T: AsRef<[u8]>> ByteQueue<T> {
    /// A queue that holds up to `limit_bytes`, 64 bytes for each entry
    /// included. An empty queue takes one entry of any size.
    pub(crate) const fn new(limit_bytes: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            used_bytes: 0,
            limit_bytes,
        }
    }

    /// Appends `entry` and says whether there was room for it.
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if !self.has_room_for(entry.as_ref().len()) {
            return false;
        }
        self.used_bytes += entry.as_ref().len() + ENTRY_COST_BYTES;
        self.entries.push_back(entry);
        true
    }

    /// Takes out the oldest entry.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let entry = self.entries.pop_front()?;
        self.used_bytes -= entry.as_ref().len() + ENTRY_COST_BYTES;
        Some(entry)
    }

    /// The oldest entry.
    pub(crate) fn front(&self) -> Option<&T> {
        self.entries.front()
    }

    /// Whether an entry of `len` bytes would be taken.
    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        self.entries.is_empty() || self.used_bytes + len + ENTRY_COST_BYTES <= self.limit_bytes
    }
}

impl ByteQueue {
    /// Moves the oldest entry into `buffer`, if there is one.
    pub(crate) fn pop_into(&mut self, buffer: &mut Vec<u8>) -> bool {
        match self.pop() {
            Some(entry) => {
                *buffer = entry;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_no_more_than_its_limit_and_gives_back_in_order() {
        let mut queue = ByteQueue::new(3 * (10 + ENTRY_COST_BYTES));
        let taken = (0..10_u8).filter(|&n| queue.push(vec![n; 10])).count();
        assert_eq!(taken, 3);
        assert_eq!(queue.pop(), Some(vec![0; 10]));
        assert!(queue.push(vec![9; 10]));
        assert_eq!(queue.pop(), Some(vec![1; 10]));
        assert_eq!(queue.pop(), Some(vec![2; 10]));
        assert_eq!(queue.pop(), Some(vec![9; 10]));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn an_empty_queue_takes_one_entry_of_any_size() {
        let mut queue = ByteQueue::new(100);
        assert!(queue.push(vec![0; 1000]));
        assert!(!queue.push(vec![0; 1]));
    }
}
