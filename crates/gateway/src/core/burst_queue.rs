//! Queues that give back what a burst took.
//!
//! A list keeps the memory of the most that was ever in it. One that a flood has
//! filled once would keep megabytes for as long as the gateway runs.

use std::collections::VecDeque;

/// Places of a list that are kept however few are used.
const KEPT: usize = 1024;

/// Gives half of a list's memory back where no more than a sixteenth of it was
/// `used`: after a burst all of it within a few turns, under an even load nothing.
pub(crate) fn shrink<T>(items: &mut VecDeque<T>, used: usize) {
    let capacity = items.capacity();
    if capacity > KEPT && used <= capacity / 16 {
        items.shrink_to(capacity / 2);
    }
}

/// Items in the order they came, which are all taken turn after turn: each time
/// nothing is left, what a burst took is given back, half at a time.
#[derive(Debug)]
pub(crate) struct BurstQueue<T> {
    items: VecDeque<T>,
    /// How many were taken since nothing was left.
    taken: usize,
}

impl<T> Default for BurstQueue<T> {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            taken: 0,
        }
    }
}

impl<T> BurstQueue<T> {
    pub(crate) fn push_back(&mut self, item: T) {
        self.items.push_back(item);
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front();
        if item.is_some() {
            self.taken += 1;
        } else {
            shrink(&mut self.items, std::mem::take(&mut self.taken));
        }
        item
    }
}

impl<T> Extend<T> for BurstQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.items.extend(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_burst_took_is_given_back_and_an_even_load_keeps_its_places() {
        let mut queue = BurstQueue::default();
        let mut turn = |count: usize| {
            queue.extend(0..count);
            let taken = std::iter::from_fn(|| queue.pop_front()).count();
            assert_eq!(taken, count);
            queue.items.capacity()
        };
        let burst = turn(100_000);
        assert!(burst >= 100_000);
        let even: Vec<usize> = (0..20).map(|_| turn(500)).collect();
        assert!(even[19] <= 8000, "{even:?}");
        assert_eq!(turn(500), even[19]);
    }
}
