//! The threads that UDT makes for one UDP socket, and what they cost.

use std::time::Duration;

use crate::foreign;

/// The owner of the threads of one UDP socket, in the shim's book.
#[derive(Debug)]
pub(crate) struct Threads {
    owner: u64,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self {
            owner: foreign::owner_new(),
        }
    }

    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    /// The processor time they have used, those included that have ended.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(foreign::owner_cpu_ns(self.owner))
    }

    /// How many of them are alive.
    pub(crate) fn alive(&self) -> usize {
        foreign::owner_threads(self.owner)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        foreign::owner_forget(self.owner);
    }
}
