//! [`Time`]: an instant of a run, in nanoseconds since its beginning.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant of a run: nanoseconds since the run began, virtual or real.
///
/// The range is 584 years. Arithmetic saturates at both ends, so that "the
/// deadline that never comes" may be written as [`Time::MAX`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(u64);

impl Time {
    /// The instant at which the run begins.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that can be met.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the run began.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the run began.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the run began.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The instant `secs` seconds after the run began.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the run began.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the run began.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds since the run began.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds since the run began.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time that has passed since `earlier`; zero if it has not come yet.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The first instant at or after this one that is a whole number of
    /// `step`s after the run began. A zero step changes nothing.
    #[must_use]
    pub fn round_up_to(self, step: Duration) -> Self {
        let step = nanos(step);
        if step == 0 {
            return self;
        }
        Self(self.0.div_ceil(step).saturating_mul(step))
    }
}

/// The nanoseconds of a duration, saturating after 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.6} s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn rounding_up_keeps_an_instant_that_is_on_the_grid() {
        let step = Duration::from_millis(16);
        assert_eq!(
            Time::from_millis(32).round_up_to(step),
            Time::from_millis(32)
        );
        assert_eq!(
            Time::from_micros(32_001).round_up_to(step),
            Time::from_millis(48)
        );
        assert_eq!(
            Time::from_micros(7).round_up_to(Duration::ZERO),
            Time::from_micros(7)
        );
    }
}
