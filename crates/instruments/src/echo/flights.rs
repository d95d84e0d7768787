//! The messages that are on their way: which they are, since when, and which
//! have to be given up. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_units::Time;

/// Messages on their way, by number. Numbers are given in order.
#[derive(Clone, Debug)]
pub struct Flights {
    /// The lowest number that is not settled.
    base: u64,
    /// From `base` on: when each was sent, `None` once it is settled.
    sent: VecDeque<Option<Time>>,
    flying: usize,
    /// The most that may lie between the oldest and the newest.
    range: usize,
}

/// What an arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The echo of a message on its way, sent at this instant.
    Awaited(Time),
    /// Of one that was echoed or given up before.
    Late,
    /// Of one that was never sent.
    Unsent,
}

impl Flights {
    /// Nothing on its way. Numbers are unambiguous within `numbers`.
    #[must_use]
    pub fn new(numbers: u64) -> Self {
        let range = usize::try_from(numbers / 2 - 1).unwrap_or(usize::MAX);
        Self {
            base: 0,
            sent: VecDeque::new(),
            flying: 0,
            range: range.min(1 << 20),
        }
    }

    /// The number of the oldest message that is not settled, or of the next.
    #[must_use]
    pub const fn oldest(&self) -> u64 {
        self.base
    }

    /// How many are on their way.
    #[must_use]
    pub const fn flying(&self) -> usize {
        self.flying
    }

    /// The number of the next message; `None` while it could be taken for
    /// another that is still on its way.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        (self.sent.len() < self.range).then(|| self.base + self.sent.len() as u64)
    }

    /// The next message has left.
    pub fn left(&mut self, now: Time) {
        self.sent.push_back(Some(now));
        self.flying += 1;
    }

    /// The message with `number` has come back.
    #[inline]
    pub fn arrived(&mut self, number: u64) -> Arrival {
        let Some(index) = number.checked_sub(self.base) else {
            return Arrival::Late;
        };
        let Some(slot) = usize::try_from(index)
            .ok()
            .and_then(|index| self.sent.get_mut(index))
        else {
            return Arrival::Unsent;
        };
        let Some(sent) = slot.take() else {
            return Arrival::Late;
        };
        self.flying -= 1;
        self.settle();
        Arrival::Awaited(sent)
    }

    /// Gives up what was sent at least `timeout` before `now`; how many.
    #[inline]
    pub fn give_up(&mut self, now: Time, timeout: Duration) -> u64 {
        let mut given_up = 0;
        while let Some(Some(sent)) = self.sent.front() {
            if now < *sent + timeout {
                break;
            }
            self.sent.pop_front();
            self.base += 1;
            self.flying -= 1;
            given_up += 1;
            self.settle();
        }
        given_up
    }

    fn settle(&mut self) {
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn echoes_are_distinguished_from_strays() {
        let mut flights = Flights::new(1 << 32);
        for millis in 0..3 {
            flights.left(Time::from_millis(millis));
        }
        assert_eq!(flights.arrived(1), Arrival::Awaited(Time::from_millis(1)));
        assert_eq!(flights.arrived(1), Arrival::Late);
        assert_eq!(flights.arrived(3), Arrival::Unsent);
        assert_eq!(flights.arrived(0), Arrival::Awaited(Time::ZERO));
        assert_eq!((flights.oldest(), flights.flying()), (2, 1));
        assert_eq!(flights.give_up(Time::from_millis(1001), TIMEOUT), 0);
        assert_eq!(flights.give_up(Time::from_millis(1002), TIMEOUT), 1);
        assert_eq!(flights.arrived(2), Arrival::Late);
        assert_eq!(flights.next(), Some(3));
    }

    #[test]
    fn no_two_on_their_way_look_alike() {
        let mut flights = Flights::new(256);
        while flights.next().is_some() {
            flights.left(Time::ZERO);
        }
        assert_eq!(flights.flying(), 127);
        assert_eq!(flights.arrived(5), Arrival::Awaited(Time::ZERO));
        assert_eq!(flights.next(), None, "the oldest is still on its way");
        assert!(matches!(flights.arrived(0), Arrival::Awaited(_)));
        assert_eq!(flights.next(), Some(127));
    }

    proptest! {
        #[test]
        fn every_message_is_settled_once(
            arrivals in prop::collection::vec((0_u64..40, any::<bool>()), 0..200),
        ) {
            let mut flights = Flights::new(1 << 32);
            let (mut sent, mut settled) = (0_u64, 0_u64);
            for (step, (number, send)) in arrivals.into_iter().enumerate() {
                let now = Time::from_millis(step as u64 * 100);
                if send {
                    prop_assert_eq!(flights.next(), Some(sent));
                    flights.left(now);
                    sent += 1;
                } else if matches!(flights.arrived(number), Arrival::Awaited(_)) {
                    settled += 1;
                }
                settled += flights.give_up(now, TIMEOUT);
                prop_assert_eq!(sent - settled, flights.flying() as u64);
            }
        }
    }
}
