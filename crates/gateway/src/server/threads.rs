//! Processors for threads, and files for connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors this process may run on.
pub(super) fn processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&processor| allowed.is_set(processor))
        .collect()
}

/// Keeps the calling thread on one processor. If the system does not allow it,
/// the thread runs where the system likes.
pub(super) fn pin(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    let _ = sched_setaffinity(None, &only);
}

/// Asks for as many files as the system allows; each connection is one.
/// Returns how many that is.
pub(super) fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
