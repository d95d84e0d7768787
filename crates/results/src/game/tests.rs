use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn records(states: &[(u64, Option<u64>)], played_ms: u64) -> GameRecords {
    GameRecords {
        played: Duration::from_millis(played_ms),
        terms: GameTerms {
            interpolation: Duration::from_millis(100),
            rollback: None,
            voice_within: Duration::from_millis(150),
        },
        states: states
            .iter()
            .map(|&(at, seen)| StateRecord {
                at: Time::from_millis(at),
                seen: seen.map(Time::from_millis),
            })
            .collect(),
        events: Vec::new(),
        voice: Vec::new(),
    }
}

/// A snapshot every 50 ms, 20 ms on its way and as much longer as `late` says.
fn snapshots(until_ms: u64, late: impl Fn(u64) -> Option<u64>) -> GameRecords {
    let states: Vec<_> = (0..until_ms / 50)
        .map(|number| (number * 50, late(number).map(|ms| number * 50 + 20 + ms)))
        .collect();
    records(&states, until_ms)
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

#[test]
fn a_calm_view_needs_one_interval_whatever_the_way() {
    let calm = snapshots(60_000, |_| Some(0));
    let figures = game(&[(&calm, &[])], &[]).unwrap();
    near(figures.freezes_per_min, 0.0);
    near(figures.interpolation_needed_ms, 50.0);
    // Between 20 and 70 ms, evenly.
    let age = figures.view_age_ms;
    assert!((age.p50 - 45.0).abs() < 0.1, "{age:?}");
    assert!((age.p99 - 69.5).abs() < 0.1, "{age:?}");
}

#[test]
fn a_gap_is_one_freeze_and_lasts_from_the_delay_on() {
    // Of 4950 ms is the newest, and the next comes at 5320 ms, 370 ms later.
    let is_lost = |number| (100..106).contains(&number);
    let gap = snapshots(60_000, |number| (!is_lost(number)).then_some(0));
    let figures = game(&[(&gap, &[])], &[]).unwrap();
    near(figures.freezes_per_min, 1.0);
    near(figures.frozen_s_per_min, 0.25);
    // One freeze a minute is put up with.
    near(figures.interpolation_needed_ms, 50.0);
    let is_lost = |number| is_lost(number) || (300..303).contains(&number);
    let two = snapshots(60_000, |number| (!is_lost(number)).then_some(0));
    let figures = game(&[(&two, &[])], &[]).unwrap();
    near(figures.freezes_per_min, 2.0);
    // The shorter of the two has to be bridged.
    near(figures.interpolation_needed_ms, 200.0);
}

#[test]
fn a_late_snapshot_does_not_end_a_freeze_that_it_is_too_old_for() {
    // All but the first are too old at their arrival, and the view never moves.
    let late = snapshots(60_000, |number| Some(if number == 0 { 0 } else { 250 }));
    let figures = game(&[(&late, &[])], &[]).unwrap();
    near(figures.freezes_per_min, 1.0);
    assert!(figures.frozen_s_per_min > 59.0);
    near(figures.interpolation_needed_ms, 300.0);
}

#[test]
fn what_never_comes_again_freezes_to_the_end() {
    let dead = snapshots(60_000, |number| (number < 600).then_some(0));
    let figures = game(&[(&dead, &[])], &[]).unwrap();
    near(figures.freezes_per_min, 1.0);
    near(figures.frozen_s_per_min, 29.93);
    near(figures.view_age_ms.max, 30_050.0);
}

#[test]
fn the_age_of_inputs_is_taken_at_the_servers_steps() {
    let run = snapshots(1_000, |_| Some(0));
    let inputs: Vec<MessageRecord> = (0..50)
        .map(|number| MessageRecord {
            arrived: (number != 10).then(|| Time::from_millis(number * 20 + 15)),
            ..MessageRecord::due(Time::from_millis(number * 20))
        })
        .collect();
    let figures = game(&[(&run, &inputs)], &[]).unwrap();
    // At 0 ms it is of 0 ms, at 50 ms of 20 ms, at 100 ms of 80 ms, …
    near(figures.input_age_ms.max, 30.0);
    near(figures.input_age_ms.p50, 20.0);
}

#[test]
fn rollback_counts_the_frames_beyond_the_input_delay() {
    let mut run = records(&[(0, Some(10)), (16, Some(76)), (32, None)], 1_000);
    run.terms.rollback = Some(Rollback {
        frame: Duration::from_millis(16),
        input_delay: 1,
        most: 2,
    });
    let input = MessageRecord {
        arrived: Some(Time::from_millis(116)),
        ..MessageRecord::due(Time::from_millis(100))
    };
    let figures = game(&[(&run, &[input])], &[]).unwrap();
    let frames = figures.rollback_frames.unwrap();
    // 10 ms and 16 ms are foreseen; 60 ms are 44 too many: three frames. One is lost.
    assert_eq!(
        (frames.min, frames.p50, frames.max),
        (Some(0.0), Some(0.0), None)
    );
    near(figures.rollback_stalled.unwrap(), 0.5);
}

#[test]
fn events_and_voice_that_never_came_count_as_late() {
    let mut run = records(&[], 1_000);
    let event = |arrived: Option<u64>| EventRecord {
        at: Time::ZERO,
        arrived: arrived.map(Time::from_millis),
    };
    run.events = vec![event(Some(40)), event(None)];
    run.voice = [Some(150), Some(151), None, Some(1)].map(event).to_vec();
    let figures = game(&[(&run, &[])], &[]).unwrap();
    let events = figures.event_ms.unwrap();
    assert_eq!((events.p50, events.p99), (Some(40.0), None));
    near(figures.voice_late.unwrap(), 0.5);
}

#[test]
fn a_run_that_is_cut_reports_what_was_played_alone() {
    let cut = snapshots(60_000, |number| (number < 100).then_some(0));
    let figures = game(&[(&cut.until(Time::from_secs(5)), &[])], &[]).unwrap();
    near(figures.freezes_per_min, 0.0);
}

/// Snapshots 20 ms apart that come so late or never, and how long they take.
fn drawn(delays: &[Option<u64>]) -> (Vec<(u64, Option<u64>)>, u64) {
    let states = (0..).zip(delays);
    let states = states.map(|(number, late)| (number * 20, late.map(|ms| number * 20 + ms)));
    (states.collect(), delays.len() as u64 * 20)
}

proptest! {
    /// The reference: the age at every millisecond.
    #[test]
    fn freezes_are_those_of_the_age_millisecond_by_millisecond(
        delays in prop::collection::vec(prop::option::of(1_u64..300), 20..60),
        delay in 0_u64..200,
    ) {
        let (states, played) = drawn(&delays);
        let teeth = teeth(&records(&states, played));
        let (mut stretches, mut frozen_ms, mut was) = (0, 0, false);
        for now in 0..played {
            let seen = states.iter().filter(|(_, seen)| seen.is_some_and(|seen| seen <= now));
            let newest = seen.map(|&(at, _)| at).max().unwrap_or(0);
            // In the middle of the millisecond, so that nothing is on its edge.
            let is = (now - newest) * 2 + 1 > delay * 2;
            stretches += u64::from(is && !was);
            frozen_ms += u64::from(is);
            was = is;
        }
        prop_assert_eq!(freezes(&teeth, delay * MS), stretches);
        prop_assert_eq!(frozen(&teeth, delay * MS), frozen_ms * MS);
    }

    #[test]
    fn with_the_delay_needed_there_are_few_freezes_and_with_any_longer(
        delays in prop::collection::vec(prop::option::of(1_u64..300), 20..60),
        longer in 0_u64..300,
    ) {
        let (states, played) = drawn(&delays);
        let teeth = teeth(&records(&states, played));
        for minutes in [0.5, 2.0, 5.0] {
            let needed = delay_needed(&edges(&teeth), minutes);
            prop_assert!(freezes(&teeth, needed + longer * MS) as f64 <= minutes);
            if needed > 0 {
                prop_assert!(freezes(&teeth, needed - 1) as f64 > minutes);
            }
        }
    }
}
