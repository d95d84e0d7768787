use super::*;
use proptest::prelude::*;

const SPACING_MS: u64 = 50;

/// Messages 50 ms apart with these round trips in milliseconds; `None` is
/// lost.
fn run(rtts: &[Option<u64>]) -> Vec<MessageRecord> {
    rtts.iter()
        .enumerate()
        .map(|(index, rtt)| {
            let intended = Time::from_millis(index as u64 * SPACING_MS);
            MessageRecord {
                returned: rtt.map(|rtt| intended + Duration::from_millis(rtt)),
                ..MessageRecord::due(intended)
            }
        })
        .collect()
}

fn found(rtts: &[Option<u64>]) -> Vec<Episode> {
    episodes(&run(rtts), Duration::from_millis(150), &[])
}

const GOOD: Option<u64> = Some(60);

#[test]
fn the_threshold_has_a_floor() {
    assert_eq!(
        adaptive_threshold(Duration::from_millis(20)),
        LEAST_THRESHOLD
    );
    assert_eq!(
        adaptive_threshold(Duration::from_millis(60)),
        Duration::from_millis(180)
    );
}

#[test]
fn a_run_without_lag_has_no_episodes() {
    assert!(found(&[GOOD, Some(150), GOOD]).is_empty());
    assert!(found(&[]).is_empty());
}

#[test]
fn an_episode_runs_from_the_first_send_to_the_last_arrival() {
    let episodes = found(&[GOOD, Some(400), Some(350), Some(300), GOOD]);
    let [episode] = &episodes[..] else {
        panic!("one episode, not {episodes:?}");
    };
    assert!((episode.start_s - 0.05).abs() < 1e-9);
    assert!((episode.duration_ms - 400.0).abs() < 1e-9);
    assert_eq!(episode.worst_ms, Some(400.0));
    assert_eq!((episode.messages, episode.lost), (3, 0));
    assert_eq!(episode.recovery_ms, None);
}

#[test]
fn four_good_messages_join_and_five_part() {
    let mut rtts = vec![Some(400), GOOD, GOOD, GOOD, GOOD, Some(200)];
    assert_eq!(found(&rtts).len(), 1);
    assert_eq!(found(&rtts)[0].messages, 2);
    rtts.insert(1, GOOD);
    assert_eq!(found(&rtts).len(), 2);
}

#[test]
fn a_lost_message_is_over_when_something_newer_arrives() {
    let episodes = found(&[GOOD, None, GOOD, GOOD]);
    assert_eq!(episodes.len(), 1);
    // Sent at 50 ms; the next arrives at 100 + 60 ms.
    assert!((episodes[0].duration_ms - 110.0).abs() < 1e-9);
    assert_eq!(episodes[0].worst_ms, None);
    assert_eq!((episodes[0].messages, episodes[0].lost), (1, 1));
}

#[test]
fn a_dead_connection_is_one_episode_to_the_end_of_the_run() {
    let episodes = found(&[GOOD, None, None, None, None, None]);
    assert_eq!(episodes.len(), 1);
    assert!((episodes[0].duration_ms - 200.0).abs() < 1e-9);
    assert_eq!(episodes[0].lost, 5);
}

#[test]
fn recovery_counts_from_the_last_disturbance_that_touches_the_episode() {
    let records = run(&[GOOD, Some(400), Some(350), Some(300), GOOD]);
    let recovery = |spells: &[(u64, u64)]| {
        let disturbed: Vec<_> = spells
            .iter()
            .map(|&(from, until)| Disturbed {
                from: Time::from_millis(from),
                until: Time::from_millis(until),
            })
            .collect();
        let found = episodes(&records, Duration::from_millis(150), &disturbed);
        found[0].recovery_ms
    };
    // The episode lasts from 50 to 450 ms.
    assert_eq!(recovery(&[(60, 250)]), Some(200.0));
    assert_eq!(recovery(&[(300, 350), (60, 100)]), Some(100.0));
    assert_eq!(
        recovery(&[(0, 20)]),
        Some(430.0),
        "just before still counts"
    );
    assert_eq!(recovery(&[(60, 900)]), Some(0.0), "still bad at the end");
    assert_eq!(recovery(&[(451, 900)]), None, "afterwards is no cause");
    assert_eq!(recovery(&[]), None);
}

#[test]
fn a_disturbance_long_past_is_no_cause() {
    let records = run(&[GOOD; 10]
        .map(|_| GOOD)
        .into_iter()
        .chain([Some(400), GOOD])
        .collect::<Vec<_>>());
    let disturbed = [Disturbed {
        from: Time::ZERO,
        until: Time::from_millis(300),
    }];
    let found = episodes(&records, Duration::from_millis(150), &disturbed);
    assert_eq!(found[0].recovery_ms, None);
}

/// The definition, word for word and without regard to cost.
fn naive(records: &[MessageRecord], threshold: Duration) -> Vec<(Time, Time, u64, u64)> {
    let late: Vec<bool> = records
        .iter()
        .map(|record| match record.returned {
            None => true,
            Some(returned) => returned.since(record.intended) > threshold,
        })
        .collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for index in (0..records.len()).filter(|&index| late[index]) {
        let same = groups.last().is_some_and(|group| {
            let last = group[group.len() - 1];
            let first_good = (last + 1..index).find(|&between| !late[between]);
            first_good.is_none_or(|good| {
                records[index].intended.since(records[good].intended) < JOINED_WITHIN
            })
        });
        if same {
            groups.last_mut().unwrap().push(index);
        } else {
            groups.push(vec![index]);
        }
    }
    groups
        .iter()
        .map(|group| {
            let over = |index: usize| {
                records[index].returned.unwrap_or_else(|| {
                    records[index + 1..]
                        .iter()
                        .filter_map(|record| record.returned)
                        .min()
                        .unwrap_or(records[records.len() - 1].intended)
                })
            };
            let start = records[group[0]].intended;
            let end = group.iter().map(|&index| over(index)).max().unwrap();
            let lost = group.iter().filter(|&&index| records[index].is_lost());
            (
                start,
                end.max(start),
                group.len() as u64,
                lost.count() as u64,
            )
        })
        .collect()
}

fn any_run() -> impl Strategy<Value = Vec<MessageRecord>> {
    let rtt = prop_oneof![
        4 => (10_u64..140).prop_map(Some),
        2 => (150_u64..3_000).prop_map(Some),
        1 => Just(None),
    ];
    proptest::collection::vec((1_u64..120, rtt), 0..120).prop_map(|messages| {
        let mut intended = Time::ZERO;
        messages
            .into_iter()
            .map(|(gap, rtt)| {
                intended += Duration::from_millis(gap);
                MessageRecord {
                    returned: rtt.map(|rtt| intended + Duration::from_millis(rtt)),
                    ..MessageRecord::due(intended)
                }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn episodes_are_what_the_definition_says(records in any_run()) {
        let threshold = Duration::from_millis(150);
        let found = episodes(&records, threshold, &[]);
        let expected = naive(&records, threshold);
        prop_assert_eq!(found.len(), expected.len());
        for (found, (start, end, messages, lost)) in found.iter().zip(expected) {
            prop_assert!((found.start_s - start.as_secs_f64()).abs() < 1e-9);
            prop_assert!((found.duration_ms - millis(end.since(start))).abs() < 1e-6);
            prop_assert_eq!((found.messages, found.lost), (messages, lost));
        }
    }

    #[test]
    fn every_late_message_is_in_exactly_one_episode(records in any_run()) {
        let found = episodes(&records, Duration::from_millis(150), &[]);
        let late = records.iter().filter(|record| is_late(record, Duration::from_millis(150)));
        prop_assert_eq!(found.iter().map(|episode| episode.messages).sum::<u64>(), late.count() as u64);
    }

    #[test]
    fn recovery_never_exceeds_the_episode_by_more_than_the_slack(
        records in any_run(),
        spells in proptest::collection::vec((0_u64..6_000, 0_u64..1_000), 0..20),
    ) {
        let disturbed: Vec<_> = spells
            .into_iter()
            .map(|(from, length)| Disturbed {
                from: Time::from_millis(from),
                until: Time::from_millis(from + length),
            })
            .collect();
        let threshold = Duration::from_millis(150);
        for episode in episodes(&records, threshold, &disturbed) {
            let start = Time::from_nanos((episode.start_s * 1e9).round() as u64);
            let end = start + Duration::from_nanos((episode.duration_ms * 1e6).round() as u64);
            let expected = disturbed
                .iter()
                .filter(|spell| spell.from <= end && spell.until >= start - threshold)
                .map(|spell| spell.until)
                .max()
                .map(|cleared| millis(end.since(cleared)));
            match (episode.recovery_ms, expected) {
                (Some(recovery), Some(expected)) => {
                    prop_assert!((recovery - expected).abs() < 1e-3);
                    prop_assert!(recovery <= episode.duration_ms + millis(threshold) + 1e-6);
                }
                (recovery, expected) => prop_assert_eq!(recovery, expected),
            }
        }
    }
}
