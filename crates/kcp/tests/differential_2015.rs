//! Our KCP engine with the rules of 2015 against the C sources of that year: the same
//! datagrams at the same times, byte for byte.
//!
//! Those sources are in no package. `LAGOMETER_KCP_2015` names shared libraries of them,
//! separated by colons, and with it our engine is held against them. Without them it is
//! held against digests of what it said beside them, seed by seed:
//! `digests_2015/<shortest interval in ms>.txt`, written with `LAGOMETER_BLESS=1` where
//! nothing differed.
//! `LAGOMETER_KCP_SEED=n` replays one seed; `LAGOMETER_KCP_RUNS=n` plays as many.

mod support;

use std::path::{Path, PathBuf};
use std::{env, fs};

use kcp_oracle::Reference;
use lagometer_units::Span;
use support::beside::{Beside, interval_floor, rules_of_2015};
use support::scenario::play_beside;
use support::stats::{BRANCHES, ScenarioStats};

const RUNS: u64 = 2_000;

/// The seeds that have digests, from 0 on.
const DIGESTS: usize = 250;

/// The shortest intervals of the two sources: KCP's own of February 2015, and the one that
/// `asio_kcp` came with in July.
const SHORTEST_INTERVALS_MS: [u64; 2] = [10, 2];

#[test]
fn every_conversation_is_that_of_2015() {
    let Some(libraries) = env::var_os("LAGOMETER_KCP_2015") else {
        println!("LAGOMETER_KCP_2015 names no library of KCP's sources of 2015: digests alone");
        return;
    };
    for library in env::split_paths(&libraries) {
        let reference = Reference::load_2015(&library).unwrap_or_else(|why| panic!("{why}"));
        compare(reference, &library);
    }
}

#[test]
fn every_conversation_says_what_it_said_beside_the_sources_of_2015() {
    for shortest in SHORTEST_INTERVALS_MS.map(Span::from_millis) {
        let path = digests_of(shortest);
        let known = fs::read_to_string(&path).unwrap();
        assert_eq!(known.lines().count(), DIGESTS, "{}", path.display());
        let differ: Vec<u64> = (0..)
            .zip(known.lines())
            .filter(|&(seed, digest)| {
                let played = play_beside(Beside::NothingOf2015, rules_of_2015(shortest), seed);
                played.map_or(true, |played| played.digest != digest)
            })
            .map(|(seed, _)| seed)
            .collect();
        assert!(differ.is_empty(), "{}: seeds {differ:?}", path.display());
    }
}

fn compare(reference: Reference, library: &Path) {
    let name = library.display();
    let shortest = interval_floor(reference);
    let play = |seed| play_beside(Beside::Reference(reference), rules_of_2015(shortest), seed);
    if let Some(seed) = number_from("LAGOMETER_KCP_SEED") {
        let played = play(seed).unwrap_or_else(|difference| panic!("{name}: {}", difference.0));
        println!("{name}, seed {seed}: {:?}", played.stats);
        return;
    }
    let runs = number_from("LAGOMETER_KCP_RUNS").unwrap_or(RUNS);
    let mut total = ScenarioStats::default();
    let mut digests = Vec::new();
    let mut failures = Vec::new();
    for seed in 0..runs {
        match play(seed) {
            Ok(played) => {
                total.add(played.stats);
                digests.push(played.digest + "\n");
            }
            Err(difference) => failures.push(format!("seed {seed}: {}", difference.0)),
        }
    }
    println!("{name}: {runs} conversations: {total:?}");
    assert!(
        failures.is_empty(),
        "{name}: {} of {runs} conversations differ; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
    assert_eq!(total.complete + total.damaged + total.late, runs);
    for (branch, reached) in BRANCHES.iter().zip(total.reached) {
        println!("{reached:>9} {branch}");
        assert!(runs < RUNS || reached >= 100, "{branch}: {reached}");
    }
    if env::var_os("LAGOMETER_BLESS").is_some_and(|set| !set.is_empty()) {
        fs::write(digests_of(shortest), digests[..DIGESTS].concat()).unwrap();
    }
}

/// Where the digests are of the source whose shortest interval is that.
fn digests_of(shortest: Span) -> PathBuf {
    let file = format!("tests/digests_2015/{}.txt", shortest.as_millis_f64());
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn number_from(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}
