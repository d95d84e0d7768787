//! Real time as instants of a run.

use std::time::Instant;

use lagometer_units::Time;

/// A clock that says how long a run has lasted: the system's monotonic clock,
/// counted from [`Clock::start`]. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a run: it is [`Time::ZERO`] now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// How late it is in the run.
    #[must_use]
    pub fn now(&self) -> Time {
        let nanos = self.origin.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
