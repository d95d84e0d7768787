//! How long messages lay complete, waiting for earlier ones.
//!
//! Transports that deliver in order give a message out when its turn has come
//! and do not report how long it was there. But each message takes up a stretch
//! of a numbered series, of bytes or of packets, and the wire shows when each
//! piece of the series first arrived; so a message was complete when the last
//! of its pieces came.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use lagometer_units::Time;

/// Most pieces that are remembered. Beyond it nothing is learnt until some
/// are delivered, and a wait may be reported too short.
const MOST_PIECES: usize = 65_536;

/// First arrivals of the pieces of a series that are not delivered yet.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Stretches that do not overlap, by their start: their end and when they
    /// arrived.
    pieces: BTreeMap<u64, (u64, Time)>,
    delivered: u64,
}

impl Arrivals {
    /// The stretch `piece` has arrived. What of it is delivered already, or
    /// had arrived before, changes nothing.
    pub(crate) fn received(&mut self, piece: Range<u64>, now: Time) {
        let mut at = piece.start.max(self.delivered);
        while at < piece.end && self.pieces.len() < MOST_PIECES {
            let known_until = self
                .pieces
                .range(..=at)
                .next_back()
                .map(|(_, &(end, _))| end)
                .filter(|&end| end > at);
            if let Some(end) = known_until {
                at = end;
                continue;
            }
            let next = self.pieces.range(at..).next().map(|(&start, _)| start);
            let end = next.map_or(piece.end, |start| start.min(piece.end));
            self.pieces.insert(at, (end, now));
            at = end;
        }
    }

    /// The message that takes up the next `length` of the series is given
    /// out. Returns how long it had been complete.
    pub(crate) fn delivered(&mut self, length: u64, now: Time) -> Duration {
        self.delivered += length;
        let following = self.pieces.split_off(&self.delivered);
        let own = std::mem::replace(&mut self.pieces, following);
        let mut complete = Time::ZERO;
        for &(end, arrived) in own.values() {
            complete = complete.max(arrived);
            if end > self.delivered {
                self.pieces.insert(self.delivered, (end, arrived));
            }
        }
        if own.is_empty() {
            return Duration::ZERO;
        }
        now.since(complete)
    }

    /// How much of the series is delivered.
    pub(crate) const fn delivered_until(&self) -> u64 {
        self.delivered
    }

    /// Where in the series the number `wrapped` lies, of which only the lowest
    /// `bits` travelled: the place nearest to what is delivered, but not
    /// before the start.
    pub(crate) fn place_of(&self, wrapped: u32, bits: u32) -> u64 {
        let span = 1_u64 << bits;
        let ahead = u64::from(wrapped).wrapping_sub(self.delivered) & (span - 1);
        let place = self.delivered + ahead;
        if ahead >= span / 2 && place >= span {
            place - span
        } else {
            place
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn messages_behind_a_hole_have_waited_and_the_one_that_fills_it_has_not() {
        let mut arrivals = Arrivals::default();
        arrivals.received(1..2, ms(50));
        arrivals.received(2..3, ms(100));
        arrivals.received(0..1, ms(250));
        let waited = [(); 3].map(|()| arrivals.delivered(1, ms(250)).as_millis());
        assert_eq!(waited, [0, 200, 150]);
    }

    #[test]
    fn a_message_of_several_pieces_is_complete_with_the_last() {
        let mut arrivals = Arrivals::default();
        arrivals.received(100..1500, ms(10));
        arrivals.received(2900..3000, ms(20));
        arrivals.received(1500..2900, ms(30));
        arrivals.received(0..100, ms(70));
        assert_eq!(arrivals.delivered(100, ms(70)).as_millis(), 0);
        assert_eq!(arrivals.delivered(2900, ms(70)).as_millis(), 40);
    }

    #[test]
    fn what_was_known_keeps_its_time_and_a_piece_may_span_messages() {
        let mut arrivals = Arrivals::default();
        arrivals.received(10..20, ms(10));
        arrivals.received(0..30, ms(40));
        assert_eq!(arrivals.delivered(5, ms(40)).as_millis(), 0);
        assert_eq!(arrivals.delivered(5, ms(40)).as_millis(), 0);
        assert_eq!(arrivals.delivered(10, ms(40)).as_millis(), 30);
        assert_eq!(arrivals.delivered(10, ms(40)).as_millis(), 0);
    }

    #[test]
    fn places_are_found_across_the_wrap() {
        let mut arrivals = Arrivals::default();
        assert_eq!(
            arrivals.place_of(0xffff, 16),
            0xffff,
            "nothing is before the start"
        );
        arrivals.received(0..70_000, ms(1));
        arrivals.delivered(65_530, ms(1));
        assert_eq!(arrivals.place_of(65_520, 16), 65_520);
        assert_eq!(arrivals.place_of(3, 16), 65_539);
        assert_eq!(arrivals.place_of(3, 32), 3);
    }

    proptest! {
        #[test]
        fn agrees_with_a_table_of_every_unit(
            pieces in prop::collection::vec((0_u64..200, 1_u64..60), 0..40),
            lengths in prop::collection::vec(1_u64..40, 1..12),
        ) {
            let mut arrivals = Arrivals::default();
            let mut table = [None; 300];
            for (index, &(start, length)) in pieces.iter().enumerate() {
                let now = ms(index as u64 + 1);
                arrivals.received(start..start + length, now);
                for unit in &mut table[start as usize..(start + length) as usize] {
                    unit.get_or_insert(now);
                }
            }
            let now = ms(1000);
            let mut from = 0;
            for length in lengths {
                let to = (from + length as usize).min(300);
                let complete = table[from.min(300)..to].iter().flatten().max();
                let expected = complete.map_or(Duration::ZERO, |&at| now.since(at));
                prop_assert_eq!(arrivals.delivered(length, now), expected);
                from += length as usize;
            }
        }
    }
}
