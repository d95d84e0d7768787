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

pub(crate) fn seeds_lane(seeds: &[u64], rtt_ms: impl Fn(u64, u64) -> u64) -> Lane {
    seeds_lane_of(600, seeds, rtt_ms)
}

/// The same of seeds of so many seconds.
pub(crate) fn seeds_lane_of(seconds: u64, seeds: &[u64], rtt_ms: impl Fn(u64, u64) -> u64) -> Lane {
    let records: Vec<Vec<MessageRecord>> = seeds
        .iter()
        .map(|&seed| {
            (0..20 * seconds)
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
        .map(|(&seed, records)| SeedRun::of(seed, records))
        .collect();
    figures(&runs, &[], Some(Duration::from_millis(170))).into_lane("lane", "udp")
}

/// One second in twenty is impairment.
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
fn a_lane_that_is_better_under_all_impairments_is_better() {
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
    assert!((difference.mean - 0.05).abs() < 1e-9, "{difference:?}");
    assert!(
        difference.low > 0.03 && difference.high < 0.07,
        "{difference:?}"
    );
}

#[test]
fn better_in_one_stretch_and_worse_in_another_is_no_difference() {
    let one = lane(|second| if second / 10 == 3 { 400 } else { 60 });
    let other = lane(|second| if second / 10 == 40 { 410 } else { 60 });
    assert_eq!(judge(SHARE, &one, &other, 0.0), Judgement::Neither);
}

#[test]
fn a_short_seed_shows_nothing() {
    let document = sample_document();
    let mut short = document.lanes[0].clone();
    short.resamples = None;
    assert_eq!(
        judge(SHARE, &short, &document.lanes[1], 0.0),
        Judgement::Unknown
    );
}

#[test]
fn seeds_that_agree_distinguish_lanes_and_seeds_that_do_not_do_not() {
    let seeds: Vec<u64> = (1..=8).collect();
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
    let (low, high) = interval(SHARE, &slow).unwrap();
    let share = SHARE.of(&slow).unwrap();
    assert!(
        low < share && share < high && high <= 1.0,
        "{low} {share} {high}"
    );
    assert_eq!(interval(Metric::Rtt(Statistic::Max), &slow), None, "a fact");

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
    let first = seeds_lane(&[1, 2, 3, 4, 5], |_, _| 60);
    let second = seeds_lane(&[1, 2, 3, 4, 5, 6], |_, _| 90);
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
fn a_few_seeds_that_agree_to_the_message_are_no_proof() {
    // In each of five seeds the one lane has one late message more.
    let seeds = [1, 2, 3, 4, 5];
    let one = seeds_lane(&seeds, |_, _| 60);
    let mut other = one.clone();
    let drawn = other.resamples.as_mut().unwrap();
    for share in drawn.values.get_mut("within_150ms").unwrap() {
        *share = Some(11_999.0 / 12_000.0);
    }
    for share in other.within.values_mut() {
        *share = 11_999.0 / 12_000.0;
    }
    let found = difference(SHARE, &one, &other).unwrap();
    assert!(found.p_value(0.0) > 0.05, "{found:?}");
    assert_eq!(judge(SHARE, &one, &other, 0.0), Judgement::Neither);
}

/// A lane of which, in ten seeds, these lose a tenth of all messages.
fn losing(seeds: &[u64]) -> Lane {
    let mut records: Vec<Vec<MessageRecord>> = Vec::new();
    for seed in 0..10 {
        let mut run: Vec<_> = (0..2_000)
            .map(|index| {
                let intended = Time::from_millis(index * 50);
                MessageRecord {
                    returned: Some(intended + Duration::from_millis(60 + (index * 7 + seed) % 5)),
                    ..MessageRecord::due(intended)
                }
            })
            .collect();
        if seeds.contains(&seed) {
            run.iter_mut()
                .step_by(10)
                .for_each(|record| record.returned = None);
        }
        records.push(run);
    }
    let runs: Vec<SeedRun<'_>> = (0..)
        .zip(&records)
        .map(|(seed, records)| SeedRun::of(seed, records))
        .collect();
    figures(&runs, &[], Some(Duration::from_millis(170))).into_lane("lane", "udp")
}

#[test]
fn a_lane_that_lost_a_quantile_is_worse_not_unbeatable() {
    let p99 = Metric::Rtt(Statistic::P99);
    let all: Vec<u64> = (0..10).collect();
    let (whole, always) = (losing(&[]), losing(&all));
    assert_eq!(judge(p99, &whole, &always, 0.0), Judgement::First);
    assert_eq!(judge(p99, &always, &whole, 0.0), Judgement::Second);
    assert_eq!(judge(p99, &always, &always, 0.0), Judgement::Neither);
    // Lost in two seeds of ten, it may not be lost in the next ten.
    let sometimes = losing(&[3, 6]);
    assert_eq!(judge(p99, &whole, &sometimes, 0.0), Judgement::Neither);
    let (low, high) = interval(p99, &sometimes).unwrap();
    assert!(low < 70.0 && high.is_infinite(), "{low} {high}");
}

/// Draws of a share in time, which is stabilised by the arcsine of the root of the rest.
fn drawn(value: f64, draws: Vec<f64>, units: u32) -> Drawn {
    Drawn {
        scale: Scale::of(SHARE),
        value,
        draws,
        units,
        freedom: units - 1,
    }
}

/// Of a mean the bootstrap is known: all draws there can be, with n/(n-1), come to the
/// standard error of every textbook, s divided by the root of n.
#[test]
fn the_error_of_a_mean_is_the_standard_error_of_its_units() {
    let units = [0.90, 0.94, 0.95, 0.99, 0.97];
    let n = units.len();
    let draws = (0..n.pow(5)).map(|number| {
        let picked = (0..5).map(|place| units[number / n.pow(place) % n]);
        picked.sum::<f64>() / n as f64
    });
    let mean = units.iter().sum::<f64>() / n as f64;
    let squares: f64 = units.iter().map(|unit| (unit - mean).powi(2)).sum();
    let expected = (squares / (n as f64 - 1.0) / n as f64).sqrt();
    let of = drawn(mean, draws.collect(), n as u32);
    let error = of.error(of.draws.iter().copied());
    assert!((error / expected - 1.0).abs() < 1e-3, "{error} {expected}");
}

/// Whether a share differs is asked of angles, around which it varies alike wherever it
/// lies. Shares themselves vary less the closer they are to all.
#[test]
fn how_sure_a_difference_is_does_not_hang_on_where_the_share_lies() {
    let share = |angle: f64| 1.0 - angle.sin().powi(2);
    let t = |angle: f64| {
        let draws = [-0.05, 0.05].repeat(50).into_iter();
        let one = drawn(
            share(angle),
            draws.map(|by| share(angle + by)).collect(),
            20,
        );
        let limit = Drawn::constant(share(angle + 0.1), &one);
        one.less(&limit, 0.0).unwrap().t
    };
    for angle in [0.1, 0.4, 0.7] {
        let expected = 0.1 / (0.0025_f64 * 100.0 / 99.0 * 20.0 / 19.0).sqrt();
        assert!((t(angle) / expected - 1.0).abs() < 1e-9, "{}", t(angle));
    }
}

#[test]
fn an_interval_is_as_wide_as_the_draws_scatter() {
    let width = |scatter: f64| {
        let drawn = Drawn {
            scale: Scale::Log,
            value: 100.0,
            draws: (0..200)
                .map(|draw| 100.0 + if draw % 2 == 0 { scatter } else { -scatter })
                .collect(),
            units: 30,
            freedom: 29,
        };
        let (low, high) = drawn.finite_interval(0.0);
        high - low
    };
    // 1.96 and a little more standard errors either way.
    assert!((3.9..4.3).contains(&width(1.0)), "{}", width(1.0));
    let ratio = width(3.0) / width(1.0);
    assert!((ratio - 3.0).abs() < 0.05, "{ratio}");
}

proptest! {
    #[test]
    fn an_interval_holds_its_mean_and_turns_with_its_sign(
        first in proptest::collection::vec(proptest::option::of(0.0_f64..1e4), 3..60),
        second in proptest::collection::vec(proptest::option::of(0.0_f64..1e4), 60),
    ) {
        let drawn = |values: &[Option<f64>]| Drawn {
            scale: Scale::Log,
            value: values[0].unwrap_or(f64::INFINITY),
            draws: values.iter().map(|each| each.unwrap_or(f64::INFINITY)).collect(),
            units: 30,
            freedom: 29,
        };
        let (first, second) = (drawn(&first), drawn(&second[..first.len()]));
        let found = first.less(&second, 0.0).unwrap();
        let turned = second.less(&first, 0.0).unwrap();
        prop_assert!(found.low <= found.mean && found.mean <= found.high);
        prop_assert!((found.low + turned.high).abs() < 1e-3);
        prop_assert!((found.p_value(0.0) - turned.p_value(0.0)).abs() < 1e-9);
        prop_assert!(found.p_value(1.0) >= found.p_value(0.0));
    }
}
