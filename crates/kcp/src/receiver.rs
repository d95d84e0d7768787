//! The receiving side: segments put back in order and messages taken out.
//!
//! One ring holds both what is in order and waits for the application and
//! what waits for an earlier segment: to move from the one state to the other
//! a segment does not move at all.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_units::Time;

use crate::clock::ahead;
use crate::pool::Pool;

/// A segment received, or the place of one that is missing.
#[derive(Debug, Default)]
struct Slot {
    payload: Vec<u8>,
    fragment: u8,
    present: bool,
    /// When it came.
    arrived: Time,
    /// When it and all before it had come.
    in_order: Time,
}

/// When a message came, and when nothing before it was missing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the last of its segments came.
    pub arrived: Time,
    /// When, besides, all segments before it had come.
    pub in_order: Time,
}

impl Arrival {
    /// How long the message was complete and kept back only because an
    /// earlier segment was missing.
    #[must_use]
    pub fn blocked(&self) -> Duration {
        self.in_order.since(self.arrived)
    }
}

/// The segments of one direction on the receiver's side.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// From the first segment that the application has not taken.
    ring: VecDeque<Slot>,
    /// How many at the front are in order and handed to the application.
    ready: usize,
    /// How many at the front are in order; more than `ready` only while the
    /// window is full.
    contiguous: usize,
    /// The number of the segment after those ready.
    next: u32,
    window: u32,
    /// Bytes of the segments in the ring, and of the buffers that hold them.
    waiting_bytes: usize,
    buffer_bytes: usize,
}

impl Receiver {
    pub(crate) const fn new(first: u32, window: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            ready: 0,
            contiguous: 0,
            next: first,
            window,
            waiting_bytes: 0,
            buffer_bytes: 0,
        }
    }

    /// Whether a segment so numbered is to be acknowledged: it lies in the
    /// window, or before it and has been here already.
    #[inline]
    pub(crate) const fn acknowledges(&self, sequence: u32) -> bool {
        ahead(sequence, self.next.wrapping_add(self.window)) < 0
    }

    /// Takes a segment in, unless it is here or has been.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        sequence: u32,
        fragment: u8,
        payload: &[u8],
        pool: &mut Pool,
    ) {
        let offset = ahead(sequence, self.next);
        if offset < 0 || !self.acknowledges(sequence) {
            return;
        }
        let index = self.ready + offset as usize;
        if self.ring.get(index).is_none_or(|slot| !slot.present) {
            let mut buffer = pool.take(payload.len());
            buffer.extend_from_slice(payload);
            self.waiting_bytes += buffer.len();
            self.buffer_bytes += buffer.capacity();
            let slot = Slot {
                payload: buffer,
                fragment,
                present: true,
                arrived: now,
                in_order: now,
            };
            if index < self.ring.len() {
                self.ring[index] = slot;
            } else {
                if index > self.ring.len() {
                    self.ring.resize_with(index, Slot::default);
                }
                self.ring.push_back(slot);
            }
            if index == self.contiguous {
                self.extend_order(now);
            }
        }
        self.make_ready();
    }

    /// Takes the next message out, in place of what `message` held, whose
    /// memory is kept. Returns whether there was one.
    pub(crate) fn take(&mut self, message: &mut Vec<u8>, pool: &mut Pool) -> Option<Arrival> {
        let fragments = self.next_message()?;
        let first = self.ring.pop_front()?;
        let mut arrival = Arrival {
            arrived: first.arrived,
            in_order: first.in_order,
        };
        self.waiting_bytes -= first.payload.len();
        self.buffer_bytes -= first.payload.capacity();
        pool.give(std::mem::replace(message, first.payload));
        if fragments > 1 {
            for slot in self.ring.drain(..fragments - 1) {
                self.waiting_bytes -= slot.payload.len();
                self.buffer_bytes -= slot.payload.capacity();
                arrival.arrived = arrival.arrived.max(slot.arrived);
                arrival.in_order = arrival.in_order.max(slot.in_order);
                message.extend_from_slice(&slot.payload);
                pool.give(slot.payload);
            }
        }
        self.ready -= fragments;
        self.contiguous -= fragments;
        self.make_ready();
        Some(arrival)
    }

    /// Bytes of the segments that have come and that the application has not
    /// taken, those included that wait for an earlier one.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Bytes of memory that they take.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer_bytes + self.ring.capacity() * size_of::<Slot>()
    }

    pub(crate) const fn set_window(&mut self, window: u32) {
        self.window = window;
    }

    /// The bytes of the next message, if it is whole.
    pub(crate) fn peek_bytes(&self) -> Option<usize> {
        let fragments = self.next_message()?;
        let lengths = self.ring.iter().take(fragments);
        Some(lengths.map(|slot| slot.payload.len()).sum())
    }

    /// Whether as many segments wait for the application as the window holds.
    pub(crate) const fn is_full(&self) -> bool {
        self.ready >= self.window as usize
    }

    /// Room in the window, in segments.
    pub(crate) fn room(&self) -> u32 {
        self.window.saturating_sub(self.ready as u32)
    }

    /// The first segment that has not come in order.
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    /// How many segments the next message has, if they are all here. A peer
    /// that counts wrongly gets what the reference makes of it: all up to the
    /// next last piece, or to the end of what is here.
    fn next_message(&self) -> Option<usize> {
        let first = self.ring.front().filter(|_| self.ready > 0)?;
        if first.fragment == 0 {
            return Some(1);
        }
        if self.ready < usize::from(first.fragment) + 1 {
            return None;
        }
        let mut here = self.ring.iter().take(self.ready);
        let last = here.position(|slot| slot.fragment == 0);
        Some(last.map_or(self.ready, |index| index + 1))
    }

    /// The place after those contiguous has been filled at `now`.
    fn extend_order(&mut self, now: Time) {
        while let Some(slot) = self.ring.get_mut(self.contiguous) {
            if !slot.present {
                break;
            }
            slot.in_order = now;
            self.contiguous += 1;
        }
    }

    /// Hands segments in order to the application, as far as the window has
    /// room.
    fn make_ready(&mut self) {
        let ready = self.contiguous.min(self.window as usize).max(self.ready);
        self.next = self.next.wrapping_add((ready - self.ready) as u32);
        self.ready = ready;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(receiver: &mut Receiver) -> Option<(Vec<u8>, u64)> {
        let mut message = Vec::new();
        let arrival = receiver.take(&mut message, &mut Pool::new(8))?;
        Some((message, arrival.blocked().as_millis() as u64))
    }

    #[test]
    fn a_message_that_waits_for_an_earlier_one_is_blocked_from_its_last_piece_on() {
        let mut receiver = Receiver::new(0, 128);
        let pool = &mut Pool::new(8);
        let at = Time::from_millis;
        receiver.insert(at(10), 2, 0, b"cd", pool);
        receiver.insert(at(20), 1, 1, b"ab", pool);
        receiver.insert(at(25), 3, 0, b"e", pool);
        assert_eq!(take(&mut receiver), None);
        receiver.insert(at(60), 0, 0, b"0", pool);
        assert_eq!(take(&mut receiver), Some((b"0".to_vec(), 0)));
        assert_eq!(take(&mut receiver), Some((b"abcd".to_vec(), 40)));
        assert_eq!(take(&mut receiver), Some((b"e".to_vec(), 35)));
        assert_eq!(take(&mut receiver), None);
    }

    #[test]
    fn segments_that_wait_are_counted_until_they_are_taken() {
        let mut receiver = Receiver::new(0, 128);
        let pool = &mut Pool::new(8);
        for (sequence, fragment) in [(2, 0), (1, 1), (2, 0), (500, 0)] {
            receiver.insert(Time::ZERO, sequence, fragment, b"abc", pool);
        }
        assert_eq!(receiver.waiting_bytes(), 6);
        assert!(receiver.held_bytes() >= 6);
        receiver.insert(Time::ZERO, 0, 0, b"0", pool);
        while take(&mut receiver).is_some() {}
        assert_eq!((receiver.waiting_bytes(), receiver.buffer_bytes), (0, 0));
    }

    #[test]
    fn a_full_window_holds_back_without_counting_as_blocked() {
        let mut receiver = Receiver::new(0, 2);
        let pool = &mut Pool::new(8);
        receiver.insert(Time::from_millis(1), 1, 0, b"1", pool);
        receiver.insert(Time::from_millis(2), 0, 0, b"0", pool);
        receiver.insert(Time::from_millis(3), 2, 0, b"2", pool);
        receiver.insert(Time::from_millis(3), 4, 0, b"4", pool);
        assert!(receiver.is_full());
        assert_eq!(receiver.next(), 2);
        assert_eq!(take(&mut receiver), Some((b"0".to_vec(), 0)));
        assert_eq!(receiver.next(), 3);
        assert_eq!(take(&mut receiver), Some((b"1".to_vec(), 1)));
        assert_eq!(take(&mut receiver), Some((b"2".to_vec(), 0)));
        assert_eq!(take(&mut receiver), None, "4 lay outside the window");
    }
}
