//! Packets on their way, in order of arrival.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lagometer_link::Direction;
use lagometer_units::Time;

/// One packet on its way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) at: Time,
    /// Breaks ties in the order of sending.
    order: u64,
    /// Whose road it is on.
    pub(super) seat: usize,
    pub(super) direction: Direction,
    /// Its bits were changed on the way.
    pub(super) damaged: bool,
    pub(super) bytes: Vec<u8>,
}

/// All packets on their way, and the buffers of those that arrived, to be used
/// again.
#[derive(Debug, Default)]
pub(super) struct Flights {
    heap: BinaryHeap<Flight>,
    sent: u64,
    spare: Vec<Vec<u8>>,
}

impl Flights {
    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.heap.peek().map(|flight| flight.at)
    }

    pub(super) fn push(
        &mut self,
        at: Time,
        seat: usize,
        direction: Direction,
        damaged: bool,
        bytes: Vec<u8>,
    ) {
        self.heap.push(Flight {
            at,
            order: self.sent,
            seat,
            direction,
            damaged,
            bytes,
        });
        self.sent += 1;
    }

    pub(super) fn pop_due(&mut self, now: Time) -> Option<Flight> {
        if self.next_arrival()? > now {
            return None;
        }
        self.heap.pop()
    }

    /// A buffer that holds `bytes`.
    pub(super) fn buffer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }

    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }
}

// The heap pops its greatest, so the earliest compares as the greatest.
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Flight {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_ties_keep_their_order() {
        let mut flights = Flights::default();
        for (millis, byte) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            flights.push(
                Time::from_millis(millis),
                0,
                Direction::Up,
                false,
                vec![byte],
            );
        }
        assert!(flights.pop_due(Time::from_millis(2)).is_none());
        let mut order = Vec::new();
        while let Some(flight) = flights.pop_due(Time::from_millis(5)) {
            order.push(flight.bytes[0]);
        }
        assert_eq!(order, [2, 4, 1, 3]);
    }
}
