//! The loop of virtual time: from one event to the next, whatever is played.
//!
//! Lanes, stages of lanes on one link, and worlds are all played by [`run_until`]; what
//! happens at an instant is theirs.

use lagometer_units::Time;

/// What is played in virtual time.
pub trait EventDriven {
    /// How far it has been played.
    fn now(&self) -> Time;

    /// Whether there is nothing more to play.
    fn is_over(&self) -> bool {
        false
    }

    /// When the next thing happens by itself; `None` where nothing does any more.
    fn next_event(&self) -> Option<Time>;

    /// Moves on to `now`, at which something is due, and does it.
    fn play_instant(&mut self, now: Time);

    /// Moves on to `until`, before which nothing is due.
    fn pass_to(&mut self, until: Time);
}

/// Plays on until `limit`, which is no earlier than [`EventDriven::now`], or until the
/// play is over, whichever is first; says whether it is over. How a play is sliced
/// does not change it.
pub fn run_until(played: &mut impl EventDriven, limit: Time) -> bool {
    while !played.is_over() {
        // What is overdue is due now: time never goes back.
        let next = played.next_event().unwrap_or(Time::MAX).max(played.now());
        if next > limit {
            played.pass_to(limit);
            break;
        }
        played.play_instant(next);
    }
    played.is_over()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Something happens every so many milliseconds, so many times.
    struct Ticks {
        now: Time,
        due: Vec<Time>,
        played: Vec<Time>,
    }

    impl Ticks {
        fn at(millis: &[u64]) -> Self {
            let mut due: Vec<Time> = millis.iter().copied().map(Time::from_millis).collect();
            due.reverse();
            Self {
                now: Time::ZERO,
                due,
                played: Vec::new(),
            }
        }
    }

    impl EventDriven for Ticks {
        fn now(&self) -> Time {
            self.now
        }

        fn is_over(&self) -> bool {
            self.due.is_empty()
        }

        fn next_event(&self) -> Option<Time> {
            self.due.last().copied()
        }

        fn play_instant(&mut self, now: Time) {
            self.now = now;
            self.due.pop();
            self.played.push(now);
        }

        fn pass_to(&mut self, until: Time) {
            self.now = until;
        }
    }

    #[test]
    fn a_play_in_slices_is_the_play_at_once() {
        let times = [0, 3, 3, 10, 11];
        let mut whole = Ticks::at(&times);
        assert!(run_until(&mut whole, Time::MAX));
        let mut sliced = Ticks::at(&times);
        for until in [3, 4, 10] {
            assert!(!run_until(&mut sliced, Time::from_millis(until)));
            assert_eq!(sliced.now, Time::from_millis(until));
        }
        assert!(run_until(&mut sliced, Time::from_millis(20)));
        assert_eq!(sliced.played, whole.played);
        // Over at the last event, not at the limit.
        assert_eq!(sliced.now, Time::from_millis(11));
    }

    #[test]
    fn what_is_overdue_happens_now() {
        let mut ticks = Ticks::at(&[5, 2]);
        run_until(&mut ticks, Time::MAX);
        assert_eq!(ticks.played, [Time::from_millis(5); 2]);
    }
}
