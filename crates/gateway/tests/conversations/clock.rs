//! Clocks of the machine, for budgets of real work alone: nothing in a
//! conversation depends on them.

use std::time::Duration;

use lagometer_units::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Processor time of this thread.
pub(crate) fn processor_time() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// Processor time of this process.
pub(crate) fn processor_time_of_all() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

/// Time since some instant that does not change.
pub(crate) fn monotonic() -> Time {
    Time::ZERO + duration(clock_gettime(ClockId::Monotonic))
}

/// A number that later runs have not had.
pub(crate) fn fresh_seed() -> u64 {
    duration(clock_gettime(ClockId::Realtime)).as_secs() << 20
}

fn duration(spec: Timespec) -> Duration {
    Duration::new(spec.tv_sec as u64, spec.tv_nsec as u32)
}
