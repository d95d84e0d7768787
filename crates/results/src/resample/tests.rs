use super::*;
use crate::episodes::episodes;
use crate::lag::lag_of;
use lagometer_units::Time;
use std::time::Duration;

/// Messages every 50 ms, with round trips by their second.
fn run(seconds: u64, rtt_ms: impl Fn(u64) -> u64) -> Vec<MessageRecord> {
    (0..seconds * 20)
        .map(|index| {
            let intended = Time::from_millis(index * 50);
            MessageRecord {
                returned: Some(intended + Duration::from_millis(rtt_ms(index / 20))),
                ..MessageRecord::due(intended)
            }
        })
        .collect()
}

fn drawn(records: &[MessageRecord]) -> Option<Resamples> {
    resamples(&[one(records)], &[Metric::Within(50), Metric::Within(120)])
}

fn one(records: &[MessageRecord]) -> Drawn<'_> {
    let episodes = episodes(records, Duration::from_millis(150), &[]);
    Drawn {
        records,
        episodes_500ms_s: Vec::new(),
        episodes_s: episodes.iter().map(|episode| episode.start_s).collect(),
        lag: Some(lag_of(
            records,
            Duration::from_nanos(length_of(records)),
            Duration::from_millis(150),
            &[],
        )),
        overhead: Some(1.5),
        cost: None,
        game: None,
        flows: None,
    }
}

fn finite(drawn: &Resamples, metric: &str) -> Vec<f64> {
    drawn.values[metric]
        .iter()
        .map(|value| value.unwrap())
        .collect()
}

#[test]
fn a_short_run_says_nothing() {
    // Thirty stretches of ten seconds are the least.
    assert_eq!(drawn(&run(299, |_| 60)), None);
    assert_eq!(drawn(&run(300, |_| 60)).unwrap().blocks, 30);
    assert_eq!(drawn(&[]), None);
}

#[test]
fn a_run_that_never_varies_does_not_vary() {
    let drawn = drawn(&run(600, |_| 60)).unwrap();
    assert_eq!(drawn.blocks, 60);
    assert!((drawn.block_s - 10.0).abs() < 1e-12);
    for (metric, values) in &drawn.values {
        assert_eq!(values.len(), DRAWS, "{metric}");
        assert!(values.iter().all(|value| *value == values[0]), "{metric}");
    }
    assert_eq!(drawn.values["within_50ms"][0], Some(0.0));
    assert_eq!(drawn.values["within_120ms"][0], Some(1.0));
    assert_eq!(drawn.values["rtt_ms.p99"][0], Some(60.0));
}

/// What is bad in the worst unit, as a part of what is bad in all.
#[test]
fn the_worst_unit_is_known_of_what_adds_up() {
    // Of six seeds of ten seconds one has three late, another one late and four lost.
    let mut runs: Vec<_> = (0..6).map(|_| run(10, |_| 60)).collect();
    for index in [20, 60, 61] {
        runs[2][index].returned = Some(runs[2][index].intended + Duration::from_millis(400));
    }
    runs[4][90].returned = Some(runs[4][90].intended + Duration::from_millis(400));
    for record in &mut runs[4][120..124] {
        record.returned = None;
    }
    let units: Vec<_> = runs.iter().map(|records| one(records)).collect();
    let worst = resamples(&units, &[Metric::Within(50)]).unwrap().worst_unit;
    let intended = 6.0 * 200.0;
    let near = |metric: &str, expected: f64| {
        assert!(
            (worst[metric] - expected).abs() < 1e-6,
            "{metric}: {worst:?}"
        );
    };
    near("within_150ms", 5.0 / intended);
    near("within_50ms", 200.0 / intended);
    near("lost", 4.0 / intended);
    assert!(worst["lag_s_per_min"] > 0.0 && worst["freezes_per_min"] > 0.0);
    // A quantile is no sum.
    assert!(!worst.contains_key("rtt_ms.p99"));
}

#[test]
fn draws_scatter_around_the_run_they_are_drawn_from() {
    // Every third block of ten seconds is late.
    let drawn = drawn(&run(600, |second| {
        if (second / 10).is_multiple_of(3) {
            400
        } else {
            60
        }
    }))
    .unwrap();
    let shares = finite(&drawn, "within_150ms");
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean - 2.0 / 3.0).abs() < 0.03, "{mean}");
    // The deviation of a share over 60 independent blocks.
    let variance = shares
        .iter()
        .map(|share| (share - mean).powi(2))
        .sum::<f64>()
        / shares.len() as f64;
    let expected = (2.0 / 9.0_f64 / 60.0).sqrt();
    assert!(
        (variance.sqrt() / expected - 1.0).abs() < 0.25,
        "{}",
        variance.sqrt()
    );
    let episodes = finite(&drawn, "episodes");
    let mean = episodes.iter().sum::<f64>() / episodes.len() as f64;
    assert!((mean - 20.0).abs() < 1.5, "{mean}");
}

#[test]
fn the_lag_of_a_draw_is_that_of_its_stretches_wherever_a_freeze_began() {
    // One freeze from the middle of the eleventh stretch to that of the
    // twentieth, and some seconds more than whole stretches.
    let records = run(307, |second| {
        if (105..195).contains(&second) {
            400
        } else {
            60
        }
    });
    let units = Units::cut(&[one(&records)], &[]).unwrap();
    assert_eq!(units.len(), 30);
    let of = |drawn: &[u64], metric| {
        let figures = units.figures(drawn);
        let found = figures.into_iter().find(|(name, _)| *name == metric);
        found.unwrap().1
    };
    let lag = |drawn: &[u64]| of(drawn, Metric::Lag);
    // The threshold takes 150 ms of the first second; ninety seconds of
    // lateness end 400 ms less 60 ms after the last late message was due.
    let once = vec![1; 30];
    let wanted = (90.0 - 0.15 + 0.05) / 307.0 * 60.0;
    assert!((lag(&once) - wanted).abs() < 0.1, "{} {wanted}", lag(&once));
    assert!((of(&once, Metric::Freezes) - 60.0 / 307.0).abs() < 1e-9);
    let mut only = vec![0; 30];
    only[12] = 1;
    assert!(
        (lag(&only) - 60.0).abs() < 1e-9,
        "a minute of it in a minute"
    );
    assert!(of(&only, Metric::Freezes).abs() < 1e-9, "it began earlier");
    only[12] = 0;
    only[10] = 1;
    assert!(
        (of(&only, Metric::Freezes) - 6.0).abs() < 1e-9,
        "the one of these ten seconds"
    );
    only[10] = 0;
    only[25] = 3;
    assert!(lag(&only).abs() < 1e-9);
}

#[test]
fn lanes_of_one_run_draw_the_same_stretches() {
    let late = |second: u64| (second / 10).is_multiple_of(7);
    let one = drawn(&run(600, |second| if late(second) { 400 } else { 60 })).unwrap();
    let other = drawn(&run(600, |second| if late(second) { 900 } else { 70 })).unwrap();
    assert_eq!(one.values["within_150ms"], other.values["within_150ms"]);
}

#[test]
fn a_quantile_is_infinite_in_draws_that_lose_more_than_it_allows_for() {
    // Only the first half of thirty stretches delivers anything.
    let mut records = run(300, |_| 60);
    for record in &mut records[3000..] {
        record.returned = None;
    }
    let drawn = resamples(&[one(&records)], &[]).unwrap();
    let medians = &drawn.values["rtt_ms.p50"];
    assert_eq!(medians.len(), DRAWS);
    let shares = finite(&drawn, "within_150ms");
    for (median, share) in medians.iter().zip(&shares) {
        // Half of what was intended, or more, arrived.
        assert_eq!(median.is_some(), *share >= 0.5);
    }
    assert!(medians.iter().any(Option::is_none));
    assert!(medians.iter().any(Option::is_some));
}

#[test]
fn lost_messages_are_late_in_every_draw() {
    let mut records = run(300, |_| 60);
    for record in records.iter_mut().step_by(2) {
        record.returned = None;
    }
    let drawn = resamples(&[one(&records)], &[]).unwrap();
    for (metric, wanted) in [("within_2000ms", 0.5), ("lost", 0.5)] {
        let shares = finite(&drawn, metric);
        assert!(shares.iter().all(|share| (share - wanted).abs() < 1e-9));
    }
}

#[test]
fn seeds_are_drawn_whole_where_there_are_five() {
    let runs: Vec<Vec<MessageRecord>> = (0..5)
        .map(|seed| run(20, move |_| if seed == 0 { 400 } else { 60 }))
        .collect();
    let seeds: Vec<Drawn<'_>> = runs.iter().map(|records| one(records)).collect();
    let drawn = resamples(&seeds, &[]).unwrap();
    assert_eq!((drawn.unit, drawn.blocks), (ResampleUnit::Seed, 5));
    assert!(drawn.suffice());
    // Every draw has whole seeds of lateness.
    for share in finite(&drawn, "within_150ms") {
        assert!(
            (share * 5.0 - (share * 5.0).round()).abs() < 1e-4,
            "{share}"
        );
    }
    assert!((finite(&drawn, "overhead")[0] - 1.5).abs() < 1e-9);
    assert!(resamples(&seeds[..4], &[]).is_none(), "four short seeds");
}

#[test]
fn what_is_left_over_at_the_end_belongs_to_the_stretch_before_it() {
    // The last nine seconds, and they alone, are late.
    let drawn = drawn(&run(309, |second| if second >= 300 { 400 } else { 60 })).unwrap();
    assert_eq!(drawn.blocks, 30);
    let longest = finite(&drawn, "within_150ms")
        .into_iter()
        .fold(0.0, f64::max);
    assert!(
        (longest - 1.0).abs() < 1e-9,
        "a draw without the last stretch"
    );
}
