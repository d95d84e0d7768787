use super::*;
use crate::document::sample::sample_document;
use crate::figures::{SeedRun, figures};
use crate::metric::Statistic;
use crate::record::MessageRecord;
use lagometer_units::Time;
use proptest::prelude::*;
use std::time::Duration;

const SHARE: Metric = Metric::Within(150);

/// A lane of ten minutes whose round trip depends on the second of play.
fn lane(rtt_ms: impl Fn(u64) -> u64) -> Lane {
    seeds_lane(&[1], |_, second| rtt_ms(second))
}

fn seeds_lane(seeds: &[u64], rtt_ms: impl Fn(u64, u64) -> u64) -> Lane {
    let records: Vec<Vec<MessageRecord>> = seeds
        .iter()
        .map(|&seed| {
            (0..12_000)
                .map(|index| {
                    let intended = Time::from_millis(index * 50);
                    let rtt = Duration::from_millis(rtt_ms(seed, index / 20));
                    MessageRecord {
                        returned: Some(intended + rtt),
                        ..MessageRecord::due(intended)
                    }
                })
                .collect()
        })
        .collect();
    let runs: Vec<_> = seeds
        .iter()
        .zip(&records)
        .map(|(&seed, records)| SeedRun {
            seed,
            records,
            disturbed: &[],
            overhead: None,
        })
        .collect();
    figures(&runs, &[]).into_lane("lane", "udp")
}

/// One second in twenty is bad weather.
fn bad(second: u64) -> bool {
    second % 20 == 7
}

#[test]
fn a_lane_does_not_differ_from_itself() {
    let lane = lane(|second| if bad(second) { 400 } else { 60 });
    for metric in [SHARE, Metric::Rtt(Statistic::P99), Metric::Episodes] {
        assert_eq!(
            judge(metric, &lane, &lane, 0.0),
            Judgement::Neither,
            "{metric}"
        );
    }
}

#[test]
fn a_lane_that_is_better_in_all_bad_weather_is_better() {
    let quick = lane(|second| if bad(second) { 120 } else { 60 });
    let slow = lane(|second| if bad(second) { 400 } else { 60 });
    assert_eq!(judge(SHARE, &quick, &slow, 0.0), Judgement::First);
    assert_eq!(judge(SHARE, &slow, &quick, 0.0), Judgement::Second);
    let p99 = Metric::Rtt(Statistic::P99);
    assert_eq!(judge(p99, &quick, &slow, 0.0), Judgement::First);
    assert_eq!(
        judge(p99, &quick, &slow, 500.0),
        Judgement::Neither,
        "within the noise"
    );
    let difference = difference(SHARE, &quick, &slow).unwrap();
    assert!((difference.mean - 0.05).abs() < 0.01, "{difference:?}");
}

#[test]
fn better_in_one_stretch_and_worse_in_another_is_no_difference() {
    let one = lane(|second| if second / 10 == 3 { 400 } else { 60 });
    let other = lane(|second| if second / 10 == 40 { 410 } else { 60 });
    assert_eq!(judge(SHARE, &one, &other, 0.0), Judgement::Neither);
}

#[test]
fn a_short_seed_tells_nothing() {
    let document = sample_document();
    let mut short = document.lanes[0].clone();
    short.resamples = None;
    assert_eq!(
        judge(SHARE, &short, &document.lanes[1], 0.0),
        Judgement::Unknown
    );
}

#[test]
fn seeds_that_agree_tell_lanes_apart_and_seeds_that_do_not_do_not() {
    let seeds = [1, 2, 3, 4, 5];
    let quick = seeds_lane(
        &seeds,
        |seed, second| if bad(second) { 100 + seed } else { 60 },
    );
    let slow = seeds_lane(&seeds, |seed, second| {
        if bad(second) && second % 10 * seed > 2 {
            400
        } else {
            60
        }
    });
    assert_eq!(judge(SHARE, &quick, &slow, 0.0), Judgement::First);
    let (low, high) = spread(Metric::Rtt(Statistic::Max), &quick).unwrap();
    assert_eq!((low.round() as u64, high.round() as u64), (101, 105));

    let one = seeds_lane(&seeds, |seed, second| {
        if bad(second) && seed % 2 == 0 {
            400
        } else {
            60
        }
    });
    let other = seeds_lane(&seeds, |seed, second| {
        if bad(second) && seed % 2 == 1 {
            400
        } else {
            60
        }
    });
    assert_eq!(judge(SHARE, &one, &other, 0.0), Judgement::Neither);
}

#[test]
fn lanes_of_other_seeds_or_another_length_are_not_paired() {
    let first = seeds_lane(&[1, 2], |_, _| 60);
    let second = seeds_lane(&[1, 3], |_, _| 90);
    assert_eq!(difference(SHARE, &first, &second), None);
    assert_eq!(difference(SHARE, &first, &lane(|_| 60)), None);
}

#[test]
fn virtual_time_has_no_noise() {
    let mut document = sample_document();
    assert!(noise_ms(&document).abs() < 1e-12);
    document.testbed = Some("net".to_owned());
    assert!((noise_ms(&document) - 0.4).abs() < 1e-12, "twice 200 us");
    document.host.noise = None;
    assert!(noise_ms(&document).abs() < 1e-12);
}

#[test]
fn students_interval_is_the_textbooks() {
    // Five differences of mean 3 and deviation sqrt(2.5).
    let found = by_student(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert!((found.low - (3.0 - 2.776 * (2.5_f64 / 5.0).sqrt())).abs() < 1e-12);
    assert_eq!(by_student(&[1.0]), None);
    assert_eq!(by_student(&[]), None);
    let falling: Vec<f64> = (0..200).map(student_t).collect();
    assert!(falling.windows(2).all(|pair| pair[0] >= pair[1]));
}

proptest! {
    #[test]
    fn an_interval_holds_its_mean_and_turns_with_its_sign(
        values in proptest::collection::vec(-1e6_f64..1e6, 2..60),
    ) {
        let found = by_student(&values).unwrap();
        prop_assert!(found.low <= found.mean && found.mean <= found.high);
        let turned: Vec<f64> = values.iter().map(|value| -value).collect();
        let turned = by_student(&turned).unwrap();
        prop_assert!((turned.low + found.high).abs() < 1e-3);
        let drawn = by_percentile(values).unwrap();
        prop_assert!(drawn.low <= drawn.high);
    }
}
