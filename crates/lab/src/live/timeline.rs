//! When what happens in a run over real sockets.
//!
//! In real time all lanes go by one clock, connect as fast as they do, and start
//! when all stand. On a clock that waits for whoever computes, every lane has a
//! clock of its own that starts at [`Time::ZERO`] when its endpoints do, and its
//! schedule starts after [`Plan::LEAD_IN`], as in the testbed `sim`: timers of
//! endpoints then stand to the schedule as they do there. Lane *n* of *N* is
//! *n*/*N* of an interval later than the first in either.

use std::thread;
use std::time::{Duration, SystemTime};

use lagometer_units::{Clock, Time};

use crate::plan::Plan;
use crate::resolve::Resolved;

/// When the lanes of a run start.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    clock: Clock,
    /// From one lane's schedule to the next one's.
    apart: Duration,
    /// When the first lane's clock starts, where each has one of its own.
    zero: Option<Time>,
}

/// A lane's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneClock {
    clock: Clock,
    /// When it starts, by the run's clock.
    zero: Time,
}

/// From when all is made to the start of the first lane's clock.
const AHEAD: Duration = Duration::from_millis(100);

impl Timeline {
    /// A run's, whose lanes have been made, however long that took; `is_virtual`
    /// where the clock stands still while anybody computes.
    pub(super) fn new(resolved: &Resolved, clock: Clock, is_virtual: bool) -> Self {
        let interval = resolved.plan.workload.interval.duration();
        Self {
            clock,
            apart: apart(resolved.lanes.len(), interval),
            zero: is_virtual.then(|| clock.now() + AHEAD),
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

    /// The clock of lane number `lane`.
    pub(super) fn lane(&self, lane: usize) -> LaneClock {
        LaneClock {
            clock: self.clock,
            zero: self
                .zero
                .map_or(Time::ZERO, |zero| zero + self.offset(lane)),
        }
    }
}

impl LaneClock {
    /// How late it is; [`Time::ZERO`] until it starts.
    pub(super) fn now(self) -> Time {
        self.told(self.clock.now())
    }

    /// What it tells at `at` of the run's clock.
    pub(super) fn told(self, at: Time) -> Time {
        Time::ZERO + at.since(self.zero)
    }

    /// The instant on the calendar at which it tells `at`.
    pub(super) fn on_calendar(self, at: Time) -> SystemTime {
        let (at, now) = (self.zero + at.since(Time::ZERO), self.clock.now());
        SystemTime::now() + at.since(now) - now.since(at)
    }

    /// Sleeps until it starts.
    pub(super) fn await_zero(self) {
        thread::sleep(self.zero.since(self.clock.now()));
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
