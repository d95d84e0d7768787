//! Runs in virtual time and the documents of what they found.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lagometer_lab::{Resolved, RunContext, RunOptions, SeedRun, assemble, play};
use lagometer_results::{Document, Host};

/// What the experiment finds with these seeds, on so many threads.
///
/// Its context is the same at any time and on any machine, so that documents of
/// equal findings are equal.
#[allow(dead_code, reason = "not every test file lets runs be as they are")]
pub(crate) fn document(resolved: &Resolved, seeds: &[u64], threads: usize) -> Document {
    document_of(resolved, seeds, threads, |_| {})
}

/// The same, where `change` has changed the runs before they are assembled.
pub(crate) fn document_of(
    resolved: &Resolved,
    seeds: &[u64],
    threads: usize,
    change: impl FnOnce(&mut Vec<SeedRun>),
) -> Document {
    let options = RunOptions {
        seeds: seeds.to_vec(),
        threads,
    };
    let mut runs = play(resolved, &options, &|_| {}, &AtomicBool::new(false));
    change(&mut runs);
    let context = RunContext {
        started: SystemTime::UNIX_EPOCH,
        wall: Duration::ZERO,
        host: Host::default(),
        testbed: Some(lagometer_testbed::Testbed::Sim),
        audit: None,
    };
    assemble(resolved, &options.seeds, runs, context)
}
