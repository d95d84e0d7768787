use super::*;
use proptest::prelude::*;

const THRESHOLD: Duration = Duration::from_millis(170);

/// Messages every 50 ms with these round trips; `None` is lost.
fn records(rtts: &[Option<u64>]) -> Vec<MessageRecord> {
    (0..)
        .zip(rtts)
        .map(|(index, rtt)| {
            let intended = Time::from_millis(index * 50);
            MessageRecord {
                returned: rtt.map(|rtt| intended + Duration::from_millis(rtt)),
                ..MessageRecord::due(intended)
            }
        })
        .collect()
}

fn lag(rtts: &[Option<u64>], disturbed: &[Disturbed]) -> SeedLag {
    let played = Duration::from_millis(50 * rtts.len() as u64);
    lag_of(&records(rtts), played, THRESHOLD, disturbed)
}

fn s_per_min(lag: &SeedLag) -> f64 {
    pooled(std::slice::from_ref(lag), THRESHOLD).s_per_min
}

fn total_ms(lag: &SeedLag) -> f64 {
    lag.freezes.iter().map(|freeze| freeze.lag_ms).sum()
}

#[test]
fn a_steady_lane_below_the_threshold_never_lags() {
    let never = lag(&[Some(170); 100], &[]);
    assert!(never.freezes.is_empty());
    assert_eq!(format!("{:.2}", s_per_min(&never)), "0.00");
    assert!(lag(&[Some(20); 100], &[]).freezes.is_empty());
}

#[test]
fn a_lane_that_is_always_late_lags_all_the_time_however_even_it_is() {
    let lag = lag(&vec![Some(400); 1200], &[]);
    assert_eq!(lag.freezes.len(), 1);
    // All but the first 170 ms of a minute, and what lies below the threshold.
    assert!(
        (s_per_min(&lag) - 59.83).abs() < 1e-9,
        "{}",
        s_per_min(&lag)
    );
    // By half of each interval late: half the time.
    let half = self::lag(&vec![Some(195); 1200], &[]);
    assert!(
        (s_per_min(&half) - 30.0).abs() < 0.3,
        "{}",
        s_per_min(&half)
    );
    assert_eq!(half.freezes.len(), 1, "joined");
}

#[test]
fn a_lost_message_costs_nothing_once_something_newer_is_there() {
    let mut rtts = [Some(20); 100];
    rtts[40] = None;
    rtts[60] = Some(900);
    assert!(lag(&rtts, &[]).freezes.is_empty());
    // Four in a row leave the fifth 220 ms after the first was due.
    rtts[40..44].fill(None);
    let lag = lag(&rtts, &[]);
    assert_eq!(lag.freezes.len(), 1);
    assert!((total_ms(&lag) - 50.0).abs() < 1e-9, "{}", total_ms(&lag));
    assert!(lag.freezes[0].over);
}

#[test]
fn recovery_counts_from_the_first_and_from_the_last_disturbance() {
    let mut rtts = [Some(20); 100];
    // Due from 2000 ms on, all here at 3020 ms.
    for (index, rtt) in (40_u64..).zip(&mut rtts[40..60]) {
        *rtt = Some(3_020 - index * 50);
    }
    let spell = |from, until| Disturbed {
        from: Time::from_millis(from),
        until: Time::from_millis(until),
    };
    let spells = [
        spell(1_990, 2_100),
        spell(2_400, 2_700),
        spell(4_000, 4_100),
    ];
    let freeze = &lag(&rtts, &spells).freezes[0];
    assert_eq!(freeze.recovery_first_ms, Some(920.0));
    assert_eq!(freeze.recovery_last_ms, Some(320.0));
    assert!((freeze.duration_ms - 850.0).abs() < 1e-9);
}

#[test]
fn what_never_came_back_is_not_over_and_its_recovery_is_at_least_so_long() {
    let mut rtts = [Some(20); 100];
    rtts[40..].fill(None);
    let spell = Disturbed {
        from: Time::from_millis(2_000),
        until: Time::from_millis(2_500),
    };
    let lag = lag(&rtts, &[spell]);
    assert!(!lag.freezes[0].over);
    assert!((total_ms(&lag) - (3_000.0 - 170.0)).abs() < 1e-9);
    let pooled = pooled(&[lag], THRESHOLD);
    let recovery = pooled.recovery_last.unwrap();
    assert!(recovery.at_least && (recovery.ms - 2_500.0).abs() < 1e-9);
}

/// How long the one that did not end would have been nobody knows.
#[test]
fn the_longest_freeze_is_at_least_as_long_as_seen_where_any_did_not_end() {
    let mut long = [Some(20); 100];
    long[20] = Some(1_500);
    for late in &mut long[21..49] {
        *late = Some(1_450);
    }
    let mut dies_late = [Some(20); 100];
    dies_late[90..].fill(None);
    let (long, dies_late) = (lag(&long, &[]), lag(&dies_late, &[]));
    let longest = |seeds: &[SeedLag]| pooled(seeds, THRESHOLD).longest_freeze.unwrap();
    let ended = longest(std::slice::from_ref(&long));
    assert!(!ended.at_least && ended.ms > 1_000.0);
    let both = longest(&[long, dies_late]);
    assert!(both.at_least && (both.ms - ended.ms).abs() < 1e-9);
    assert!(both.censored_ms().is_infinite());
}

#[test]
fn nothing_that_ever_came_is_lag_from_the_threshold_on() {
    let lag = lag(&[None; 100], &[]);
    assert!((total_ms(&lag) - (5_000.0 - 170.0)).abs() < 1e-9);
    assert!(self::lag(&[], &[]).freezes.is_empty());
}

/// Lag by its definition, millisecond by millisecond.
fn lag_by_definition(records: &[MessageRecord], played_ms: u64) -> u64 {
    (0..played_ms)
        .filter(|&ms| {
            let now = Time::from_nanos(ms * 1_000_000 + 500_000);
            let here = |record: &MessageRecord| record.returned.is_some_and(|at| at <= now);
            let newest = records.iter().rposition(here);
            let awaited = newest.map_or(0, |newest| newest + 1);
            records.get(awaited).is_some_and(|record| {
                now.since(record.intended) > THRESHOLD && record.intended <= now
            })
        })
        .count() as u64
}

proptest! {
    #[test]
    fn it_is_what_the_definition_says(
        rtts in proptest::collection::vec(proptest::option::weighted(0.8, 10_u64..900), 1..40),
    ) {
        let played_ms = 50 * rtts.len() as u64;
        let found = total_ms(&lag(&rtts, &[]));
        let wanted = lag_by_definition(&records(&rtts), played_ms);
        prop_assert!((found - wanted as f64).abs() < 1e-6, "{found} {wanted}");
    }

    #[test]
    fn a_later_echo_never_lessens_the_lag(
        rtts in proptest::collection::vec(proptest::option::weighted(0.8, 10_u64..900), 1..40),
        which in 0_usize..40,
        more in 1_u64..500,
    ) {
        let before = total_ms(&lag(&rtts, &[]));
        let mut later = rtts.clone();
        let which = which % rtts.len();
        later[which] = later[which].map(|rtt| rtt + more);
        prop_assert!(total_ms(&lag(&later, &[])) >= before - 1e-9);
        later[which] = None;
        prop_assert!(total_ms(&lag(&later, &[])) >= before - 1e-9);
    }

    #[test]
    fn a_lane_that_is_always_late_has_the_most_lag(
        rtts in proptest::collection::vec(10_u64..900, 1..200),
        always in 900_u64..5_000,
    ) {
        let late = lag(&vec![Some(always); rtts.len()], &[]);
        let rtts: Vec<Option<u64>> = rtts.into_iter().map(Some).collect();
        prop_assert!(total_ms(&late) >= total_ms(&lag(&rtts, &[])) - 1e-9);
    }
}
