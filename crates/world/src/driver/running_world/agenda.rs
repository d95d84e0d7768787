//! What a world has to do when: duties in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use lagometer_units::Time;

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duty {
    /// A frame of the server of that number.
    ServerFrame(u32),
    /// A player, by its number, arrives.
    Join(u32),
    /// A server whose connection broke off comes back.
    Revive(u32),
    /// A player whose connection broke off comes back.
    Return(u32),
    /// A player's frame.
    PlayerFrame(u32),
    /// A player's view is looked at.
    Look(u32),
    /// What happened since the last time is noted.
    Note,
}

/// Duties by time; those of one time in the order of the enumeration.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    due: BinaryHeap<Reverse<(Time, Duty)>>,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Time, duty: Duty) {
        self.due.push(Reverse((at, duty)));
    }

    /// The next duty that is due by `now`, and when it was.
    pub(super) fn take(&mut self, now: Time) -> Option<(Time, Duty)> {
        let Reverse((at, _)) = self.due.peek()?;
        if *at > now {
            return None;
        }
        self.due.pop().map(|Reverse(due)| due)
    }

    /// When something is due next.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }
}

/// When something is due that was first due at `first` and then again and
/// again: what has gone by altogether by `now` is left out.
pub(super) fn due_after(first: Time, each: Duration, now: Time) -> Time {
    let gone = now.since(first).as_nanos() / each.as_nanos();
    Time::from_nanos((u128::from(first.as_nanos()) + gone * each.as_nanos()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duties_come_in_their_order_and_not_before() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut agenda = Agenda::default();
        agenda.add(at(2), Duty::PlayerFrame(1));
        agenda.add(at(2), Duty::ServerFrame(0));
        agenda.add(at(1), Duty::Join(4));
        assert_eq!(agenda.take(at(0)), None);
        assert_eq!(agenda.next_at(), Some(at(1)));
        assert_eq!(agenda.take(at(9)), Some((at(1), Duty::Join(4))));
        assert_eq!(agenda.take(at(9)), Some((at(2), Duty::ServerFrame(0))));
        assert_eq!(agenda.take(at(9)), Some((at(2), Duty::PlayerFrame(1))));
        assert_eq!(agenda.take(at(9)), None);
    }
}
