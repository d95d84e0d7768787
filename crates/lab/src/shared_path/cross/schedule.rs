//! When other traffic flows.

use std::fmt;

use lagometer_units::Time;

/// The stretches of one entry, in the order of their starts.
pub(super) struct Schedule {
    stretches: Box<dyn Iterator<Item = (Time, Time)> + Send>,
    starts: Time,
    next: Option<(Time, Time)>,
    is_on: bool,
}

/// What a schedule has an entry do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Begin to send.
    On,
    /// Stop at once.
    Off,
}

impl Schedule {
    /// `stretches` count from `starts`.
    pub(super) fn new(
        stretches: Box<dyn Iterator<Item = (Time, Time)> + Send>,
        starts: Time,
    ) -> Self {
        let mut schedule = Self {
            stretches,
            starts,
            next: None,
            is_on: false,
        };
        schedule.draw();
        schedule
    }

    fn draw(&mut self) {
        let shifted =
            |at: Time| Time::from_nanos(at.as_nanos().saturating_add(self.starts.as_nanos()));
        self.next = self
            .stretches
            .next()
            .map(|(start, end)| (shifted(start), shifted(end)));
    }

    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// When it next turns on or off.
    pub(super) fn next_turn(&self) -> Option<Time> {
        let (start, end) = self.next?;
        let turn = if self.is_on { end } else { start };
        Some(turn).filter(|&turn| turn < Time::MAX)
    }

    /// What is due at `now`, one turn at a time.
    pub(super) fn turn(&mut self, now: Time) -> Option<Turn> {
        self.next_turn().filter(|&turn| turn <= now)?;
        if self.is_on {
            self.draw();
        }
        self.is_on = !self.is_on;
        Some(if self.is_on { Turn::On } else { Turn::Off })
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Schedule")
            .field("next", &self.next)
            .field("is_on", &self.is_on)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_turns_on_and_off_as_its_stretches_say() {
        let at = Time::from_secs;
        let stretches = vec![(at(1), at(2)), (at(5), Time::MAX)];
        let mut schedule = Schedule::new(Box::new(stretches.into_iter()), at(10));
        assert_eq!(schedule.turn(at(10)), None);
        assert_eq!(schedule.next_turn(), Some(at(11)));
        assert_eq!(schedule.turn(at(11)), Some(Turn::On));
        assert!(schedule.is_on());
        // Late: one turn after the other.
        assert_eq!(schedule.turn(at(20)), Some(Turn::Off));
        assert_eq!(schedule.turn(at(20)), Some(Turn::On));
        assert_eq!(schedule.turn(at(20)), None);
        assert_eq!(schedule.next_turn(), None);
    }
}
