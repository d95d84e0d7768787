//! Real time for the instruments.

use lagometer_platform::monotonic_ns;
use lagometer_units::Time;

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
