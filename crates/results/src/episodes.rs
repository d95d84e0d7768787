//! Lag episodes: the stretches of play in which messages came late or not at
//! all, and how soon after the impairments ended they ended.

use std::time::Duration;

use lagometer_units::Time;

use crate::document::Episode;
use crate::record::{MessageRecord, millis};

/// The least delay that counts as lag, however quick the lane is otherwise.
pub const LEAST_THRESHOLD: Duration = Duration::from_millis(100);

/// The fixed threshold that lets lanes of different medians be compared.
pub const FIXED_THRESHOLD: Duration = Duration::from_millis(500);

/// Stretches with less good time than this between them are one episode.
pub const JOINED_WITHIN: Duration = Duration::from_millis(250);

/// A stretch of impairment, in either direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbed {
    /// The first instant at which packets may have been affected.
    pub from: Time,
    /// The first instant at which they no longer are.
    pub until: Time,
}

/// The threshold of a lane whose median round trip is `median`: three times
/// that, but at least [`LEAST_THRESHOLD`].
#[must_use]
pub fn adaptive_threshold(median: Duration) -> Duration {
    median.saturating_mul(3).max(LEAST_THRESHOLD)
}

/// The lag episodes of a run whose messages are in order of their intended
/// send.
///
/// A message is *late* if its round trip exceeds `threshold` or if it is lost.
/// A *stretch* is a maximal row of late messages. Two stretches are joined if
/// the good time between them is less than [`JOINED_WITHIN`]: from the
/// intended send of the first message that was in time to the intended send
/// of the next late one. At 50 ms between messages, fewer than five good ones.
///
/// An episode lasts from its first late message's intended send until the
/// last arrival among its late messages. A lost message is over when the
/// player gets something newer, the earliest arrival of any later message; if
/// nothing newer ever came, at the last intended send of the run.
///
/// *Recovery* is the time from the end of the disturbance to the end of the
/// episode. The disturbance is, among those that touch the episode, the one
/// that ended last: an impairment that begins during an episode is not
/// held against the transport, and an episode that ends while the impairments are
/// still bad has recovered at once. A disturbance that ended before the
/// episode began touches it if it did so no more than `threshold` before: a
/// message may be held that long without being late, and still delay the ones
/// behind it.
#[must_use]
pub fn episodes(
    records: &[MessageRecord],
    threshold: Duration,
    disturbed: &[Disturbed],
) -> Vec<Episode> {
    let clearing = Clearing::of(disturbed);
    let newer = earliest_newer_arrival(records);
    stretches(records, threshold)
        .into_iter()
        .map(|(first, last)| {
            let late = (first..=last).filter(|&index| is_late(&records[index], threshold));
            let mut stretch = Stretch::beginning(records[first].intended);
            for index in late {
                stretch.add(&records[index], newer[index]);
            }
            let cleared = clearing.last_before(stretch.start - threshold, stretch.end);
            stretch.into_episode(cleared)
        })
        .collect()
}

fn is_late(record: &MessageRecord, threshold: Duration) -> bool {
    record.rtt().is_none_or(|rtt| rtt > threshold)
}

/// The first and last late message of every episode, by index.
fn stretches(records: &[MessageRecord], threshold: Duration) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut good_since: Option<Time> = None;
    for (index, record) in records.iter().enumerate() {
        if !is_late(record, threshold) {
            good_since.get_or_insert(record.intended);
            continue;
        }
        let joins = good_since.is_none_or(|good| record.intended.since(good) < JOINED_WITHIN);
        match found.last_mut() {
            Some((_, last)) if joins => *last = index,
            _ => found.push((index, index)),
        }
        good_since = None;
    }
    found
}

/// For each message, when a lost one counts as over: the earliest arrival of
/// any later message, or the last intended send of the run.
fn earliest_newer_arrival(records: &[MessageRecord]) -> Vec<Time> {
    let horizon = records.last().map_or(Time::ZERO, |last| last.intended);
    let mut newer = vec![horizon; records.len()];
    let mut earliest: Option<Time> = None;
    for (index, record) in records.iter().enumerate().rev() {
        newer[index] = earliest.unwrap_or(horizon);
        earliest = match (earliest, record.returned) {
            (Some(known), Some(returned)) => Some(known.min(returned)),
            (known, returned) => known.or(returned),
        };
    }
    newer
}

/// An episode in the making.
struct Stretch {
    start: Time,
    end: Time,
    worst: Option<Duration>,
    messages: u64,
    lost: u64,
}

impl Stretch {
    const fn beginning(start: Time) -> Self {
        Self {
            start,
            end: start,
            worst: None,
            messages: 0,
            lost: 0,
        }
    }

    fn add(&mut self, record: &MessageRecord, newer: Time) {
        self.messages += 1;
        self.lost += u64::from(record.is_lost());
        self.end = self.end.max(record.returned.unwrap_or(newer));
        self.worst = self.worst.max(record.rtt());
    }

    fn into_episode(self, cleared: Option<Time>) -> Episode {
        Episode {
            seed: None,
            start_s: self.start.as_secs_f64(),
            duration_ms: millis(self.end.since(self.start)),
            worst_ms: self.worst.map(millis),
            messages: self.messages,
            lost: self.lost,
            recovery_ms: cleared.map(|cleared| millis(self.end.since(cleared))),
        }
    }
}

/// When the impairments ended, for lookups by time.
struct Clearing {
    /// Beginnings in ascending order, each with the latest end of all
    /// disturbances that had begun by then.
    begun: Vec<(Time, Time)>,
}

impl Clearing {
    fn of(disturbed: &[Disturbed]) -> Self {
        let mut begun: Vec<_> = disturbed
            .iter()
            .map(|spell| (spell.from, spell.until))
            .collect();
        begun.sort_unstable();
        let mut latest = Time::ZERO;
        for (_, until) in &mut begun {
            latest = latest.max(*until);
            *until = latest;
        }
        Self { begun }
    }

    /// The latest end of a disturbance that touches the time from `from` to
    /// `until`; later than `until` if that one was still going on.
    fn last_before(&self, from: Time, until: Time) -> Option<Time> {
        let count = self.begun.partition_point(|&(began, _)| began <= until);
        let &(_, ended) = self.begun.get(count.checked_sub(1)?)?;
        (ended >= from).then_some(ended)
    }
}

#[cfg(test)]
mod tests;
