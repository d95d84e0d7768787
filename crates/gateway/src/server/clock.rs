//! The one clock of the server: every thread counts from the same instant.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use lagometer_units::Time;

/// A clock that can be handed to every thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: Instant,
    unix_ns_at_zero: i64,
}

impl Clock {
    /// A clock that begins now.
    pub(super) fn start() -> Self {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            origin: Instant::now(),
            unix_ns_at_zero: i64::try_from(unix.as_nanos()).unwrap_or(i64::MAX),
        }
    }

    /// How long the clock has run.
    pub(super) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The calendar's time, in nanoseconds since 1970, when the clock began.
    pub(super) fn unix_ns_at_zero(self) -> i64 {
        self.unix_ns_at_zero
    }
}
