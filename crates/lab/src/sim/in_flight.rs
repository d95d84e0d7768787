//! Datagrams on their way, in order of arrival.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lagometer_link::Direction;
use lagometer_units::Time;

/// One datagram on its way.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) at: Time,
    /// Breaks ties in the order of sending.
    order: u64,
    pub(super) direction: Direction,
    pub(super) damaged: bool,
    pub(super) bytes: Vec<u8>,
}

/// All datagrams on their way, and the buffers of those that arrived, to be
/// used again.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    heap: BinaryHeap<Arrival>,
    sent: u64,
    spare: Vec<Vec<u8>>,
}

impl InFlight {
    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.heap.peek().map(|arrival| arrival.at)
    }

    pub(super) fn push(&mut self, at: Time, direction: Direction, damaged: bool, bytes: Vec<u8>) {
        self.heap.push(Arrival {
            at,
            order: self.sent,
            direction,
            damaged,
            bytes,
        });
        self.sent += 1;
    }

    pub(super) fn pop_due(&mut self, now: Time) -> Option<Arrival> {
        if self.next_arrival()? > now {
            return None;
        }
        self.heap.pop()
    }

    /// An empty buffer, used before if there is one.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

// The heap pops its greatest, so the earliest compares as the greatest.
impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_ties_keep_their_order() {
        let mut in_flight = InFlight::default();
        for (millis, byte) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            in_flight.push(Time::from_millis(millis), Direction::Up, false, vec![byte]);
        }
        assert!(in_flight.pop_due(Time::from_millis(2)).is_none());
        let mut order = Vec::new();
        while let Some(arrival) = in_flight.pop_due(Time::from_millis(5)) {
            order.push(arrival.bytes[0]);
        }
        assert_eq!(order, [2, 4, 1, 3]);
    }
}
