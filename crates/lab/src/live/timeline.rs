//! When what happens in a run over real sockets.
//!
//! In real time all lanes go by one clock, connect as fast as they do, and start
//! when all stand, lane *n* of *N* *n*/*N* of an interval later than the first.
//!
//! On a clock that waits for whoever computes, the lanes' clock starts at
//! [`Time::ZERO`] when their endpoints do, and the schedule starts after
//! [`Plan::LEAD_IN`], as in the testbed `sim`: timers of endpoints then stand to
//! the schedule as they do there. So do the kernel's, whose tick 0 is that of `sim`:
//! the clock starts at a tick with so round a number that all buckets in which
//! timers wait begin there. Nobody waits for the processor, so all lanes start at
//! once.

use std::thread;
use std::time::{Duration, SystemTime};

use lagometer_emu::Ticks;
use lagometer_units::{Clock, Time};

use crate::plan::Plan;
use crate::resolve::Resolved;

/// When the lanes of a run start.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    clock: Clock,
    /// From one lane's schedule to the next one's.
    apart: Duration,
    /// When the lanes' clock starts, where they have one of their own.
    zero: Option<Time>,
}

/// The clock that lanes go by.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneClock {
    clock: Clock,
    /// When it starts, by the run's clock.
    zero: Time,
}

/// From when hosts and links are made to the start of the lanes' clock, at the
/// least.
const AHEAD: Duration = Duration::from_millis(100);

/// Ticks from one bucket for the most distant of TCP's timers to the next: those of
/// 32 s to 258 s at 1000 Hz (Linux 6.1 `calc_wheel_index`). Nearer ones have buckets
/// of an eighth, a sixty-fourth, … of it.
const WIDEST_BUCKET: u64 = 4096;

impl Timeline {
    /// A run's, whose hosts and links have been made and whose endpoints have not;
    /// `is_virtual` where the clock stands still while anybody computes.
    pub(super) fn new(resolved: &Resolved, clock: Clock, is_virtual: bool) -> Self {
        if is_virtual {
            let ticks = Ticks::find();
            let ahead = ticks.map_or(AHEAD, |it| it.until_multiple_of(WIDEST_BUCKET, AHEAD));
            return Self {
                clock,
                apart: Duration::ZERO,
                zero: Some(clock.now() + ahead),
            };
        }
        let interval = resolved.plan.workload.interval();
        Self {
            clock,
            apart: apart(resolved.lanes.len(), interval),
            zero: None,
        }
    }

    /// Sleeps until endpoints are to be made: until the lanes' clock starts, where
    /// they have one of their own.
    pub(super) fn await_zero(&self) {
        if let Some(zero) = self.zero {
            thread::sleep(zero.since(self.clock.now()));
        }
    }

    /// The run's clock.
    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// When the first lane's schedule starts, where that is known beforehand.
    pub(super) fn starts(&self) -> Option<Time> {
        self.zero.map(|zero| zero + Plan::LEAD_IN)
    }

    /// How much later than the first lane's the schedule of lane `lane` starts.
    pub(super) fn offset(&self, lane: usize) -> Duration {
        self.apart * u32::try_from(lane).unwrap_or(u32::MAX)
    }

    /// The clock that lanes go by.
    pub(super) fn lanes(&self) -> LaneClock {
        LaneClock {
            clock: self.clock,
            zero: self.zero.unwrap_or(Time::ZERO),
        }
    }
}

impl LaneClock {
    /// How late it is; [`Time::ZERO`] until it starts.
    pub(super) fn now(self) -> Time {
        self.at(self.clock.now())
    }

    /// Its reading at `at` of the run's clock.
    pub(super) fn at(self, at: Time) -> Time {
        Time::ZERO + at.since(self.zero)
    }

    /// The instant on the calendar at which it reads `at`.
    pub(super) fn on_calendar(self, at: Time) -> SystemTime {
        let (at, now) = (self.zero + at.since(Time::ZERO), self.clock.now());
        SystemTime::now() + at.since(now) - now.since(at)
    }
}

/// How long after the lane before it each of `lanes` lanes starts: a fraction of the
/// `interval` between messages, so that they do not all ask for the processor at the
/// same instant.
fn apart(lanes: usize, interval: Duration) -> Duration {
    interval / u32::try_from(lanes.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_start_evenly_within_an_interval() {
        let timeline = Timeline {
            clock: Clock::start(),
            apart: apart(4, Duration::from_millis(100)),
            zero: None,
        };
        let offsets = [0, 1, 2, 3].map(|lane| timeline.offset(lane).as_millis());
        assert_eq!(offsets, [0, 25, 50, 75]);
    }
}
