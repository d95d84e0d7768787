//! Real time for the instruments, and the time a thread has had a processor.

use std::time::{Duration, Instant};

use lagometer_units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Counts from the instant at which it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> Time {
        let elapsed = self.origin.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

/// The processor time that the calling thread has had, in the kernel too.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
