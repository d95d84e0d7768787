//! What became of messages that go one way each, and of requests that are answered, in
//! each direction by itself.

use std::time::Duration;

use lagometer_stats::nanos;
use lagometer_units::Time;

use crate::document::{CensoredQuantiles, DelayOf, Flow, Population, Traffic};
use crate::episodes::Disturbed;
use crate::lag::{SeedLag, lag_of, pooled};
use crate::record::MessageRecord;
use crate::within::share;

/// A message and what it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMessage {
    /// What became of it; `returned` is when it arrived at the other end.
    pub record: MessageRecord,
    /// Bytes of payload.
    pub bytes: u32,
}

/// What became of each direction's messages under one seed. Instants count from the start
/// of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecords {
    /// How long was played.
    pub played: Duration,
    /// From how late on a message is of no use.
    pub within: Duration,
    /// What comes down are answers: their delays count from the requests' intended time.
    pub answers: bool,
    /// Every message that was meant to be sent up, and down.
    pub ways: [Vec<FlowMessage>; 2],
}

impl FlowRecords {
    /// What was meant to be sent until `end` alone.
    #[must_use]
    pub fn until(mut self, end: Time) -> Self {
        self.played = self.played.min(end.since(Time::ZERO));
        for way in &mut self.ways {
            way.retain(|message| message.record.intended <= end);
        }
        self
    }

    /// Of each message of a direction that came within the time of play when it came, and
    /// its bytes of payload.
    pub(crate) fn received(&self, way: usize) -> impl Iterator<Item = (Time, u32)> + '_ {
        let end = Time::ZERO + self.played;
        self.ways[way].iter().filter_map(move |message| {
            let returned = message.record.returned.filter(|&at| at <= end)?;
            Some((returned, message.bytes))
        })
    }

    /// The lag of the direction that lags for longer, by a threshold.
    pub(crate) fn lag(&self, threshold: Duration, disturbed: &[Disturbed]) -> SeedLag {
        let of_answers = usize::from(self.answers);
        let ways = self.ways[of_answers..].iter();
        let lags = ways.map(|way| lag_of_way(way, self.played, threshold, disturbed));
        lags.max_by_key(lasted).unwrap_or_default()
    }
}

fn lag_of_way(
    way: &[FlowMessage],
    played: Duration,
    threshold: Duration,
    disturbed: &[Disturbed],
) -> SeedLag {
    let mut records: Vec<MessageRecord> = way.iter().map(|message| message.record).collect();
    records.sort_by_key(|record| record.intended);
    lag_of(&records, played, threshold, disturbed)
}

fn lasted(lag: &SeedLag) -> Duration {
    let each = lag.lagging.iter();
    each.map(|&(from, until)| until.since(from)).sum()
}

/// The figures of both directions, all seeds together; none where messages were of another
/// kind.
#[must_use]
pub fn traffic(runs: &[&FlowRecords]) -> Option<Traffic> {
    let first = runs.first()?;
    Some(Traffic {
        delay: if first.answers {
            DelayOf::Answer
        } else {
            DelayOf::OneWay
        },
        within_ms: first.within.as_secs_f64() * 1e3,
        up: flow(runs, 0),
        down: flow(runs, 1),
    })
}

/// The figures of a direction; none where nothing was meant to be sent.
fn flow(runs: &[&FlowRecords], way: usize) -> Option<Flow> {
    let within = runs.first()?.within;
    let messages = || runs.iter().flat_map(|run| &run.ways[way]);
    let mut delays: Vec<u64> = messages()
        .filter_map(|message| message.record.rtt())
        .map(nanos)
        .collect();
    delays.sort_unstable();
    let (intended, delivered) = (messages().count() as u64, delays.len() as u64);
    if intended == 0 {
        return None;
    }
    let seconds: f64 = runs.iter().map(|run| run.played.as_secs_f64()).sum();
    let on_time = delays.partition_point(|&delay| delay <= nanos(within)) as u64;
    let lags: Vec<SeedLag> = runs
        .iter()
        .map(|run| lag_of_way(&run.ways[way], run.played, within, &[]))
        .collect();
    let lag = pooled(&lags, within);
    Some(Flow {
        intended,
        delivered,
        on_time: share(on_time, intended),
        delay_ms: CensoredQuantiles::of_sorted_nanos(
            Population::Intended,
            &delays,
            intended - delivered,
        ),
        freezes_per_min: lag.freezes_per_min,
        frozen_s_per_min: lag.s_per_min,
        longest_freeze: lag.longest_freeze,
        kbit_per_s: if seconds > 0.0 {
            received_bytes(runs, way) as f64 * 8.0 / 1e3 / seconds
        } else {
            0.0
        },
    })
}

/// Bytes of payload that came in a direction within the time of play.
fn received_bytes(runs: &[&FlowRecords], way: usize) -> u64 {
    let received = runs.iter().flat_map(|run| run.received(way));
    received.map(|(_, bytes)| u64::from(bytes)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(intended_ms: u64, delay_ms: Option<u64>) -> FlowMessage {
        let intended = Time::from_millis(intended_ms);
        FlowMessage {
            record: MessageRecord {
                returned: delay_ms.map(|delay| intended + Duration::from_millis(delay)),
                ..MessageRecord::due(intended)
            },
            bytes: 1_000,
        }
    }

    /// A second of a message every 100 ms down; the third comes late, the fourth never.
    fn run() -> FlowRecords {
        let down = (0..10).map(|number| {
            let delay = match number {
                2 => Some(250),
                3 => None,
                _ => Some(20),
            };
            message(number * 100, delay)
        });
        FlowRecords {
            played: Duration::from_secs(1),
            within: Duration::from_millis(50),
            answers: false,
            ways: [Vec::new(), down.collect()],
        }
    }

    #[test]
    fn a_direction_is_counted_by_itself_and_an_empty_one_is_none() {
        let figures = traffic(&[&run()]).unwrap();
        assert_eq!(figures.delay, DelayOf::OneWay);
        assert_eq!(figures.up, None);
        let down = figures.down.unwrap();
        assert_eq!((down.intended, down.delivered), (10, 9));
        assert!((down.on_time - 0.8).abs() < 1e-12);
        // Nothing newer than the message of 100 ms comes until that of 400 ms is there at
        // 420 ms: from 250 ms on it is awaited for longer than 50 ms.
        assert!((down.frozen_s_per_min - 0.17 * 60.0).abs() < 1e-9);
        assert!((down.freezes_per_min - 60.0).abs() < 1e-9);
        assert!((down.kbit_per_s - 72.0).abs() < 1e-9);
        assert_eq!(down.delay_ms.p50, Some(20.0));
        assert_eq!(down.delay_ms.max, None);
    }

    #[test]
    fn what_comes_after_the_play_is_no_throughput() {
        let mut late = run();
        late.ways[1] = vec![message(990, Some(20)), message(100, Some(20))];
        let down = traffic(&[&late]).unwrap().down.unwrap();
        assert_eq!(down.delivered, 2);
        assert!((down.kbit_per_s - 8.0).abs() < 1e-9);
    }

    #[test]
    fn the_direction_that_lags_longer_says_the_lag() {
        let threshold = Duration::from_millis(50);
        let mut both = run();
        both.ways[0] = (0..10)
            .map(|number| message(number * 100, Some(20)))
            .collect();
        assert_eq!(
            lasted(&both.lag(threshold, &[])),
            Duration::from_millis(170)
        );
        both.ways.swap(0, 1);
        assert_eq!(
            lasted(&both.lag(threshold, &[])),
            Duration::from_millis(170)
        );
        // Requests that come late do not matter where answers count.
        both.answers = true;
        assert_eq!(lasted(&both.lag(threshold, &[])), Duration::ZERO);
    }

    #[test]
    fn seeds_are_pooled_and_a_cut_leaves_what_was_before_it() {
        let (one, other) = (run(), run());
        let down = traffic(&[&one, &other]).unwrap().down.unwrap();
        assert_eq!(down.intended, 20);
        assert!((down.kbit_per_s - 72.0).abs() < 1e-9);
        let cut = one.until(Time::from_millis(150));
        assert_eq!(cut.played, Duration::from_millis(150));
        assert_eq!(cut.ways[1].len(), 2);
    }
}
