//! Real time for the instruments.

use lagometer_units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Counts from the instant at which it was made. The system is asked without
/// the C library between: where a clock is read for every echo that shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin_ns: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            origin_ns: monotonic_ns(),
        }
    }

    #[inline]
    pub(crate) fn now(self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.origin_ns))
    }
}

/// Nanoseconds since some instant before the process.
#[inline]
fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Both are what the clock has shown since the system started.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
