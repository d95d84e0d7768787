//! Our KCP engine with the rules of 2015 against the C source of that year: the same
//! datagrams at the same times, byte for byte.
//!
//! That source is in no package. `LAGOMETER_KCP_2015` names shared libraries of it,
//! separated by colons; without it nothing is compared, and `check` names the test
//! among what was left out.
//! `LAGOMETER_KCP_SEED=n` replays one seed; `LAGOMETER_KCP_RUNS=n` plays as many.

mod support;

use std::env;
use std::path::Path;

use kcp_oracle::Reference;
use support::scenario::play_against;
use support::stats::{BRANCHES, ScenarioStats};

const RUNS: u64 = 2_000;

#[test]
fn every_conversation_is_that_of_2015() {
    let Some(libraries) = env::var_os("LAGOMETER_KCP_2015") else {
        println!("skipped: LAGOMETER_KCP_2015 names no library of KCP's source of 2015");
        return;
    };
    for library in env::split_paths(&libraries) {
        let reference = Reference::load_2015(&library).unwrap_or_else(|why| panic!("{why}"));
        compare(reference, &library);
    }
}

fn compare(reference: Reference, library: &Path) {
    let name = library.display();
    if let Some(seed) = number_from("LAGOMETER_KCP_SEED") {
        let stats = play_against(reference, seed)
            .unwrap_or_else(|difference| panic!("{name}: {}", difference.0));
        println!("{name}, seed {seed}: {stats:?}");
        return;
    }
    let runs = number_from("LAGOMETER_KCP_RUNS").unwrap_or(RUNS);
    let mut total = ScenarioStats::default();
    let mut failures = Vec::new();
    for seed in 0..runs {
        match play_against(reference, seed) {
            Ok(stats) => total.add(stats),
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
}

fn number_from(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}
