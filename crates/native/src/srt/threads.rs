//! The threads that SRT makes for one UDP socket, and what they cost.
//!
//! SRT names its threads `SRT:…`. Those that appear while a socket is bound
//! are that socket's; sockets are bound one at a time.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// SRT's threads by number, and the processor time each had when it was last
/// looked at.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    used_ns: Mutex<BTreeMap<u32, u64>>,
}

static BINDING: Mutex<()> = Mutex::new(());

impl Threads {
    /// Does `bind` and takes the threads it made for this socket's.
    pub(crate) fn watch<T, E>(&self, bind: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let _alone = BINDING.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all();
        let bound = bind()?;
        let mut used_ns = self.used_ns.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in all() {
            if !before.contains(&thread) {
                used_ns.insert(thread, 0);
            }
        }
        Ok(bound)
    }

    /// The processor time they have used. Of a thread that has ended, what it
    /// had used when it was last looked at.
    pub(crate) fn cpu(&self) -> Duration {
        let mut used_ns = self.used_ns.lock().unwrap_or_else(PoisonError::into_inner);
        for (thread, used) in used_ns.iter_mut() {
            // Its first number is nanoseconds on a processor.
            let statistics = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
            let now = statistics
                .ok()
                .and_then(|statistics| statistics.split_whitespace().next()?.parse().ok());
            // A number may be given to another thread later, which begins anew.
            *used = (*used).max(now.unwrap_or(0));
        }
        Duration::from_nanos(used_ns.values().sum())
    }
}

/// The threads of this process that carry SRT's name, or that have not had the
/// time to take it: a thread bears its maker's name until it gives itself its
/// own, so every new thread counts.
fn all() -> Vec<u32> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}
