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

    /// A clock of a gateway that started when the machine's calendar was wrong
    /// by so much, and has been set right since.
    #[cfg(test)]
    pub(super) fn started_too_early_by(error: std::time::Duration) -> Self {
        let now = Self::start();
        Self {
            unix_ns_at_zero: now.unix_ns_at_zero - error.as_nanos() as i64,
            ..now
        }
    }

    /// How long the clock has run.
    pub(super) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The calendar's time now, in seconds since 1970. Unlike everything else
    /// it follows whoever sets the time of the machine: what expires on a date
    /// does so on the date that is right.
    pub(super) fn unix_seconds_now() -> u64 {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        unix.unwrap_or_default().as_secs()
    }

    /// The calendar's time, in nanoseconds since 1970, when the clock began.
    pub(super) fn unix_ns_at_zero(self) -> i64 {
        self.unix_ns_at_zero
    }
}
