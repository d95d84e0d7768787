//! Where a kernel's ticks (jiffies) stand on its clock.
//!
//! Timers of the kernel fire at ticks, and distant ones at every eighth,
//! sixty-fourth, … tick alone (Linux 6.1 `calc_wheel_index`). So when a timer
//! fires depends on the number of the tick at which it was set, and who wants a
//! kernel to do the same twice, or as a simulation does, must begin at a tick
//! whose number is as round.

use std::time::Duration;

use rustix::time::{ClockId, clock_getres, clock_gettime};

use crate::sys::ticks::hundredths;

/// A tick whose number is known, and how long ticks last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Its number.
    pub number: u64,
    /// When it began, by the monotonic clock, in nanoseconds.
    pub began_ns: u64,
    /// From one to the next, in nanoseconds.
    pub length_ns: u64,
}

/// Ticks after which the hundredths have certainly moved, at 1000 Hz.
const MOST_LOOKS: u32 = 64;

impl Ticks {
    /// Finds one, which takes some hundredths of a second. The calling thread
    /// sleeps to the middle of tick after tick, and so must wake within half a
    /// tick of when it wants to.
    ///
    /// Nothing where the kernel does not say how long its ticks are, or sleeps are
    /// too late to say.
    #[must_use]
    pub fn find() -> Option<Self> {
        let resolution = clock_getres(ClockId::MonotonicCoarse);
        let length_ns = u64::try_from(resolution.tv_nsec).ok()?;
        if resolution.tv_sec != 0 || !(1_000_000..=10_000_000).contains(&length_ns) {
            return None;
        }
        let mut before: Option<(u64, u64)> = None;
        for _ in 0..MOST_LOOKS {
            let place = monotonic_ns() / length_ns + 1;
            sleep_until(place * length_ns + length_ns / 2);
            let late = monotonic_ns() / length_ns != place;
            let seen = hundredths();
            if let Some((last, then)) = before
                && then + 1 == place
                && last != seen
                && !late
            {
                return Some(Self {
                    number: first_of(seen, length_ns),
                    began_ns: place * length_ns,
                    length_ns,
                });
            }
            before = (!late).then_some((seen, place));
        }
        None
    }

    /// How long it is from now until the next tick begins whose number is a
    /// multiple of `of`, at least `least`.
    #[must_use]
    pub fn until_multiple_of(&self, of: u64, least: Duration) -> Duration {
        let now = monotonic_ns();
        let least = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX / 2);
        Duration::from_nanos(self.next_multiple(of, now + least) - now)
    }

    /// When the first tick at `earliest` or later begins whose number is a
    /// multiple of `of`.
    fn next_multiple(&self, of: u64, earliest: u64) -> u64 {
        let ticks = earliest
            .saturating_sub(self.began_ns)
            .div_ceil(self.length_ns);
        let number = (self.number + ticks).next_multiple_of(of.max(1));
        self.began_ns + (number - self.number) * self.length_ns
    }
}

/// The number of the first tick that is counted as so many hundredths of a second
/// (Linux `jiffies_64_to_clock_t`, which rounds down).
fn first_of(hundredths: u64, length_ns: u64) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let hz = (SECOND_NS + length_ns / 2) / length_ns;
    (hundredths * hz).div_ceil(100)
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn sleep_until(at_ns: u64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_begin_with_the_first_tick_that_is_reported_as_them() {
        assert_eq!(first_of(7, 1_000_000), 70);
        // 2.5 ticks each: 7 hundredths are 17.5 ticks, and 18 is the first.
        assert_eq!(first_of(7, 4_000_000), 18);
        assert_eq!(first_of(7, 3_333_333), 21);
        assert_eq!(first_of(7, 10_000_000), 7);
    }

    #[test]
    fn the_next_round_tick_is_not_before_the_earliest_instant() {
        let ticks = Ticks {
            number: 4000,
            began_ns: 500_000_000,
            length_ns: 1_000_000,
        };
        assert_eq!(ticks.next_multiple(4096, 500_000_000), 596_000_000);
        assert_eq!(ticks.next_multiple(4096, 596_000_000), 596_000_000);
        assert_eq!(ticks.next_multiple(4096, 596_000_001), 4_692_000_000);
    }
}
