//! Between a run's [`Time`] and the [`Instant`]s that some libraries insist
//! on.
//!
//! An `Instant` can only be had from the operating system's clock, so one is
//! taken, once for each process. Only differences from it are ever looked at:
//! no result depends on when it was taken, and nothing else in this crate
//! asks a clock.
//!
//! A library may still ask on its own. (`sctp-proto` 0.10.8 starts the timer
//! of its first packet by the real clock.) So every run begins ten years after
//! the instant that was taken: whatever such a library sets by the real clock
//! is long past at any time of any run, the same every time, instead of a
//! little sooner or later.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lagometer_units::Time;

/// The instant at which every run begins.
static ORIGIN: LazyLock<Instant> = LazyLock::new(|| Instant::now() + AHEAD);

/// How far runs are ahead of the real clock: ten years.
const AHEAD: Duration = Duration::from_hours(10 * 365 * 24);

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

    #[test]
    fn the_real_clock_is_before_every_run() {
        assert_eq!(to_time(Instant::now()), Time::ZERO);
        assert!(Instant::now() < to_instant(Time::ZERO));
    }
}
