//! Whether two testbeds that are both exact report the same of every message.
//!
//! Virtual time and a kernel in virtual time have no noise: where the same message
//! took longer in one than in the other, one of them does something else, and the
//! first such message shows where it begins.

use std::time::Duration;

use lagometer_units::Time;

use crate::record::MessageRecord;

/// How the same lane's messages agree in two testbeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageAgreement {
    /// Messages that both meant to send.
    pub messages: u64,
    /// Of those, how many are lost in both, or have round trips that differ by no
    /// more than was permitted.
    pub agreeing: u64,
    /// The first that is not.
    pub first: Option<Disagreement>,
}

/// A message that two testbeds report differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Its number, from 0.
    pub number: u64,
    /// When it was meant to leave, from the start of measuring.
    pub intended: Time,
    /// Its round trip in either; none where it was lost.
    pub round_trips: [Option<Duration>; 2],
}

impl MessageAgreement {
    /// Takes in what was found of other messages; the first that does not agree
    /// stays the first.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.agreeing += other.agreeing;
        self.first = self.first.or(other.first);
    }

    /// The share of messages that agree, between 0 and 1; 1 where there are none.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.messages == 0 {
            return 1.0;
        }
        self.agreeing as f64 / self.messages as f64
    }
}

/// Holds a lane's messages in two testbeds, in the order of their numbers, against
/// each other. Round trips may differ by `tolerance`. A message that only one of
/// them came to send disagrees.
#[must_use]
pub fn message_agreement(
    one: &[MessageRecord],
    other: &[MessageRecord],
    tolerance: Duration,
) -> MessageAgreement {
    let mut found = MessageAgreement {
        messages: one.len().max(other.len()) as u64,
        agreeing: 0,
        first: None,
    };
    for number in 0..one.len().max(other.len()) {
        let pair = [one.get(number), other.get(number)];
        let round_trips = pair.map(|record| record.and_then(MessageRecord::rtt));
        let agrees = match (pair, round_trips) {
            ([Some(_), Some(_)], [Some(one), Some(other)]) => one.abs_diff(other) <= tolerance,
            ([Some(_), Some(_)], [None, None]) => true,
            _ => false,
        };
        found.agreeing += u64::from(agrees);
        if !agrees && found.first.is_none() {
            let intended = pair.into_iter().flatten().next();
            found.first = Some(Disagreement {
                number: number as u64,
                intended: intended.map_or(Time::ZERO, |record| record.intended),
                round_trips,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(round_trips_ms: &[Option<u64>]) -> Vec<MessageRecord> {
        let due = |number: usize| Time::from_millis(50 * number as u64);
        let record = |(number, round_trip): (usize, &Option<u64>)| MessageRecord {
            returned: round_trip.map(|ms| due(number) + Duration::from_millis(ms)),
            ..MessageRecord::due(due(number))
        };
        round_trips_ms.iter().enumerate().map(record).collect()
    }

    fn agreement(one: &[Option<u64>], other: &[Option<u64>]) -> MessageAgreement {
        message_agreement(&records(one), &records(other), Duration::from_millis(1))
    }

    #[test]
    fn round_trips_agree_within_the_tolerance_and_losses_with_losses() {
        let found = agreement(&[Some(50), None, Some(50)], &[Some(51), None, Some(50)]);
        assert_eq!((found.messages, found.agreeing), (3, 3));
        assert_eq!(found.first, None);
        assert!((found.share() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_first_message_that_differs_is_named_with_both_round_trips() {
        let found = agreement(&[Some(50), Some(50), None], &[Some(50), Some(52), Some(50)]);
        assert_eq!((found.messages, found.agreeing), (3, 1));
        let first = found.first.unwrap();
        assert_eq!((first.number, first.intended), (1, Time::from_millis(50)));
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(first.round_trips, [ms(50), ms(52)]);
    }

    #[test]
    fn a_message_that_one_never_sent_disagrees_even_where_the_other_lost_it() {
        let found = agreement(&[Some(50)], &[Some(50), None]);
        assert_eq!((found.messages, found.agreeing), (2, 1));
        assert_eq!(found.first.unwrap().number, 1);
        assert!((agreement(&[], &[]).share() - 1.0).abs() < f64::EPSILON);
    }
}
