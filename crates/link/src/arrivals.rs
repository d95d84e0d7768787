//! A queue ordered by time: the event queue of whoever plays links in virtual
//! time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lagometer_units::Time;

/// Things on their way, each with the instant at which it arrives. Those that
/// arrive at one instant come in the order in which they were pushed.
#[derive(Debug)]
pub struct Arrivals<T> {
    heap: BinaryHeap<Pending<T>>,
    pushed: u64,
}

/// One of them.
#[derive(Debug)]
struct Pending<T> {
    at: Time,
    /// Breaks ties in the order of pushing.
    order: u64,
    what: T,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            pushed: 0,
        }
    }
}

impl<T> Arrivals<T> {
    /// Lets `what` arrive at `at`.
    pub fn push(&mut self, at: Time, what: T) {
        self.heap.push(Pending {
            at,
            order: self.pushed,
            what,
        });
        self.pushed += 1;
    }

    /// The next that has arrived by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        if self.next_arrival()? > now {
            return None;
        }
        self.heap.pop().map(|pending| pending.what)
    }

    /// The same, left where it is.
    #[must_use]
    pub fn peek_due(&self, now: Time) -> Option<&T> {
        let pending = self.heap.peek()?;
        (pending.at <= now).then_some(&pending.what)
    }

    /// When the next one arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.heap.peek().map(|pending| pending.at)
    }

    /// How many are on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

// The heap pops its greatest, so the earliest compares as the greatest.
impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Pending<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_ties_keep_their_order() {
        let mut arrivals = Arrivals::default();
        for (millis, name) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            arrivals.push(Time::from_millis(millis), name);
        }
        assert_eq!(arrivals.next_arrival(), Some(Time::from_millis(3)));
        assert_eq!(arrivals.pop_due(Time::from_millis(2)), None);
        let mut order = Vec::new();
        while let Some(name) = arrivals.pop_due(Time::from_millis(5)) {
            order.push(name);
        }
        assert_eq!(order, [2, 4, 1, 3]);
        assert!(arrivals.is_empty());
    }
}
