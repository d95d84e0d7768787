//! How old what arrives is, and what did not arrive.
//!
//! Everything that was due counts, each with the age it had when it, or
//! something newer in its place, arrived; what has not arrived by the end of a
//! phase counts with the age that it has then. A gateway that stands still for a
//! second is thus late for all that was due in that second and not for the one
//! update that ends it (which measurements that only look at arrivals overlook:
//! "coordinated omission").

use hdrhistogram::Histogram;

use crate::counters::{Spread, microseconds};

/// Older than this is late, microseconds: what the bench's goal allows at most.
pub(super) const LATE_US: u64 = 100_000;

/// The ages of one kind of message.
#[derive(Debug)]
pub(super) struct Ages {
    histogram: Histogram<u64>,
    late: u64,
}

impl Ages {
    /// None yet.
    pub(super) fn new() -> Self {
        Self {
            histogram: microseconds(),
            late: 0,
        }
    }

    /// Notes what was `age_us` old when it arrived, or is now and has not.
    pub(super) fn note(&mut self, age_us: u64) {
        self.histogram.saturating_record(age_us.max(1));
        self.late += u64::from(age_us > LATE_US);
    }

    /// The distribution, milliseconds.
    pub(super) fn spread(&self) -> Spread {
        Spread::from(&self.histogram)
    }

    /// How many were late.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// How many were noted.
    pub(super) fn count(&self) -> u64 {
        self.histogram.len()
    }
}

/// When turns are due: one each `period_us` from `start_us` on, the first of
/// them number 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Microseconds from the origin to the first turn.
    pub(super) start_us: u64,
    /// Microseconds between two turns.
    pub(super) period_us: f64,
}

impl Schedule {
    /// When a turn is due, microseconds from the origin.
    pub(super) fn due_us(&self, turn: u64) -> u64 {
        self.start_us + (self.period_us * turn.saturating_sub(1) as f64) as u64
    }

    /// Notes turns `after` < turn ≤ `upto` as they are at `now_us`. Those that
    /// are not due yet are passed over.
    pub(super) fn note(&self, ages: &mut Ages, after: u64, upto: u64, now_us: u64) {
        for turn in after + 1..=upto {
            if let Some(age_us) = now_us.checked_sub(self.due_us(turn)) {
                ages.note(age_us);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_makes_all_late_that_was_due_in_it() {
        let schedule = Schedule {
            start_us: 0,
            period_us: 10_000.0,
        };
        let mut ages = Ages::new();
        // Fifty turns on time, then half a second of nothing, then one update.
        for turn in 1..=50 {
            schedule.note(&mut ages, turn - 1, turn, schedule.due_us(turn) + 1000);
        }
        assert_eq!((ages.count(), ages.late()), (50, 0));
        schedule.note(&mut ages, 50, 100, schedule.due_us(100) + 1000);
        assert_eq!((ages.count(), ages.late()), (100, 40));
        assert!(ages.spread().p99 > 400.0, "{:?}", ages.spread());
    }

    #[test]
    fn what_is_not_due_yet_has_no_age() {
        let schedule = Schedule {
            start_us: 500,
            period_us: 1000.0,
        };
        let mut ages = Ages::new();
        schedule.note(&mut ages, 0, 10, 2600);
        assert_eq!(ages.count(), 3);
    }
}
