//! Whether two testbeds that are both exact find the same figures of a lane, over
//! all messages of all seeds together.
//!
//! Beside [`message_agreement`](crate::message_agreement), which holds one message
//! against the same one: where a single packet has another fate, all messages
//! behind it may differ, and yet both may say the same of the network.

use std::time::Duration;

use lagometer_stats::position;

use crate::message_agreement::MessageAgreement;
use crate::record::MessageRecord;

/// The limit of the share that is compared.
pub const WITHIN: Duration = Duration::from_millis(150);

/// What is held against each other, of one testbed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExactFigures {
    /// Median, 99th and 99.9th percentile of the round trip, in milliseconds;
    /// infinite where that message was lost, nothing where there is none.
    pub quantiles_ms: [Option<f64>; 3],
    /// The share of all messages whose round trip was at most [`WITHIN`], between 0
    /// and 1; 0 where there is none.
    pub within: f64,
}

/// In thousandths, the quantiles of [`ExactFigures::quantiles_ms`].
const PER_MILLE: [u32; 3] = [500, 990, 999];

impl ExactFigures {
    /// The figures of these messages.
    #[must_use]
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a MessageRecord>) -> Self {
        let (mut ended, mut never) = (Vec::new(), 0);
        for message in messages {
            match message.rtt() {
                Some(rtt) => ended.push(rtt),
                None => never += 1,
            }
        }
        ended.sort_unstable();
        let at = |rank: u64| ended[rank as usize - 1].as_secs_f64() * 1e3;
        let quantiles_ms =
            PER_MILLE.map(|per_mille| position(per_mille, ended.len() as u64, never).value(at));
        let within = ended.partition_point(|rtt| *rtt <= WITHIN);
        let all = ended.len() as u64 + never;
        Self {
            quantiles_ms,
            within: within as f64 / all.max(1) as f64,
        }
    }
}

/// How far two exact testbeds may be apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactTolerance {
    /// Medians, in milliseconds.
    pub median_ms: f64,
    /// 99th percentiles, as a share of the larger one.
    pub p99_share: f64,
    /// Shares within [`WITHIN`], as a share between 0 and 1.
    pub within: f64,
    /// The share of messages that must agree each for itself, between 0 and 1.
    pub messages: f64,
}

impl ExactTolerance {
    /// A millisecond in the middle, a twentieth at the edge, half a point of those in
    /// time. `messages`: see there.
    #[must_use]
    pub const fn with_messages(messages: f64) -> Self {
        Self {
            median_ms: 1.0,
            p99_share: 0.05,
            within: 0.005,
            messages,
        }
    }

    /// What is beyond it, in the words of a table; nothing where all is within. The
    /// 99.9th percentile is shown and not held: a minute has one message beyond it.
    #[must_use]
    pub fn beyond(
        &self,
        figures: &[ExactFigures; 2],
        found: &MessageAgreement,
    ) -> Vec<&'static str> {
        let [one, other] = figures;
        let pair = |nth: usize| [one.quantiles_ms[nth], other.quantiles_ms[nth]];
        let larger =
            |[one, other]: [Option<f64>; 2]| one.unwrap_or_default().max(other.unwrap_or_default());
        let share = self.p99_share * larger(pair(1));
        let is_beyond = [
            ("p50", !is_near(pair(0), self.median_ms)),
            ("p99", !is_near(pair(1), share)),
            ("share", (one.within - other.within).abs() > self.within),
            ("messages", found.share() < self.messages),
        ];
        let beyond = is_beyond.into_iter().filter(|(_, is_beyond)| *is_beyond);
        beyond.map(|(what, _)| what).collect()
    }
}

/// Whether two values are at most so far apart; both infinite, or both missing, are
/// not apart.
fn is_near(pair: [Option<f64>; 2], allowed: f64) -> bool {
    match pair {
        [Some(one), Some(other)] if one.is_finite() && other.is_finite() => {
            (one - other).abs() <= allowed
        }
        [one, other] => one == other,
    }
}

#[cfg(test)]
mod tests {
    use lagometer_units::Time;

    use super::*;

    fn messages(round_trips_ms: &[Option<u64>]) -> Vec<MessageRecord> {
        let record = |round_trip: &Option<u64>| MessageRecord {
            returned: round_trip.map(Time::from_millis),
            ..MessageRecord::due(Time::ZERO)
        };
        round_trips_ms.iter().map(record).collect()
    }

    fn found(messages: u64, agreeing: u64) -> MessageAgreement {
        MessageAgreement {
            messages,
            agreeing,
            first: None,
        }
    }

    #[test]
    fn lost_messages_are_infinitely_late_and_count_in_the_share() {
        let mut round_trips = vec![Some(50); 98];
        round_trips.extend([Some(151), None]);
        let figures = ExactFigures::of(&messages(&round_trips));
        let ms = [Some(50.0), Some(151.0), Some(f64::INFINITY)];
        assert_eq!(figures.quantiles_ms, ms);
        assert!((figures.within - 0.98).abs() < 1e-12);
        assert_eq!(ExactFigures::of(&[]), ExactFigures::default());
    }

    #[test]
    fn each_figure_is_held_to_its_own_tolerance() {
        let tolerance = ExactTolerance::with_messages(0.95);
        let base = ExactFigures {
            quantiles_ms: [Some(50.0), Some(200.0), Some(f64::INFINITY)],
            within: 0.9,
        };
        let beyond = |changed: ExactFigures, agreeing| {
            tolerance.beyond(&[base, changed], &found(100, agreeing))
        };
        let near = ExactFigures {
            quantiles_ms: [Some(51.0), Some(210.0), None],
            within: 0.9045,
        };
        assert!(beyond(near, 95).is_empty());
        let far = ExactFigures {
            quantiles_ms: [Some(51.1), Some(211.0), Some(1.0)],
            within: 0.906,
        };
        assert_eq!(beyond(far, 94), ["p50", "p99", "share", "messages"]);
        let lost = ExactFigures {
            quantiles_ms: [Some(50.0), Some(f64::INFINITY), None],
            ..base
        };
        assert_eq!(beyond(lost, 95), ["p99"]);
        assert!(tolerance.beyond(&[lost, lost], &found(1, 1)).is_empty());
    }
}
