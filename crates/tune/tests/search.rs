//! The search on functions whose best is known, with noise that seeds share.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use lagometer_results::{
    Lane, MessageRecord, Metric, SeedRun, figures, mixed_difference, seed_figures,
};
use lagometer_transport::{Tunable, TunableRange};
use lagometer_tune::frontier::{frontier, thinned};
use lagometer_tune::search::{Extent, Play, Trial, most_plays, rungs, search};
use lagometer_tune::sensitivity::{sensitivity, simplified};
use lagometer_tune::{Aim, Candidate, Space, Start, Stopped};
use lagometer_units::Time;
use proptest::prelude::*;
use serde_json::json;

/// A delay in milliseconds that follows from where settings stand; the least is the
/// best.
type Delay = fn(&[f64]) -> f64;

/// Plays a function of the settings' positions.
struct Known<'a> {
    space: &'a Space,
    delay: Delay,
    /// How far a seed moves all candidates alike, and each by itself.
    noise: (f64, f64),
    /// How many figures a limit wants beside the usual ones.
    limited: bool,
    plays: usize,
    most: usize,
}

impl Play for Known<'_> {
    fn play(&mut self, asks: &[(&Candidate, Range<usize>)]) -> Result<Vec<Vec<Vec<f64>>>, Stopped> {
        let mut all = Vec::new();
        for (candidate, seeds) in asks {
            let mut figures = Vec::new();
            for seed in seeds.clone() {
                self.plays += 1;
                if self.plays > self.most {
                    return Err(Stopped);
                }
                figures.push(self.seed(candidate, seed as u64));
            }
            all.push(figures);
        }
        Ok(all)
    }

    fn accepts(&self, _: &Candidate) -> bool {
        true
    }
}

impl Known<'_> {
    fn seed(&self, candidate: &Candidate, seed: u64) -> Vec<f64> {
        let positions: Vec<f64> = (0..self.space.tunables().len())
            .map(|setting| self.space.position(candidate, setting))
            .collect();
        let own = self
            .space
            .key(candidate)
            .bytes()
            .fold(seed + 1, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        let noise = |seed| fastrand::Rng::with_seed(seed).f64() - 0.5;
        let delay =
            (self.delay)(&positions) + self.noise.0 * noise(seed) + self.noise.1 * noise(own);
        let overhead = 2.0 - positions[0];
        let mut figures = vec![delay, overhead, delay];
        figures.extend(self.limited.then_some(overhead));
        figures
    }
}

/// A time, a number, a word and a flag, from the worst corner.
fn space() -> Space {
    let of = |key, range| Tunable { key, range };
    let tunables = vec![
        of(
            "time",
            TunableRange::Time {
                low_ms: 10,
                high_ms: 1000,
            },
        ),
        of(
            "number",
            TunableRange::Integer {
                low: 0,
                high: 100,
                by_ratio: false,
            },
        ),
        of("word", TunableRange::Choice(&["a", "b", "c"])),
        of("idle", TunableRange::Flag),
    ];
    let start = |name: &str, time: &str, number: u32| Start {
        name: name.to_owned(),
        own: [json!(time), json!(number), json!("a"), json!(false)]
            .map(Some)
            .to_vec(),
    };
    let starts = vec![start("as it is", "1 s", 100), start("other", "500 ms", 90)];
    Space::new(tunables, starts)
}

/// Least at 100 ms, 30, "b"; the flag does nothing.
fn bowl(at: &[f64]) -> f64 {
    let is_b = (0.34..0.67).contains(&at[2]);
    let word = if is_b { 0.0 } else { 40.0 };
    50.0 + 200.0 * (at[0] - 0.5).powi(2) + 200.0 * (at[1] - 0.3).powi(2) + word
}

fn aim() -> Aim {
    Aim::new("p90".parse().unwrap(), Vec::new()).unwrap()
}

fn known(space: &Space, noise: (f64, f64)) -> Known<'_> {
    Known {
        space,
        delay: bowl,
        noise,
        limited: false,
        plays: 0,
        most: usize::MAX,
    }
}

const EXTENT: Extent = Extent {
    candidates: 60,
    seeds: 18,
    seed: 1,
};

/// A search draws, so it may miss, as 14 of 20,000 did that found nothing below 65: what is
/// held is what most of them find.
#[test]
fn the_best_of_a_known_function_is_found_under_noise() {
    const SEARCHES: usize = 200;
    let space = space();
    let founds = (0..SEARCHES as u64).map(|seed| {
        // What a seed does to all is more than what settings do.
        let mut play = known(&space, (1000.0, 5.0));
        let extent = Extent { seed, ..EXTENT };
        let found = search(&space, &aim(), extent, &mut play).unwrap();
        assert!(play.plays <= most_plays(extent));
        assert!(found.trials.len() <= extent.candidates);
        let best = &found.trials[found.best].candidate;
        let at: Vec<f64> = (0..4)
            .map(|setting| space.position(best, setting))
            .collect();
        bowl(&at)
    });
    let mut founds: Vec<f64> = founds.collect();
    founds.sort_by(f64::total_cmp);
    let (half, most) = (founds[SEARCHES / 2], founds[SEARCHES * 19 / 20]);
    assert!(half < 52.0 && most < 56.0, "{half}, {most}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_lane_as_it_is_comes_first_and_plays_all_seeds(
        seed in any::<u64>(),
        seeds in 2_usize..30,
    ) {
        let space = space();
        let extent = Extent { seed, seeds, candidates: 20 };
        let found = search(&space, &aim(), extent, &mut known(&space, (10.0, 5.0))).unwrap();
        prop_assert_eq!(&found.trials[0].candidate, &space.start(0));
        prop_assert_eq!(found.trials[0].seeds.len(), seeds);
        prop_assert_eq!(&found.trials[1].candidate, &space.start(1));
        prop_assert_eq!(found.trials[found.best].seeds.len(), seeds);
        prop_assert!(rungs(seeds).windows(2).all(|pair| pair[0] < pair[1]));
    }
}

proptest! {
    #[test]
    fn no_point_is_better_than_one_of_the_frontier_and_each_other_is_worse_than_one(
        points in proptest::collection::vec((0_u8..20, 0_u8..20), 0..40),
        most in 2_usize..10,
    ) {
        let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.into(), y.into())).collect();
        let chosen = frontier(&points);
        for (place, point) in points.iter().enumerate() {
            let covers = |of: &usize| points[*of].0 <= point.0 && points[*of].1 <= point.1;
            prop_assert!(chosen.iter().any(covers), "{place}");
            let is_better = |of: &usize| covers(of) && points[*of] != *point;
            prop_assert!(!chosen.contains(&place) || !chosen.iter().any(is_better), "{place}");
        }
        let ordered = |pair: &[usize]| points[pair[0]].0 < points[pair[1]].0;
        prop_assert!(chosen.windows(2).all(ordered));
        let few = thinned(&chosen, most);
        prop_assert!(few.len() <= most.max(chosen.len().min(most)));
        prop_assert_eq!(few.first(), chosen.first());
        prop_assert_eq!(few.last(), chosen.last());
    }
}

#[test]
fn the_same_seed_finds_the_same_and_no_candidate_is_tried_twice() {
    let space = space();
    let find = || search(&space, &aim(), EXTENT, &mut known(&space, (100.0, 50.0))).unwrap();
    let (once, again) = (find(), find());
    assert_eq!(once.trials, again.trials);
    assert_eq!(once.best, again.best);
    let trials = once.trials.iter();
    let keys: BTreeSet<String> = trials.map(|trial| space.key(&trial.candidate)).collect();
    assert_eq!(keys.len(), once.trials.len());
}

#[test]
fn limits_are_kept_before_the_goal_is_looked_at() {
    let space = space();
    let limit = serde_json::from_value(json!({ "metric": "overhead", "at_most": 1.2 })).unwrap();
    let aim = Aim::new("p90".parse().unwrap(), vec![limit]).unwrap();
    let mut play = known(&space, (100.0, 5.0));
    play.limited = true;
    let found = search(&space, &aim, EXTENT, &mut play).unwrap();
    // Overhead is 2 less the first setting's position, whose best would be a half.
    let best = &found.trials[found.best].candidate;
    assert!(space.position(best, 0) >= 0.8 - 1e-9, "{best:?}");
}

#[test]
fn what_matters_comes_first_and_what_does_nothing_is_put_back() {
    let space = space();
    let mut play = known(&space, (100.0, 0.0));
    // "idle" was changed, and does nothing.
    let candidate = space.at(0, &[0.5, 0.3, 0.5, 1.0]);
    let seeds = play.play(&[(&candidate, 0..18)]).unwrap().remove(0);
    let best = Trial { candidate, seeds };
    let found = sensitivity(&space, &aim(), &best, 6, &mut play).unwrap();
    let order: Vec<&str> = found
        .iter()
        .map(|each| space.tunables()[each.setting].key)
        .collect();
    assert_eq!(order, ["number", "time", "word", "idle"]);
    assert!(found[3].swing.abs() < 1e-9);
    let simple = simplified(&aim(), &best, &found, &mut play).unwrap();
    assert_eq!(simple.candidate.values[3], None, "idle is as it was");
    assert!(simple.candidate.values[..3].iter().all(Option::is_some));
}

#[test]
fn a_search_that_is_stopped_says_so() {
    let space = space();
    let mut play = known(&space, (0.0, 0.0));
    play.most = 50;
    let stopped = search(&space, &aim(), EXTENT, &mut play);
    assert_eq!(stopped.map(|found| found.best), Err(Stopped));
}

/// A lane of 20 seeds, whose messages are late by luck that lanes share and by luck of
/// its own.
fn random_lane(first_seed: u64, own: u64) -> Lane {
    let runs: Vec<(u64, Vec<MessageRecord>)> = (first_seed..first_seed + 20)
        .map(|seed| {
            let bad = fastrand::Rng::with_seed(seed).f64() * 0.2;
            let mut noise = fastrand::Rng::with_seed(seed.wrapping_mul(31).wrapping_add(own));
            let records = (0..100).map(|index| {
                let intended = Time::from_millis(index * 50);
                let is_late = noise.f64() < bad;
                let rtt = Duration::from_millis(if is_late { 400 } else { 60 });
                MessageRecord {
                    returned: Some(intended + rtt),
                    ..MessageRecord::due(intended)
                }
            });
            (seed, records.collect())
        })
        .collect();
    let runs: Vec<SeedRun<'_>> = runs
        .iter()
        .map(|(seed, records)| SeedRun {
            seed: *seed,
            records,
            disturbed: &[],
            overhead: Some(1.5),
            cost: None,
            game: None,
            flows: None,
        })
        .collect();
    figures(&runs, &[], Some(Duration::from_millis(170))).into_lane("lane", "x")
}

/// Where all settings are equal, the best of many seems better on the seeds it was
/// chosen by. On others it is said to be different at most once in twenty times.
#[test]
fn equal_settings_are_not_said_to_be_better() {
    let metric = Metric::Within(150);
    let share = |lane: &Lane| metric.of(lane).unwrap();
    let rounds = 120;
    let (mut seemed, mut claimed) = (0, 0);
    for round in 0..rounds {
        let searched = 1_000 * round;
        let shares: Vec<f64> = (0..6)
            .map(|own| share(&random_lane(searched, own)))
            .collect();
        let best = (1..6)
            .max_by(|&a, &b| shares[a].total_cmp(&shares[b]))
            .unwrap();
        seemed += u32::from(shares[best] > shares[0]);
        let held_out = searched + 500;
        let (before, found) = (random_lane(held_out, 0), random_lane(held_out, best as u64));
        let difference = mixed_difference(metric, &[(1.0, &found, &before)]).unwrap();
        claimed += u32::from(difference.p_value(0.0) <= 0.05);
    }
    assert!(
        seemed > 80,
        "nothing was overfitted, so this shows nothing: {seemed}"
    );
    // Six of 120 are expected; more than 14 come once in a thousand times.
    assert!(claimed <= 14, "{claimed} of {rounds}");
}

#[test]
fn figures_of_a_seed_are_those_that_a_lane_of_it_has() {
    let records: Vec<MessageRecord> = (0..400)
        .map(|index| {
            let intended = Time::from_millis(index * 50);
            let rtt = Duration::from_millis(60 + index % 7 * 40);
            MessageRecord {
                returned: (index % 50 != 3).then(|| intended + rtt),
                ..MessageRecord::due(intended)
            }
        })
        .collect();
    let run = SeedRun {
        seed: 1,
        records: &records,
        disturbed: &[],
        overhead: Some(1.5),
        cost: None,
        game: None,
        flows: None,
    };
    let threshold = Some(Duration::from_millis(170));
    let of_seed = seed_figures(&run, &[Metric::Within(175)], threshold);
    let lane = figures(&[run, run], &[Metric::Within(175)], threshold);
    assert_eq!(of_seed, lane.per_seed[0]);
    let aim = Aim::new(Metric::Within(175), Vec::new()).unwrap();
    let figures = aim.figures(&of_seed);
    assert_eq!(figures[Aim::OVERHEAD].to_bits(), 1.5_f64.to_bits());
    assert!(figures[Aim::GOAL] > 0.3 && figures[Aim::GOAL] < 0.6);
}
