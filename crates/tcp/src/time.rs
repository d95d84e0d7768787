//! Time as the kernel keeps it: nanoseconds for stamps and pacing, ticks of
//! `HZ` for timers, and the coarse buckets in which timers wait.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A point in time: nanoseconds since an origin the caller chooses. Only
/// differences matter; it must not run backwards between calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The instant so many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// The instant so many milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the origin, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanoseconds))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / SECOND_NS, self.0 % SECOND_NS)
    }
}

/// The ticks (jiffies) of one kernel: how many a second, and whether timers
/// wait in the kernel's wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    hz: u64,
    wheel: bool,
}

impl Ticks {
    /// Ticks of `hz` a second (1 to 1,000,000).
    pub(crate) fn new(hz: u32, wheel: bool) -> Self {
        Self {
            hz: u64::from(hz.clamp(1, 1_000_000)),
            wheel,
        }
    }

    /// Ticks a second.
    pub(crate) const fn hz(self) -> u64 {
        self.hz
    }

    /// Ticks that have passed at `now`.
    pub(crate) const fn at(self, now: Instant) -> u64 {
        let whole = now.0 / SECOND_NS * self.hz;
        whole + now.0 % SECOND_NS * self.hz / SECOND_NS
    }

    /// Microseconds as ticks, rounded up (Linux 6.1 `usecs_to_jiffies`).
    pub(crate) const fn of_micros(self, microseconds: u64) -> u64 {
        (microseconds * self.hz).div_ceil(1_000_000)
    }

    /// Milliseconds as ticks, rounded up.
    pub(crate) const fn of_millis(self, milliseconds: u64) -> u64 {
        (milliseconds * self.hz).div_ceil(1_000)
    }

    /// A duration as ticks, rounded up.
    pub(crate) fn of_duration(self, time: Duration) -> u64 {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 2_000_000);
        self.of_micros(microseconds.min(u64::MAX / 2_000_000))
    }

    /// Ticks as microseconds.
    pub(crate) const fn to_micros(self, ticks: u64) -> u64 {
        ticks * 1_000_000 / self.hz
    }

    /// When a timer that expires at the tick `expires` fires, if the wheel stands at
    /// the tick `now` when it is armed.
    ///
    /// Without the wheel: at the beginning of that tick. With it (Linux 6.1
    /// `calc_wheel_index`): rounded up to the next bucket of the level that
    /// holds so distant a timer, 1 tick for less than 63 ticks, 8 for less than
    /// 504, and so on by factors of 8, so that it never fires early.
    pub(crate) fn fires(self, now: u64, expires: u64) -> Instant {
        if !self.wheel {
            return self.begin(expires);
        }
        let Some(distance) = expires.checked_sub(now) else {
            return self.begin(now);
        };
        let level = (0..8)
            .find(|level| distance < 63 << (3 * level))
            .unwrap_or(8);
        let bucket = ((expires >> (3 * level)) + 1) << (3 * level);
        self.begin(bucket)
    }

    /// The first instant of a tick.
    const fn begin(self, tick: u64) -> Instant {
        let whole = (tick / self.hz).saturating_mul(SECOND_NS);
        Instant(whole.saturating_add((tick % self.hz * SECOND_NS).div_ceil(self.hz)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Instant, Ticks};

    #[test]
    fn a_tick_begins_where_the_one_before_ends() {
        for hz in [100, 250, 1000, 300] {
            let ticks = Ticks::new(hz, false);
            for tick in [0, 1, 7, 299, 300, 100_000] {
                let begin = ticks.fires(0, tick);
                assert_eq!(ticks.at(begin), tick);
                if tick > 0 {
                    assert_eq!(
                        ticks.at(Instant::from_nanos(begin.as_nanos() - 1)),
                        tick - 1
                    );
                }
            }
        }
    }

    #[test]
    fn microseconds_round_up_to_ticks() {
        let ticks = Ticks::new(250, false);
        assert_eq!(ticks.of_micros(0), 0);
        assert_eq!(ticks.of_micros(1), 1);
        assert_eq!(ticks.of_micros(4_000), 1);
        assert_eq!(ticks.of_micros(4_001), 2);
        assert_eq!(ticks.of_millis(200), 50);
    }

    #[test]
    fn the_wheel_never_fires_early_and_at_most_an_eighth_late() {
        let ticks = Ticks::new(1000, true);
        for now in [0, 5, 1_001] {
            for distance in [0, 1, 40, 62, 63, 200, 503, 504, 3_000, 120_000] {
                let fires = ticks.at(ticks.fires(now, now + distance));
                assert!(fires > now + distance);
                assert!(
                    fires <= now + distance + 1 + distance / 7,
                    "{distance}: {fires}"
                );
            }
        }
        assert_eq!(ticks.fires(0, 200), Instant::from_millis(208));
    }
}
