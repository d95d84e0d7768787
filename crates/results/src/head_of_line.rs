//! How much of the lag was messages waiting for an earlier one.

use lagometer_stats::nanos;

use crate::document::{HeadOfLine, Quantiles};
use crate::record::MessageRecord;

/// Splits the delay of late messages into head-of-line waiting and the rest,
/// which is retransmission, queueing and the path itself.
///
/// `median` is the lane's median round trip in nanoseconds. For every
/// delivered message of which the transport reports how long it was blocked,
/// the delay above the median is *late delay*, and as much of it as the
/// message was blocked is waiting: what it waited within the median made
/// nothing late. `None` if the transport does not report it for any message.
pub(crate) fn head_of_line<'a>(
    records: impl Iterator<Item = &'a MessageRecord>,
    median: u64,
) -> Option<HeadOfLine> {
    let mut known = false;
    let mut waits = Vec::new();
    let (mut late_delay, mut waiting) = (0_u128, 0_u128);
    for record in records {
        let (Some(rtt), Some(blocked)) = (record.rtt().map(nanos), record.blocked.map(nanos))
        else {
            continue;
        };
        known = true;
        let late = rtt.saturating_sub(median);
        late_delay += u128::from(late);
        waiting += u128::from(late.min(blocked));
        if blocked > 0 {
            waits.push(blocked);
        }
    }
    known.then(|| HeadOfLine {
        blocked_messages: waits.len() as u64,
        share_of_late_delay: if late_delay == 0 {
            0.0
        } else {
            waiting as f64 / late_delay as f64
        },
        blocked_ms: Quantiles::of_nanos(&mut waits),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_units::Time;
    use std::time::Duration;

    fn record(rtt_ms: u64, blocked_ms: Option<u64>) -> MessageRecord {
        MessageRecord {
            returned: Some(Time::from_millis(rtt_ms)),
            blocked: blocked_ms.map(Duration::from_millis),
            ..MessageRecord::due(Time::ZERO)
        }
    }

    const MEDIAN: u64 = 60_000_000;

    #[test]
    fn a_transport_that_cannot_know_has_no_split() {
        let records = [record(60, None), record(500, None)];
        assert_eq!(head_of_line(records.iter(), MEDIAN), None);
    }

    #[test]
    fn the_hole_itself_is_retransmission_and_those_behind_it_waited() {
        // One message was resent; the two behind it waited for it.
        let records = [
            record(60, Some(0)),
            record(160, Some(0)),
            record(110, Some(50)),
            record(70, Some(10)),
        ];
        let split = head_of_line(records.iter(), MEDIAN).unwrap();
        assert_eq!(split.blocked_messages, 2);
        assert!((split.share_of_late_delay - 60.0 / 160.0).abs() < 1e-12);
        assert!((split.blocked_ms.max - 50.0).abs() < 1e-12);
    }

    #[test]
    fn waiting_that_made_nothing_late_is_not_counted() {
        let records = [record(60, Some(30)), record(70, Some(30))];
        let split = head_of_line(records.iter(), MEDIAN).unwrap();
        assert!((split.share_of_late_delay - 1.0).abs() < 1e-12);
    }

    #[test]
    fn without_late_delay_the_share_is_zero() {
        let records = [record(60, Some(0))];
        let split = head_of_line(records.iter(), MEDIAN).unwrap();
        assert!(split.share_of_late_delay.abs() < 1e-12);
    }
}
