//! Our KCP engine against the C reference: the same datagrams at the same
//! times, byte for byte, over thousands of seeded conversations.
//!
//! `LAGOMETER_KCP_SEED=n` replays one seed; `LAGOMETER_KCP_RUNS=n` plays as
//! many, from seed 0.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use support::scenario::play;
use support::stats::{BRANCHES, ScenarioStats};

const RUNS: u64 = 10_000;
const THREADS: u64 = 2;

#[test]
fn every_conversation_is_the_reference_s() {
    if let Some(seed) = number_from("LAGOMETER_KCP_SEED") {
        let stats = play(seed).unwrap_or_else(|difference| panic!("{}", difference.0));
        println!("seed {seed}: {stats:?}");
        return;
    }
    let runs = number_from("LAGOMETER_KCP_RUNS").unwrap_or(RUNS);
    let share = |thread: u64| -> (ScenarioStats, Vec<String>) {
        let mut total = ScenarioStats::default();
        let mut failures = Vec::new();
        for seed in (thread..runs).step_by(THREADS as usize) {
            match catch_unwind(AssertUnwindSafe(|| play(seed))) {
                Ok(Ok(stats)) => total.add(stats),
                Ok(Err(difference)) => failures.push(replay(seed, &difference.0)),
                Err(_) => failures.push(replay(seed, "a panic, reported above")),
            }
        }
        (total, failures)
    };
    let (total, failures) = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || share(thread)))
            .collect();
        let mut total = ScenarioStats::default();
        let mut failures = Vec::new();
        for worker in workers {
            let (stats, failed) = worker.join().expect("panics are caught inside");
            total.add(stats);
            failures.extend(failed);
        }
        (total, failures)
    });
    println!("{runs} conversations: {total:?}");
    assert!(
        failures.is_empty(),
        "{} of {runs} conversations differ; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
    // Each is accounted for: all arrived, or nothing can be said, or timeouts are
    // hours away, of few.
    assert_eq!(total.complete + total.damaged + total.late, runs);
    assert!(total.dead > 0 && 20 * total.late < runs, "{total:?}");
    for (branch, reached) in BRANCHES.iter().zip(total.reached) {
        println!("{reached:>9} {branch}");
        assert!(runs < RUNS || reached >= 100, "{branch}: {reached}");
    }
}

fn replay(seed: u64, what: &str) -> String {
    let (package, test) = (env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"));
    format!("LAGOMETER_KCP_SEED={seed} cargo test -p {package} --test {test}  # {what}")
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
