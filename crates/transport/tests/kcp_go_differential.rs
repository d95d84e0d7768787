//! Our kcp-go profile against kcp-go 5.4.20 itself: whole sessions, timers and
//! blocked writes included, over a seeded path that loses, delays, reorders and
//! duplicates. The same datagrams at the same nanoseconds, byte for byte.
//!
//! kcp-go is not part of this repository: a program of ours
//! (`kcp_go_oracle/`) fetches the module and plays two of its sessions in the
//! virtual time of Go's `testing/synctest`. Without Go the test is skipped,
//! unless `LAGOMETER_REQUIRE_GO` is set.
//!
//! `LAGOMETER_KCP_SEED=n` replays one seed; `LAGOMETER_KCP_RUNS=n` plays as
//! many, from seed 0.

mod kcp_go_support;

use std::thread;

use kcp_go_support::oracle::{Oracle, build_oracle};
use kcp_go_support::play::play;
use kcp_go_support::script::Script;
use kcp_go_support::{Sent, Totals, difference};

const RUNS: u64 = 2_000;
const THREADS: u64 = 2;

#[test]
fn every_session_sends_what_a_kcp_go_session_sends() {
    let Some(program) = build_oracle() else {
        return;
    };
    if let Some(seed) = number_from("LAGOMETER_KCP_SEED") {
        let mut oracle = Oracle::start(&program, vec![seed]);
        let script = Script::of(seed);
        println!("{}", script.line());
        let (ours, theirs) = (play(&script), oracle.next());
        if let Some(text) = difference(&ours, &theirs) {
            panic!("seed {seed}: {text}");
        }
        println!("seed {seed}: {} datagrams", theirs.len());
        return;
    }
    let runs = number_from("LAGOMETER_KCP_RUNS").unwrap_or(RUNS);
    let share = |thread: u64| {
        let seeds: Vec<u64> = (thread..runs).step_by(THREADS as usize).collect();
        let mut oracle = Oracle::start(&program, seeds.clone());
        let mut totals = Totals::default();
        for seed in seeds {
            let script = Script::of(seed);
            let theirs: Vec<Sent> = oracle.next();
            totals.compare(&script, &play(&script), &theirs);
        }
        totals
    };
    let totals = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || share(thread)))
            .collect();
        let mut totals = Totals::default();
        for worker in workers {
            totals.add(worker.join().expect("a player panicked; see above"));
        }
        totals
    });
    println!("{runs} conversations: {totals:?}");
    assert!(
        totals.failures.is_empty(),
        "{} of {runs} conversations differ; the first:\n{}",
        totals.failures.len(),
        totals.failures[..totals.failures.len().min(5)].join("\n")
    );
    // What is to be the same must have occurred.
    assert!(
        totals.datagrams > 10 * runs
            && 20 * totals.resent > totals.datagrams
            && 20 * totals.parity > totals.datagrams,
        "{totals:?}"
    );
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
