//! Events: sent until they have arrived, delivered in order, whatever carries them.
//!
//! Where the transport promises both there is nothing to do. Where it sends a message once
//! the game does it: every message of the peer's says how many of its events have come,
//! and one that is not among them is sent again after a timeout that follows the round
//! trip (RFC 6298, with a least of 20 ms and without doubling, as events are few).

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use lagometer_transport::{Delivery, Messenger, Refused};
use lagometer_units::Time;

use super::message::{Codec, Header, Kind};

/// Events that a peer may send before those that are missing have come: bounds memory.
const MOST_EARLY: usize = 4096;

/// Sends one side's events.
#[derive(Debug)]
pub(super) struct EventSender {
    /// When they are meant to leave, from the start.
    due: Vec<Duration>,
    bytes: usize,
    /// The game sends again itself.
    sends_again: bool,
    /// How many have fallen due.
    fallen_due: u32,
    /// How many have been sent once.
    sent: u32,
    /// Those not known to have arrived, with when they were last sent.
    unacknowledged: VecDeque<(u32, Time)>,
    round_trip: RoundTrip,
}

impl EventSender {
    /// Of events of so many bytes each, meant to leave at these offsets.
    pub(super) fn new(due: &[Duration], bytes: usize, sends_again: bool) -> Self {
        Self {
            due: due.to_vec(),
            bytes,
            sends_again,
            fallen_due: 0,
            sent: 0,
            unacknowledged: VecDeque::new(),
            round_trip: RoundTrip::default(),
        }
    }

    /// When there is something to do next: an event is due, or has to be sent again.
    pub(super) fn next(&self, start: Time) -> Option<Time> {
        let due = self.due.get(self.fallen_due as usize);
        let timeout = self.round_trip.timeout();
        let again = self.unacknowledged.iter().map(|&(_, sent)| sent + timeout);
        due.map(|&offset| start + offset)
            .into_iter()
            .chain(again.min())
            .min()
    }

    /// The peer has so many.
    pub(super) fn acknowledged(&mut self, count: u32) {
        while self
            .unacknowledged
            .front()
            .is_some_and(|&(number, _)| number < count)
        {
            self.unacknowledged.pop_front();
        }
    }

    /// A message was answered after so long.
    pub(super) fn answered_after(&mut self, delay: Duration) {
        self.round_trip.sample(delay);
    }

    /// Sends what is to be sent at `now`; returns the bytes that were taken.
    pub(super) fn send(
        &mut self,
        now: Time,
        start: Time,
        (codec, header): (Codec, Header),
        side: &mut dyn Messenger,
        buffer: &mut Vec<u8>,
    ) -> u64 {
        while let Some(&offset) = self.due.get(self.fallen_due as usize)
            && start + offset <= now
        {
            self.fallen_due += 1;
        }
        let mut taken = 0;
        let mut offer = |number| {
            let header = Header {
                kind: Kind::Event,
                number,
                ..header
            };
            codec.write(&header, self.bytes, buffer);
            let is_taken = side
                .send_as(now, Delivery::Reliable, buffer)
                .map(|()| buffer.len());
            taken += is_taken.as_ref().map_or(0, |&bytes| bytes as u64);
            is_taken
        };
        let timeout = self.round_trip.timeout();
        for (number, sent) in &mut self.unacknowledged {
            if *sent + timeout <= now {
                // What is refused waits a timeout like what is lost.
                let _ = offer(*number);
                *sent = now;
            }
        }
        while self.sent < self.fallen_due {
            match offer(self.sent) {
                Err(Refused::BufferFull | Refused::NotOpen) => break,
                // It will never be taken: the next has its turn.
                Ok(_) | Err(Refused::TooLarge { .. }) => {}
            }
            if self.sends_again {
                self.unacknowledged.push_back((self.sent, now));
            }
            self.sent += 1;
        }
        taken
    }

    /// Whether what is sent comes again until it is acknowledged.
    pub(super) const fn sends_again(&self) -> bool {
        self.sends_again
    }
}

/// Puts the peer's events in order.
#[derive(Debug, Default)]
pub(super) struct EventReceiver {
    /// How many have been delivered.
    delivered: u32,
    early: BTreeSet<u32>,
}

impl EventReceiver {
    /// Takes in event `number`; returns those that can be delivered now, or none of one
    /// that was there before.
    pub(super) fn receive(&mut self, number: u32) -> Option<std::ops::Range<u32>> {
        let is_new =
            number >= self.delivered && self.early.len() < MOST_EARLY && self.early.insert(number);
        let first = self.delivered;
        while self.early.remove(&self.delivered) {
            self.delivered += 1;
        }
        is_new.then_some(first..self.delivered)
    }

    /// How many have come, in order.
    pub(super) const fn delivered(&self) -> u32 {
        self.delivered
    }
}

/// The round trip of a game's own messages.
#[derive(Debug, Default)]
struct RoundTrip {
    /// Smoothed, and its mean deviation.
    known: Option<(Duration, Duration)>,
}

impl RoundTrip {
    fn sample(&mut self, delay: Duration) {
        self.known = Some(match self.known {
            None => (delay, delay / 2),
            Some((smoothed, deviation)) => (
                (smoothed * 7 + delay) / 8,
                (deviation * 3 + smoothed.abs_diff(delay)) / 4,
            ),
        });
    }

    fn timeout(&self) -> Duration {
        let known = self
            .known
            .map(|(smoothed, deviation)| smoothed + deviation * 4);
        known
            .unwrap_or(Duration::from_millis(200))
            .max(Duration::from_millis(20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_delivered_in_order_and_once() {
        let mut receiver = EventReceiver::default();
        assert_eq!(receiver.receive(1), Some(0..0));
        assert_eq!(receiver.receive(1), None);
        assert_eq!(receiver.receive(0), Some(0..2));
        assert_eq!(receiver.receive(0), None);
        assert_eq!(receiver.receive(2), Some(2..3));
        assert_eq!(receiver.delivered(), 3);
    }

    #[test]
    fn the_timeout_follows_the_round_trip() {
        let mut round_trip = RoundTrip::default();
        let before = round_trip.timeout();
        for _ in 0..50 {
            round_trip.sample(Duration::from_millis(40));
        }
        assert!(round_trip.timeout() >= Duration::from_millis(40));
        assert!(round_trip.timeout() < Duration::from_millis(45));
        for _ in 0..50 {
            round_trip.sample(Duration::from_millis(300));
        }
        assert!(round_trip.timeout() > before);
    }
}
