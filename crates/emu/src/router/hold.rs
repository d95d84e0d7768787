//! Packets that are on their way: a pool of buffers, and a heap that knows
//! which packet is due next.
//!
//! All memory is reserved when it is made. Taking a buffer, holding a packet
//! and letting it go allocate nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use lagometer_link::Direction;
use lagometer_units::Time;

/// Packets on their way, in the order in which they are due; those due at the
/// same instant in the order in which they came.
#[derive(Debug)]
pub(crate) struct Hold {
    slot_bytes: usize,
    bytes: Vec<u8>,
    free: Vec<Slot>,
    due: BinaryHeap<Reverse<Due>>,
    entered: u64,
}

/// A buffer of the pool, owned by whoever has this.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// A packet on its way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The buffer it lies in, from the start.
    pub(crate) slot: Slot,
    /// Its length in bytes.
    pub(crate) length: usize,
    /// The lane it belongs to.
    pub(crate) lane: u8,
    /// Where it goes.
    pub(crate) direction: Direction,
    /// When it came.
    pub(crate) arrived: Time,
    /// The generation of the counters that it is in.
    pub(crate) generation: u32,
    /// By which the clock outside knows it.
    pub(crate) number: u64,
    /// Whether it is a copy the path made.
    pub(crate) is_copy: bool,
    /// Whether the path damaged it.
    pub(crate) is_damaged: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: Time,
    order: u64,
    held: Held,
}

impl Hold {
    /// Room for `capacity` packets of at most `packet_bytes` each.
    pub(crate) fn new(capacity: u32, packet_bytes: usize) -> Self {
        // Whole cache lines, so that neighbours do not share one.
        let slot_bytes = packet_bytes.next_multiple_of(64);
        Self {
            slot_bytes,
            // Zeroed pages cost no memory until a packet first lies in them.
            bytes: vec![0; slot_bytes * capacity as usize],
            // The one freed last is used next: it is still in the cache.
            free: (0..capacity).rev().map(Slot).collect(),
            due: BinaryHeap::with_capacity(capacity as usize),
            entered: 0,
        }
    }

    /// Takes a buffer, if one is free.
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.free.pop()
    }

    /// Gives a buffer back.
    pub(crate) fn give_back(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// All of a buffer.
    pub(crate) fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        let start = slot.0 as usize * self.slot_bytes;
        &mut self.bytes[start..start + self.slot_bytes]
    }

    /// Takes another buffer and copies the first `length` bytes of `slot`
    /// there, if one is free.
    pub(crate) fn copy(&mut self, slot: &Slot, length: usize) -> Option<Slot> {
        let copy = self.take()?;
        let from = slot.0 as usize * self.slot_bytes;
        let to = copy.0 as usize * self.slot_bytes;
        self.bytes.copy_within(from..from + length, to);
        Some(copy)
    }

    /// Holds a packet until it is due `at`.
    pub(crate) fn hold(&mut self, at: Time, held: Held) {
        let order = self.entered;
        self.entered += 1;
        self.due.push(Reverse(Due { at, order, held }));
    }

    /// Takes the packet that is due first, with when, if it is due by `now`.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Time, Held)> {
        if self.due.peek()?.0.at > now {
            return None;
        }
        self.due.pop().map(|Reverse(due)| (due.at, due.held))
    }

    /// The packet's bytes.
    pub(crate) fn bytes(&self, held: &Held) -> &[u8] {
        let start = held.slot.0 as usize * self.slot_bytes;
        &self.bytes[start..start + held.length]
    }

    /// When the next packet is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse(due)| due.at)
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn held(slot: Slot, length: usize) -> Held {
        Held {
            slot,
            length,
            lane: 0,
            direction: Direction::Up,
            arrived: Time::ZERO,
            generation: 0,
            number: 0,
            is_copy: false,
            is_damaged: false,
        }
    }

    #[test]
    fn a_copy_is_a_buffer_of_its_own() {
        let mut hold = Hold::new(2, 100);
        let slot = hold.take().unwrap();
        hold.buffer(&slot)[..3].copy_from_slice(b"abc");
        let copy = hold.copy(&slot, 3).unwrap();
        hold.buffer(&slot)[0] = b'x';
        assert_eq!(&hold.buffer(&copy)[..3], b"abc");
        assert_eq!(hold.take(), None);
        assert_eq!(hold.copy(&slot, 3), None);
    }

    proptest! {
        #[test]
        fn packets_leave_when_due_in_the_order_they_came_and_no_buffer_is_lost(
            instants in proptest::collection::vec(0_u64..50, 1..64),
        ) {
            let mut hold = Hold::new(64, 8);
            for (nth, &at) in instants.iter().enumerate() {
                let slot = hold.take().unwrap();
                hold.buffer(&slot)[0] = nth as u8;
                hold.hold(Time::from_nanos(at), held(slot, 1));
            }
            let mut expected: Vec<_> = instants.iter().copied().zip(0_u8..).collect();
            expected.sort_by_key(|&(at, _)| at);
            let mut left = Vec::new();
            for now in 0..50 {
                let now = Time::from_nanos(now);
                while let Some((at, packet)) = hold.take_due(now) {
                    prop_assert_eq!(at, now);
                    left.push((at.as_nanos(), hold.bytes(&packet)[0]));
                    hold.give_back(packet.slot);
                }
                prop_assert!(hold.next_due().is_none_or(|due| due > now));
            }
            prop_assert_eq!(left, expected);
            prop_assert_eq!(hold.free.len(), 64);
        }
    }
}
