//! Round trips over time, in few enough buckets to be drawn whatever the
//! run's length.

use std::time::Duration;

use lagometer_stats::nanos;
use lagometer_units::Time;

use crate::document::Timeline;
use crate::record::MessageRecord;

/// The most buckets a timeline has.
pub const MOST_BUCKETS: u64 = 4000;

/// The narrowest bucket: one message of the usual workload.
const NARROWEST: Duration = Duration::from_millis(50);

/// The round trips of a run over the intended send times of its messages, in
/// buckets as narrow as a round number (1, 2 or 5 times a power of ten) and
/// [`MOST_BUCKETS`] allow. A bucket in which every message was lost, or into
/// which none fell, has no smallest and largest.
#[must_use]
pub fn timeline(records: &[MessageRecord]) -> Timeline {
    let Some(last) = records.iter().map(|record| record.intended).max() else {
        return Timeline::default();
    };
    let step = round_step(last);
    let len = (last.as_nanos() / nanos(step) + 1) as usize;
    let mut timeline = Timeline {
        step_s: step.as_secs_f64(),
        min_ms: vec![None; len],
        max_ms: vec![None; len],
        lost: vec![0; len],
    };
    for record in records {
        let bucket = (record.intended.as_nanos() / nanos(step)) as usize;
        let Some(rtt) = record.rtt().map(in_rounded_millis) else {
            timeline.lost[bucket] = timeline.lost[bucket].saturating_add(1);
            continue;
        };
        let low = &mut timeline.min_ms[bucket];
        *low = Some(low.map_or(rtt, |low| low.min(rtt)));
        let high = &mut timeline.max_ms[bucket];
        *high = Some(high.map_or(rtt, |high| high.max(rtt)));
    }
    timeline
}

/// The smallest round width of a bucket that covers the time until `last` in
/// at most [`MOST_BUCKETS`].
fn round_step(last: Time) -> Duration {
    let mut step = NARROWEST;
    // From 5 to 10 is twice, from 10 to 20 too, from 20 to 50 two and a half.
    for factor in [(2, 1), (2, 1), (5, 2)].into_iter().cycle() {
        if last.as_nanos() / nanos(step) < MOST_BUCKETS {
            break;
        }
        step = step * factor.0 / factor.1;
    }
    step
}

/// Milliseconds to the microsecond: finer than any plot, and short to write.
fn in_rounded_millis(rtt: Duration) -> f64 {
    (nanos(rtt) as f64 / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(intended_ms: u64, rtt_ms: Option<u64>) -> MessageRecord {
        let intended = Time::from_millis(intended_ms);
        MessageRecord {
            returned: rtt_ms.map(|rtt| intended + Duration::from_millis(rtt)),
            ..MessageRecord::due(intended)
        }
    }

    #[test]
    fn ten_minutes_fit_in_steps_of_a_fifth_of_a_second() {
        let timeline = timeline(&[record(0, Some(60)), record(599_950, Some(70))]);
        assert!((timeline.step_s - 0.2).abs() < 1e-12);
        assert_eq!(timeline.max_ms.len(), 3000);
        assert_eq!(timeline.max_ms[2999], Some(70.0));
        assert_eq!(timeline.max_ms[1], None);
    }

    #[test]
    fn a_bucket_keeps_its_extremes_and_its_losses() {
        let timeline = timeline(&[
            record(0, Some(60)),
            record(10, Some(90)),
            record(20, None),
            record(49, Some(40)),
            record(50, None),
        ]);
        assert_eq!(timeline.min_ms, [Some(40.0), None]);
        assert_eq!(timeline.max_ms, [Some(90.0), None]);
        assert_eq!(timeline.lost, [1, 1]);
    }

    #[test]
    fn nothing_sent_is_an_empty_timeline() {
        assert_eq!(timeline(&[]), Timeline::default());
    }

    proptest! {
        #[test]
        fn any_length_of_run_is_bounded_and_round(last in any::<u64>()) {
            let step = round_step(Time::from_nanos(last));
            prop_assert!(last / nanos(step) < MOST_BUCKETS);
            let digits = nanos(step).to_string();
            let digits = digits.trim_end_matches('0');
            prop_assert!(["1", "2", "5"].contains(&digits), "{}", digits);
        }
    }
}
