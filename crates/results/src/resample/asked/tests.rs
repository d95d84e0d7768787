use std::time::Duration;

use lagometer_units::Time;

use crate::document::{Lane, Resamples};
use crate::figures::{SeedRun, figures};
use crate::flow::{FlowMessage, FlowRecords};
use crate::game::{EventRecord, GameRecords, GameTerms, Rollback, StateRecord};
use crate::metric::{Metric, Sampled, Statistic};
use crate::record::MessageRecord;

use super::{AskedFigure, Cut, Drawn};

/// A number below `bound` that looks like chance.
fn luck(seed: u64, index: u64, bound: u64) -> u64 {
    let mixed = (seed * 1_000_003 + index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) % bound
}

/// Ten seconds of messages every 50 ms, of which some are lost on the way and some on the
/// way back where `loses`.
fn records(seed: u64, loses: bool) -> Vec<MessageRecord> {
    (0..200)
        .map(|index| {
            let intended = Time::from_millis(index * 50);
            let arrived = intended + Duration::from_millis(20 + luck(seed, index, 90));
            let fate = if loses { luck(seed, index, 23) } else { 9 };
            MessageRecord {
                arrived: (fate != 0).then_some(arrived),
                returned: (fate > 1).then(|| arrived + Duration::from_millis(30)),
                ..MessageRecord::due(intended)
            }
        })
        .collect()
}

fn events(seed: u64, every_ms: u64) -> Vec<EventRecord> {
    (0..10_000 / every_ms)
        .map(|index| {
            let at = Time::from_millis(index * every_ms);
            let delay = Duration::from_millis(25 + luck(seed + 7, index, 400));
            EventRecord {
                at,
                arrived: (luck(seed + 9, index, 31) != 0).then(|| at + delay),
            }
        })
        .collect()
}

fn game(seed: u64) -> GameRecords {
    GameRecords {
        played: Duration::from_secs(10),
        terms: GameTerms {
            interpolation: Duration::from_millis(100),
            rollback: Some(Rollback {
                frame: Duration::from_millis(16),
                input_delay: 1,
                most: 5,
            }),
            voice_within: Duration::from_millis(200),
        },
        states: events(seed + 1, 50)
            .into_iter()
            .map(|event| StateRecord {
                at: event.at,
                seen: event.arrived,
            })
            .collect(),
        events: events(seed, 20),
        voice: events(seed + 2, 25),
    }
}

fn flows(seed: u64) -> FlowRecords {
    let way = |way: u64| {
        let each = (0_u32..).zip(records(seed + way, true));
        each.map(|(index, record)| FlowMessage {
            record,
            bytes: 100 + index,
        })
        .collect()
    };
    FlowRecords {
        played: Duration::from_secs(10),
        within: Duration::from_millis(100),
        answers: false,
        ways: [way(1), way(2)],
    }
}

/// All that is drawn for a budget alone.
const ASKED: [Metric; 25] = [
    Metric::Rtt(Statistic::Mean),
    Metric::Up(Statistic::P50),
    Metric::Up(Statistic::P99),
    Metric::Up(Statistic::Mean),
    Metric::Down(Statistic::P90),
    Metric::Down(Statistic::Mean),
    Metric::ViewAge(Statistic::P50),
    Metric::ViewAge(Statistic::P99),
    Metric::ViewAge(Statistic::Mean),
    Metric::InputAge(Statistic::P90),
    Metric::InputAge(Statistic::Mean),
    Metric::Event(Statistic::P99_9),
    Metric::Event(Statistic::Mean),
    Metric::ShareWithin(Sampled::Up, 40),
    Metric::ShareWithin(Sampled::Down, 40),
    Metric::ShareWithin(Sampled::ViewAge, 90),
    Metric::ShareWithin(Sampled::InputAge, 90),
    Metric::ShareWithin(Sampled::Event, 150),
    Metric::ShareWithin(Sampled::Rollback, 2),
    Metric::ViewFreezesAt(120),
    Metric::Rollback(Statistic::P90),
    Metric::Rollback(Statistic::Mean),
    Metric::VoiceLate,
    Metric::Episodes500ms,
    Metric::Rtt(Statistic::P99),
];

/// A seed's luck: its records, game and flows.
type Played = (Vec<MessageRecord>, GameRecords, Option<FlowRecords>);

fn lane(seeds: &[Played], asked: &[Metric]) -> Lane {
    let runs: Vec<SeedRun<'_>> = (0..)
        .zip(seeds)
        .map(|(seed, (records, game, flows)): (u64, &Played)| SeedRun {
            game: Some(game),
            flows: flows.as_ref(),
            ..SeedRun::of(seed, records)
        })
        .collect();
    figures(&runs, asked, None).into_lane("lane", "kcp")
}

fn drawn_of(played: &Played) -> Drawn<'_> {
    Drawn {
        records: &played.0,
        episodes_s: Vec::new(),
        episodes_500ms_s: Vec::new(),
        lag: None,
        overhead: None,
        cost: None,
        game: Some(&played.1),
        flows: played.2.as_ref(),
    }
}

/// Drawing some seeds twice and others not at all gives the figure that a run of just
/// these seeds has.
fn holds(seeds: &[Played], metric: Metric) {
    let drawn: Vec<Drawn<'_>> = seeds.iter().map(drawn_of).collect();
    let cuts: Vec<(&Drawn<'_>, Cut)> = (0..)
        .zip(&drawn)
        .map(|(first, run)| {
            let cut = Cut {
                first,
                count: 1,
                length: 10_000_000_000,
            };
            (run, cut)
        })
        .collect();
    let figure = AskedFigure::of(metric, &cuts, seeds.len()).unwrap();
    for times in [[1, 1, 1, 1], [2, 0, 1, 1], [0, 3, 0, 1]] {
        let (_, value) = figure.drawn(&times).unwrap();
        let again = seeds.iter().zip(times);
        let again: Vec<Played> = again
            .flat_map(|(seed, times)| vec![seed.clone(); times as usize])
            .collect();
        let expected = metric.of(&lane(&again, &[metric])).unwrap();
        let is_same = if expected.is_infinite() {
            value.is_infinite()
        } else {
            (value - expected).abs() <= 1e-6 * expected.abs().max(1.0)
        };
        assert!(is_same, "{metric} of {times:?}: {value}, not {expected}");
    }
}

#[test]
fn a_draw_of_seeds_has_the_figures_of_a_run_of_them() {
    for loses in [false, true] {
        let seeds: Vec<Played> = (0..4)
            .map(|seed| (records(seed, loses), game(seed), None))
            .collect();
        for metric in ASKED {
            let is_drawn_for_all = metric == Metric::Rtt(Statistic::P99);
            if !is_drawn_for_all && metric != Metric::Episodes500ms {
                holds(&seeds, metric);
            }
        }
    }
    let seeds: Vec<Played> = (0..4)
        .map(|seed| (records(seed, false), game(seed), Some(flows(seed))))
        .collect();
    holds(&seeds, Metric::ThroughputUp);
    holds(&seeds, Metric::ThroughputDown);
}

/// A quantile keeps a limit exactly where its share is within it.
#[test]
fn a_quantile_and_the_share_within_a_limit_say_the_same() {
    for loses in [false, true] {
        let seeds: Vec<Played> = (0..4)
            .map(|seed| (records(seed, loses), game(seed), None))
            .collect();
        for of in Sampled::ALL {
            let limits = (1..400).map(|limit| Metric::ShareWithin(of, limit));
            let asked: Vec<Metric> = limits.collect();
            let lane = lane(&seeds, &asked);
            let (p90, mut kept) = (of.statistic(Statistic::P90).of(&lane).unwrap(), 0);
            for (limit, share) in (1..400).zip(asked) {
                let share = share.of(&lane).unwrap();
                // Of an age over time the quantile is where its share is reached to the nanosecond.
                let is_kept = share >= 0.9 - 1e-9;
                assert_eq!(
                    p90 <= f64::from(limit),
                    is_kept,
                    "{of} {p90} {limit} {share}"
                );
                kept += u32::from(is_kept);
            }
            assert!((1..399).contains(&kept) || loses, "{of}: {kept}");
        }
    }
}

fn resamples(loses: bool, asked: &[Metric]) -> Resamples {
    let seeds: Vec<Played> = (0..6)
        .map(|seed| (records(seed, loses), game(seed), None))
        .collect();
    lane(&seeds, asked).resamples.unwrap()
}

#[test]
fn what_is_asked_for_is_drawn_as_often_as_the_rest_and_nothing_twice() {
    let drawn = resamples(true, &ASKED);
    let often = drawn.values["lost"].len();
    for metric in ASKED {
        assert_eq!(drawn.values[&metric.to_string()].len(), often, "{metric}");
    }
    assert!(!resamples(true, &[]).values.contains_key("voice_late"));
}

/// A mean of delays of which any is lost is infinite.
#[test]
fn the_mean_of_what_was_lost_has_no_end() {
    let mean = [Metric::Rtt(Statistic::Mean)];
    let values = &resamples(true, &mean).values["rtt_ms.mean"];
    assert!(values.iter().all(Option::is_none));
    let values = &resamples(false, &mean).values["rtt_ms.mean"];
    assert!(values.iter().all(|value| value.is_some_and(|it| it > 50.0)));
}

/// What adds up says how much of it the worst unit brought, and that is at least what
/// each has on average.
#[test]
fn the_worst_unit_of_what_adds_up_is_known() {
    let asked = [
        Metric::VoiceLate,
        Metric::ShareWithin(Sampled::Event, 150),
        Metric::ShareWithin(Sampled::Up, 40),
        Metric::ShareWithin(Sampled::ViewAge, 90),
        Metric::ViewFreezesAt(120),
    ];
    let seeds: Vec<Played> = (0..6)
        .map(|seed| (records(seed, true), game(seed), None))
        .collect();
    let lane = lane(&seeds, &asked);
    let worst = &lane.resamples.as_ref().unwrap().worst_unit;
    for metric in asked {
        let value = metric.of(&lane).unwrap();
        let bad = if metric.more_is_better() {
            1.0 - value
        } else {
            value
        };
        let worst = worst[&metric.to_string()];
        assert!(
            worst >= bad / 6.0 && worst <= bad,
            "{metric}: {worst} of {bad}"
        );
    }
}
