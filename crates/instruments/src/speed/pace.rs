//! When the next chunk may be offered: as fast as it goes, or by the clock.

use std::time::Duration;

use lagometer_units::Time;

/// The offers of one lane.
///
/// By the clock, chunk `n` is due `n` intervals after the start whatever
/// became of those before it: a sender that falls behind catches up and skips
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    every: Option<Duration>,
    start: Time,
    end: Time,
}

impl Pace {
    /// Chunks from `start` until `end`, one each `every`, or without end where
    /// that is `None` or zero.
    pub(super) fn new(every: Option<Duration>, start: Time, end: Time) -> Self {
        Self {
            every: every.filter(|every| !every.is_zero()),
            start,
            end,
        }
    }

    /// Whether a chunk may be offered at `now`, so many having been taken.
    pub(super) fn permits(&self, now: Time, taken: u64) -> bool {
        match self.every {
            None => now < self.end,
            Some(every) => {
                let due = self.due(every, taken);
                due < self.end && now >= due
            }
        }
    }

    /// When the next chunk falls due, so many having been taken; `None` when
    /// that is not a question of time.
    pub(super) fn next_due(&self, taken: u64) -> Option<Time> {
        let due = self.due(self.every?, taken);
        (due < self.end).then_some(due)
    }

    /// Whether no chunk will fall due any more, so many having been taken.
    pub(super) fn is_over(&self, now: Time, taken: u64) -> bool {
        match self.every {
            None => now >= self.end,
            Some(every) => self.due(every, taken) >= self.end,
        }
    }

    /// Chunks that fall due in all; `None` without a clock.
    pub(super) fn total(&self) -> Option<u64> {
        let every = self.every?.as_nanos();
        let chunks = self.end.since(self.start).as_nanos().div_ceil(every);
        Some(u64::try_from(chunks).unwrap_or(u64::MAX))
    }

    fn due(&self, every: Duration, taken: u64) -> Time {
        let nanos = every.as_nanos().saturating_mul(u128::from(taken));
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn a_late_sender_catches_up_and_none_is_due_after_the_end() {
        let every = Some(Duration::from_micros(100));
        let pace = Pace::new(every, us(1000), us(2000));
        assert!(pace.permits(us(1000), 0) && !pace.permits(us(1099), 1));
        assert!(pace.permits(us(1555), 5) && !pace.permits(us(1555), 6));
        assert_eq!(pace.next_due(9), Some(us(1900)));
        assert_eq!(pace.next_due(10), None);
        assert!(pace.permits(us(2100), 9) && !pace.is_over(us(2100), 9));
        assert!(!pace.permits(us(2100), 10) && pace.is_over(us(1999), 10));
        assert_eq!(pace.total(), Some(10));
    }

    #[test]
    fn without_a_clock_only_the_end_stops_it() {
        for every in [None, Some(Duration::ZERO)] {
            let pace = Pace::new(every, us(0), us(10));
            assert!(pace.permits(us(9), u64::MAX) && !pace.permits(us(10), 0));
            assert!(!pace.is_over(us(9), 0) && pace.is_over(us(10), 0));
            assert_eq!((pace.next_due(7), pace.total()), (None, None));
        }
    }
}
