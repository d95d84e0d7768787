//! Random experiments, drawn from a seed, with checkers on: whatever the
//! network does, no transport may break what it promises.
//!
//! A failing seed is printed with the one command that replays it.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use lagometer_lab::{
    Experiment, LaneEnd, LaneOutcome, LaneRun, Resolved, RunOptions, play, resolve,
};
use lagometer_link::Profile;
use lagometer_results::MessageRecord;
use lagometer_testbed::Testbed;
use lagometer_transport::presets;
use lagometer_units::{SplitMix64, Time};

/// Seeds played where nothing else is asked for.
const SEEDS: u64 = 60;

#[test]
fn no_transport_breaks_its_promises_on_any_network() {
    let seeds = match std::env::var("LAGOMETER_SWARM_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("LAGOMETER_SWARM_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let mut broken = String::new();
    for seed in seeds {
        for promise in play_one(seed) {
            let _ = writeln!(
                broken,
                "seed {seed}: {promise}\n  replay: LAGOMETER_SWARM_SEED={seed} cargo test -p lagometer-lab --test swarm"
            );
        }
    }
    assert!(broken.is_empty(), "\n{broken}");
}

/// Plays one random experiment; returns the promises that were broken.
fn play_one(seed: u64) -> Vec<String> {
    let mut draw = Draw::new(seed);
    let profile_text = random_profile(&mut draw);
    let experiment_text = random_experiment(&mut draw, seed);
    let profile = Profile::from_text("swarm network", &profile_text)
        .unwrap_or_else(|error| panic!("{error}\n{profile_text}"));
    let floor = profile.base_rtt();
    let experiment = Experiment::parse("swarm", &experiment_text)
        .unwrap_or_else(|error| panic!("{error}\n{experiment_text}"));
    let resolved = resolve(experiment, "swarm".to_owned(), profile, Testbed::Sim)
        .unwrap_or_else(|error| panic!("{error}\n{experiment_text}"));
    let options = RunOptions {
        seeds: vec![seed],
        threads: 2,
    };
    let runs = play(&resolved, &options, &|_| {}, &AtomicBool::new(false));
    let mut broken = Vec::new();
    for (lane, run) in resolved.lanes.iter().zip(&runs[0].lanes) {
        let mut say = |what: String| {
            broken.push(format!(
                "{}: {what}\n{profile_text}\n{experiment_text}",
                lane.name
            ));
        };
        let outcome = match run {
            LaneRun::Played(outcome) => outcome,
            LaneRun::Cut(..) => {
                say("did not play to its end".to_owned());
                continue;
            }
            LaneRun::Panicked(why) | LaneRun::Unopened(why) => {
                say(format!("panicked: {why}"));
                continue;
            }
        };
        let promised = lane.transport.properties();
        let wrong = outcome.misdeliveries;
        if wrong.damaged > 0 || wrong.duplicated > 0 {
            say(format!("{wrong:?}"));
        }
        if promised.ordered && wrong.out_of_order > 0 {
            say(format!("{} messages overtook others", wrong.out_of_order));
        }
        if outcome.records.len() != expected_messages(&resolved) {
            say(format!("{} messages have a record", outcome.records.len()));
        }
        let too_fast = outcome
            .records
            .iter()
            .filter_map(MessageRecord::rtt)
            .find(|&rtt| rtt < floor);
        if let Some(rtt) = too_fast {
            say(format!(
                "an echo came back in {rtt:?}, faster than the path's {floor:?}"
            ));
        }
        let out_of_time = outcome.records.iter().any(|record| {
            let in_order = [
                Some(record.intended),
                record.accepted,
                record.arrived,
                record.returned,
            ];
            !in_order.into_iter().flatten().is_sorted()
        });
        if out_of_time {
            say("a message arrived before it was sent".to_owned());
        }
        match &outcome.end {
            Some(LaneEnd::NoProgress) => say("the endpoint spins".to_owned()),
            Some(LaneEnd::NeverReady) => say("no connection on the calm link".to_owned()),
            Some(LaneEnd::Done) if promised.reliable && gave_up(outcome) => {
                say("a reliable transport lost messages though its connection stood".to_owned());
            }
            _ => {}
        }
    }
    broken
}

fn expected_messages(resolved: &Resolved) -> usize {
    resolved.plan.messages() as usize
}

/// Whether messages that were taken are missing although the grace period was
/// long enough for any backlog.
fn gave_up(outcome: &LaneOutcome) -> bool {
    outcome
        .records
        .iter()
        .any(|record| record.accepted.is_some() && record.returned.is_none())
}

/// A network with a random choice of everything that can go wrong.
fn random_profile(draw: &mut Draw) -> String {
    let mut text = String::from("summary = \"drawn from a seed\"\n");
    for way in ["up", "down"] {
        let _ = writeln!(text, "\n[{way}]\ndelay = \"{} ms\"", draw.between(0, 150));
        if draw.one_in(2) {
            let _ = writeln!(
                text,
                "jitter = {{ distribution = \"pareto\", mean = \"{} ms\"{}, maximum = \"{} ms\", reorder = {} }}",
                draw.between(1, 30),
                if draw.one_in(2) {
                    ", correlation = \"40 ms\""
                } else {
                    ""
                },
                draw.between(40, 200),
                draw.one_in(2),
            );
        }
        if draw.one_in(2) {
            let _ = writeln!(text, "loss = \"{} %\"", draw.between(0, 15));
        }
        if draw.one_in(3) {
            let _ = writeln!(
                text,
                "bursts = {{ mean_good = \"{} ms\", mean_bad = \"{} ms\", loss_bad = \"{} %\" }}",
                draw.between(500, 5000),
                draw.between(10, 400),
                draw.between(20, 100),
            );
        }
        if draw.one_in(3) {
            let _ = writeln!(
                text,
                "rate = \"{} kbit/s\"\nqueue = \"{} ms\"",
                draw.between(1500, 20_000),
                draw.between(50, 500)
            );
        }
        if draw.one_in(3) {
            let _ = writeln!(
                text,
                "duplication = {{ share = \"{} %\", apart = \"3 ms\" }}",
                draw.between(1, 20)
            );
        }
        if draw.one_in(3) {
            let _ = writeln!(
                text,
                "reordering = {{ share = \"{} %\", extra = \"60 ms\" }}",
                draw.between(1, 20)
            );
        }
        if draw.one_in(3) {
            let _ = writeln!(text, "corruption = \"{} %\"", draw.between(1, 10));
        }
        if draw.one_in(3) {
            let _ = writeln!(
                text,
                "outages = [{{ mean_gap = \"5 s\", for = \"{} ms\" }}]",
                draw.between(50, 1500)
            );
        }
        if draw.one_in(3) {
            let _ = writeln!(
                text,
                "stalls = [{{ mean_gap = \"4 s\", mean_for = \"{} ms\" }}]",
                draw.between(50, 800)
            );
        }
    }
    text
}

/// Three lanes with random traffic for a few seconds, and a grace period that
/// outlasts any backlog.
fn random_experiment(draw: &mut Draw, seed: u64) -> String {
    let mut names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    let lanes: Vec<String> = (0..3)
        .map(|_| {
            format!(
                "\"{}\"",
                names.swap_remove(draw.below(names.len() as u64) as usize)
            )
        })
        .collect();
    let mut text = format!(
        "name = \"swarm\"\nsummary = \"drawn from a seed\"\nnetwork = \"drawn\"\nseed = {seed}\n\
         for = \"{} s\"\ngrace = \"10 min\"\nlanes = [{}]\n\n[workload.paced-echo]\n\
         size = \"{} B\"\ninterval = \"{} ms\"\n",
        draw.between(4, 12),
        lanes.join(", "),
        draw.between(8, 1000),
        draw.between(10, 100),
    );
    if draw.one_in(4) {
        let _ = writeln!(text, "tick = \"{} ms\"", draw.between(5, 40));
    }
    text
}

/// Numbers from a seed.
struct Draw(SplitMix64);

impl Draw {
    const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

#[test]
fn a_lane_plays_the_same_however_it_is_sliced() {
    let text = random_profile(&mut Draw::new(3));
    let profile = Profile::from_text("slices", &text).unwrap();
    let experiment = Experiment::parse("slices", &random_experiment(&mut Draw::new(3), 3)).unwrap();
    let resolved = resolve(experiment, "slices".to_owned(), profile, Testbed::Sim).unwrap();
    let lane = &resolved.lanes[0];
    let start = || {
        let plan = &resolved.plan;
        let link = lagometer_link::Link::new(
            &resolved.profile,
            plan.seed,
            resolved.regime,
            plan.measuring_starts(),
        );
        let spec = lane.transport.endpoint().unwrap();
        lagometer_lab::sim::SimLane::new(plan, spec, link)
    };
    let mut whole = start();
    whole.run_until(Time::MAX);
    let mut sliced = start();
    let mut limit = Time::ZERO;
    while !sliced.run_until(limit) {
        limit += std::time::Duration::from_micros(1_717_171);
    }
    assert_eq!(whole.outcome().records, sliced.outcome().records);
    assert_eq!(whole.outcome().wire, sliced.outcome().wire);
}
