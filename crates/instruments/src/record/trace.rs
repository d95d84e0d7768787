//! From what became of the probes to a trace that the link model plays.

use std::time::Duration;

use lagometer_link::trace::{BadRecording, Recording, Step};

use crate::record::fates::Way;

/// Loss of everything, in millionths.
const EVERYTHING: u32 = 1_000_000;

/// The trace of a recording that lasted `lasts`.
///
/// Each probe stands for the time from when it left until the next one does:
/// its delay is the delay then, and where it was lost everything is. So the
/// bursts of the path stay bursts, and two transports that are played over it
/// meet them at the same instants. What has the same delay to the microsecond
/// is written as one.
///
/// # Errors
///
/// [`BadRecording`] where a direction has no probe that came at all, or it
/// lasted no time.
pub fn recording(lasts: Duration, up: &Way, down: &Way) -> Result<Recording, BadRecording> {
    let lasts_us = u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX);
    Recording::new(
        lasts_us,
        steps("up", up, lasts_us)?,
        steps("down", down, lasts_us)?,
    )
}

fn steps(direction: &str, way: &Way, lasts_us: u64) -> Result<Vec<Step>, BadRecording> {
    let micros = |delay: Duration| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    let first_delay = way
        .fates
        .iter()
        .find_map(|fate| fate.delay)
        .ok_or_else(|| BadRecording::new(format!("nothing came through {direction}")))?;
    let mut latest_us = micros(first_delay);
    let mut steps: Vec<Step> = Vec::new();
    for fate in &way.fates {
        if let Some(delay) = fate.delay {
            latest_us = micros(delay);
        }
        // What holds from the beginning is not known before the first probe.
        let from_us = if steps.is_empty() {
            0
        } else {
            fate.sent.as_micros()
        };
        let step = Step {
            from_us,
            rate_bits_per_second: way.rate_bits_per_second,
            delay_us: latest_us,
            loss_ppm: if fate.delay.is_none() { EVERYTHING } else { 0 },
        };
        match steps.last_mut() {
            Some(last) if is_alike(last, &step) => {}
            // Two within one microsecond: the later one holds.
            Some(last) if last.from_us >= from_us => {
                *last = Step {
                    from_us: last.from_us,
                    ..step
                }
            }
            _ if from_us < lasts_us => steps.push(step),
            _ => break,
        }
    }
    Ok(steps)
}

fn is_alike(one: &Step, other: &Step) -> bool {
    one.delay_us == other.delay_us && one.loss_ppm == other.loss_ppm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fates::Fate;
    use lagometer_link::Direction;
    use lagometer_units::Time;
    use proptest::prelude::*;

    fn way(delays_us: &[Option<u64>]) -> Way {
        Way {
            fates: delays_us
                .iter()
                .enumerate()
                .map(|(index, delay)| Fate {
                    sent: Time::from_millis(3 + 10 * index as u64),
                    delay: delay.map(Duration::from_micros),
                    was_overtaken: false,
                    copies: 0,
                })
                .collect(),
            rate_bits_per_second: None,
        }
    }

    #[test]
    fn each_probe_stands_until_the_next() {
        let up = way(&[Some(500), Some(500), None, None, Some(700)]);
        let recording = recording(Duration::from_millis(60), &up, &way(&[None, Some(9)])).unwrap();
        let written = recording.to_string();
        assert_eq!(
            written,
            "lagometer-trace/1\nlasts 60000\nup 0 - 500 0\nup 23000 - 500 1000000\n\
             up 43000 - 700 0\ndown 0 - 9 1000000\ndown 13000 - 9 0\n"
        );
    }

    #[test]
    fn a_direction_through_which_nothing_came_is_refused() {
        let refused = recording(Duration::from_secs(1), &way(&[Some(1)]), &way(&[None]));
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("nothing came through down")
        );
    }

    proptest! {
        #[test]
        fn whatever_happened_can_be_played(
            delays in proptest::collection::vec(proptest::option::of(0_u64..10_000_000), 1..50),
            lasts_ms in 1_u64..600,
        ) {
            prop_assume!(delays.iter().any(Option::is_some));
            let way = way(&delays);
            let recording = recording(Duration::from_millis(lasts_ms), &way, &way).unwrap();
            prop_assert!(!recording.steps(Direction::Up).is_empty());
        }
    }
}
