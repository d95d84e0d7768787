//! Real time as instants of a run.

use std::time::Instant;

use crate::Time;

/// The system's monotonic clock, counted from [`Clock::start`]. Copies agree
/// with each other. Setting the time of day does not move it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock: it is [`Time::ZERO`] now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// How late it is.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }
}
