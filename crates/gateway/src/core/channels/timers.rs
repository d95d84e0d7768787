//! Deadlines of the channel manager in order of time; those made void are skipped.

use std::collections::BTreeMap;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::ids::{ChannelId, ConnId, GroupId};

/// Something that is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Due {
    /// A group's window is to be sent.
    FanOutTick { channel: ChannelId, group: GroupId },
    /// A subscriber is to get the whole state.
    FirstState { channel: ChannelId, id: ConnId },
    /// Whole states that had to wait are to be sent.
    FirstStates,
    /// A server that came back has been sent everything.
    RecoveryEnd { id: ConnId },
    /// A server that broke off has not come back in time.
    RecoveryTimeout { id: ConnId },
}

/// Things to do by time. Times are mostly ticks, so that many things share
/// one; those of one time are done in the order they were asked for.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Timers {
    by_time: BTreeMap<Time, Vec<Due>>,
    /// What is being done now, in reverse.
    current: Vec<Due>,
    current_time: Time,
    /// Empty lists, to be used again.
    #[serde(skip)]
    spare: Vec<Vec<Due>>,
    /// How many there are, and about how many of them lead to nothing any more.
    len: usize,
    stale: usize,
}

/// So many may always lead to nothing.
const STALE_AT_LEAST: usize = 4096;

impl Timers {
    pub(super) fn add(&mut self, at: Time, due: Due) {
        self.len += 1;
        self.by_time
            .entry(at)
            .or_insert_with(|| self.spare.pop().unwrap_or_default())
            .push(due);
    }

    /// One of the things to do, whose time may be far off, has lost its point.
    pub(super) fn note_stale(&mut self) {
        self.stale += 1;
    }

    /// Whether most of what is to be done has lost its point: peers that ask
    /// for something late and take it back, over and over, would otherwise
    /// leave ever more behind.
    pub(super) fn wants_sweep(&self) -> bool {
        self.stale >= STALE_AT_LEAST && self.stale * 2 >= self.len
    }

    /// Forgets all that is to be done and has lost its point.
    pub(super) fn sweep(&mut self, mut has_point: impl FnMut(Time, &Due) -> bool) {
        let mut len = self.current.len();
        self.by_time.retain(|&at, list| {
            list.retain(|due| has_point(at, due));
            len += list.len();
            !list.is_empty()
        });
        self.len = len;
        self.stale = 0;
    }

    pub(super) fn next(&self) -> Option<Time> {
        if !self.current.is_empty() {
            return Some(self.current_time);
        }
        self.by_time.first_key_value().map(|(&at, _)| at)
    }

    /// The next thing that is due by `now`, and when it was due.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Due)> {
        if self.current.is_empty() {
            let first = self.by_time.first_entry()?;
            if *first.key() > now {
                return None;
            }
            self.current_time = *first.key();
            let list = first.remove();
            let empty = std::mem::replace(&mut self.current, list);
            if self.spare.len() < 64 {
                self.spare.push(empty);
            }
            self.current.reverse();
        }
        let due = self.current.pop()?;
        self.len = self.len.saturating_sub(1);
        Some((self.current_time, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribing_late_and_taking_it_back_over_and_over_leaves_little_behind() {
        let mut timers = Timers::default();
        let first_state = |id| Due::FirstState {
            channel: ChannelId(1),
            id: ConnId(id),
        };
        timers.add(Time::from_millis(10), first_state(7));
        for minute in 1..1_000_000_u64 {
            timers.add(Time::from_millis(60_000 + minute), first_state(8));
            timers.note_stale();
            if timers.wants_sweep() {
                timers.sweep(|_, due| *due == first_state(7));
            }
        }
        let kept: usize = timers.by_time.values().map(Vec::len).sum();
        assert!(kept <= STALE_AT_LEAST + 1, "{kept}");
        let first = timers.pop(Time::from_millis(10));
        assert_eq!(first, Some((Time::from_millis(10), first_state(7))));
    }
}
