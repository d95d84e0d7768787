//! Whoever plays a search finds the same: threads of this machine, or another machine that
//! has of each network and lane what is written of them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lagometer_lab::bundle::Recipe;
use lagometer_lab::saved::SavedSeed;
use lagometer_lab::{Experiment, LaneRun, OwnLane, RunContext, RunOptions, SeedRun, play, resolve};
use lagometer_results::{Document, Host};
use lagometer_testbed::Testbed;
use lagometer_tune::search::Extent;
use lagometer_tune::{
    Aim, Ask, Evaluator, HeldOut, Memory, Network, Runner, Setup, SinglePlay, Stopped, Threads,
    TunableLane, tune,
};
use lagometer_units::Span;
use serde_json::json;

const EXPERIMENT: &str = r#"
name = "searched"
summary = "a short play"
network = "loss-5"
lanes = ["enet"]

[workload.paced-echo]
size = "200 B"
interval = "50 ms"

[[lane]]
name = "small"
transport = "kcp"
size = "61 B"
settings = { send_window = 300 }
"#;

const NETWORKS: [&str; 2] = ["loss-5", "cable"];

fn networks() -> Vec<Network> {
    let mut experiment = Experiment::parse("searched.toml", EXPERIMENT).unwrap();
    // No whole number of milliseconds.
    experiment.duration = Span(Duration::from_micros(1_714_285));
    let network = |name: &str| {
        let experiment = Experiment {
            network: name.to_owned(),
            ..experiment.clone()
        };
        let profile = lagometer_link::catalogue::named(name).unwrap();
        Network {
            name: name.to_owned(),
            weight: 1.0,
            resolved: resolve(experiment, name.to_owned(), profile, Testbed::Sim).unwrap(),
        }
    };
    NETWORKS.map(network).into()
}

/// The document of a search that is played by `runner`, and how many plays it remembers.
fn searched(networks: &[Network], runner: &mut dyn Runner) -> Result<(Document, usize), Stopped> {
    let own = Experiment::parse("searched.toml", EXPERIMENT).unwrap();
    let lanes = ["small", "enet"]
        .map(|name| TunableLane::named(name, &own.own_lanes, Testbed::Sim).unwrap());
    let aim = Aim::new("within 100 ms".parse().unwrap(), Vec::new()).unwrap();
    let ask = Ask {
        lanes: &lanes,
        extent: Extent {
            candidates: 4,
            seeds: 5,
            seed: 1,
        },
        search_seeds: (1..=5).collect(),
        held_out_seeds: (6..=10).collect(),
        held_out: HeldOut::Each,
    };
    let context = || RunContext {
        started: SystemTime::UNIX_EPOCH,
        wall: Duration::ZERO,
        host: Host::default(),
        testbed: Some(Testbed::Sim),
        audit: None,
    };
    let mut memory = Memory::new(&json!("a search"));
    let mut evaluator = Evaluator {
        networks,
        aim: &aim,
        runner,
        memory: &mut memory,
        progress: &|_| (),
        keep: &mut |_| (),
    };
    let document = tune(&mut evaluator, &ask, &context)?;
    Ok((document, memory.len()))
}

/// Plays what it reads of each network and lane, the last play first, a few at once.
struct Elsewhere {
    recipes: Vec<Vec<u8>>,
    /// Plays after which it ends, if it does.
    most: usize,
}

impl Elsewhere {
    fn of(networks: &[Network]) -> Self {
        let recipe = |network: &Network| Recipe::of("0.0.0", &network.resolved).to_bytes();
        Self {
            recipes: networks.iter().map(|it| recipe(it).unwrap()).collect(),
            most: usize::MAX,
        }
    }

    fn run(&self, setup: &Setup, seed: u64) -> LaneRun {
        let recipe = Recipe::from_bytes(&self.recipes[setup.network]).unwrap();
        let text = serde_json::to_string(&setup.written).unwrap();
        let lane = serde_json::from_str(&text).unwrap();
        let resolved = recipe.resolve(Testbed::Sim).unwrap();
        let resolved = resolved.with_lanes(vec![lane], Testbed::Sim).unwrap();
        let options = RunOptions {
            seeds: vec![seed],
            threads: 1,
        };
        let runs = play(&resolved, &options, &|_| (), &AtomicBool::new(false));
        let text = serde_json::to_string(&SavedSeed::from(&runs[0])).unwrap();
        let saved: SavedSeed = serde_json::from_str(&text).unwrap();
        SeedRun::from(saved).lanes.remove(0)
    }
}

impl Runner for Elsewhere {
    fn at_once(&self) -> usize {
        7
    }

    fn play(
        &mut self,
        _: &[Network],
        setups: &[Setup],
        plays: &[SinglePlay],
        found: &(dyn Fn(usize, LaneRun) + Sync),
    ) -> Result<(), Stopped> {
        assert!(plays.len() <= self.at_once());
        for (place, play) in plays.iter().enumerate().rev() {
            self.most = self.most.checked_sub(1).ok_or(Stopped)?;
            found(place, self.run(&setups[play.setup], play.seed));
        }
        Ok(())
    }
}

#[test]
fn who_reads_what_is_written_of_lanes_and_networks_finds_what_threads_find() {
    let networks = networks();
    let (stop, progress) = (AtomicBool::new(false), |_| ());
    let mut threads = Threads {
        threads: 2,
        stop: &stop,
        progress: &progress,
    };
    let (here, plays) = searched(&networks, &mut threads).unwrap();
    let (there, others) = searched(&networks, &mut Elsewhere::of(&networks)).unwrap();
    assert_eq!(here.to_json(), there.to_json());
    assert_eq!(plays, others);
    let lanes: Vec<&str> = here.lanes.iter().map(|lane| lane.lane.as_str()).collect();
    assert!(lanes.contains(&"small-from-others on cable"), "{lanes:?}");
}

#[test]
fn lanes_that_no_experiment_may_have_are_refused() {
    let network = &networks()[0].resolved;
    let refused = |lane: &str| {
        let lane: OwnLane = toml::from_str(lane).unwrap();
        let why = network.with_lanes(vec![lane], Testbed::Sim).unwrap_err();
        why.to_string()
    };
    let too_long = refused("transport = \"kcp\"\nsize = \"1000000 MB\"");
    assert!(too_long.starts_with("`size`: "), "{too_long}");
    let unknown = refused("name = \"x\"\ntransport = \"no-such\"");
    assert!(unknown.starts_with("lane `x`: "), "{unknown}");
}

#[test]
fn a_search_ends_where_whoever_plays_it_cannot_go_on() {
    let networks = networks();
    let mut runner = Elsewhere {
        most: 20,
        ..Elsewhere::of(&networks)
    };
    assert_eq!(searched(&networks, &mut runner).err(), Some(Stopped));
}
