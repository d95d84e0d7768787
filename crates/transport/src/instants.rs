//! Between a run's [`Time`] and the [`Instant`]s that some libraries insist
//! on.
//!
//! An `Instant` can only be had from the operating system's clock, so one is
//! taken, once for each process, as the instant at which every run begins.
//! Only differences from it are ever looked at: no result depends on when it
//! was taken, and nothing else in this crate asks a clock.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lagometer_units::Time;

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The longest span added to the origin, so that libraries may add timeouts
/// of their own without overflow: 100 years.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// The `Instant` that stands for `time`.
pub(crate) fn to_instant(time: Time) -> Instant {
    *ORIGIN + time.since(Time::ZERO).min(LONGEST)
}

/// The time that `instant` stands for; the beginning of the run for instants
/// before it.
pub(crate) fn to_time(instant: Instant) -> Time {
    Time::ZERO + instant.saturating_duration_since(*ORIGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_the_way_there_and_back() {
        for nanos in [0, 1, 999_999_999, 3_600_000_000_001] {
            let time = Time::from_nanos(nanos);
            assert_eq!(to_time(to_instant(time)), time);
        }
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        assert!(to_time(to_instant(Time::MAX)) > Time::from_secs(1 << 31));
    }
}
