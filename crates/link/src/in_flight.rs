//! Packets on their way, in order of arrival: the event queue of whoever plays
//! links in virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lagometer_units::Time;

use crate::Direction;

/// One packet on its way, which belongs to `owner`: the connection or lane,
/// where several share a queue.
#[derive(Debug)]
pub struct Packet<T> {
    /// When it arrives.
    pub at: Time,
    /// Breaks ties in the order of sending.
    order: u64,
    /// Whose it is.
    pub owner: T,
    /// Where it goes.
    pub direction: Direction,
    /// Its bits were changed on the way.
    pub damaged: bool,
    /// What the host that sent it handed out.
    pub bytes: Vec<u8>,
}

/// All packets on their way, and the buffers of those that arrived, to be used
/// again. Packets that arrive at one instant come in the order in which they
/// were pushed.
#[derive(Debug)]
pub struct InFlight<T> {
    heap: BinaryHeap<Packet<T>>,
    pushed: u64,
    spare: Vec<Vec<u8>>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            pushed: 0,
            spare: Vec::new(),
        }
    }
}

impl<T> InFlight<T> {
    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.heap.peek().map(|packet| packet.at)
    }

    /// Lets a packet arrive at `at`.
    pub fn push(
        &mut self,
        at: Time,
        owner: T,
        direction: Direction,
        damaged: bool,
        bytes: Vec<u8>,
    ) {
        self.heap.push(Packet {
            at,
            order: self.pushed,
            owner,
            direction,
            damaged,
            bytes,
        });
        self.pushed += 1;
    }

    /// The next packet that has arrived by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<Packet<T>> {
        if self.next_arrival()? > now {
            return None;
        }
        self.heap.pop()
    }

    /// An empty buffer, used before if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back for [`buffer`](Self::buffer).
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// How many packets are on their way.
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
impl<T> Ord for Packet<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<T> PartialOrd for Packet<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Packet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Packet<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_ties_keep_their_order() {
        let mut in_flight = InFlight::default();
        for (millis, byte) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            let at = Time::from_millis(millis);
            in_flight.push(at, (), Direction::Up, false, vec![byte]);
        }
        assert!(in_flight.pop_due(Time::from_millis(2)).is_none());
        let mut order = Vec::new();
        while let Some(packet) = in_flight.pop_due(Time::from_millis(5)) {
            order.push(packet.bytes[0]);
        }
        assert_eq!(order, [2, 4, 1, 3]);
    }

    #[test]
    fn a_buffer_that_comes_back_is_empty() {
        let mut in_flight: InFlight<()> = InFlight::default();
        in_flight.recycle(vec![1, 2, 3]);
        assert!(in_flight.buffer().is_empty());
    }
}
