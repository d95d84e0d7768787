//! What is due when.

use std::collections::BTreeMap;

use lagometer_units::Time;

use crate::core::ids::{ChannelId, ConnId, GroupId};

/// Something that is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A group's window is to be sent.
    Beat { channel: ChannelId, group: GroupId },
    /// A subscriber is to get the whole state.
    FirstState { channel: ChannelId, id: ConnId },
    /// A server that came back has been sent everything.
    RecoveryEnd { id: ConnId },
    /// A server that broke off has not come back in time.
    RecoveryTimeout { id: ConnId },
}

/// Things to do by time. Times are mostly ticks, so that many things share
/// one; those of one time are done in the order they were asked for.
#[derive(Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeMap<Time, Vec<Due>>,
    /// What is being done now, in reverse.
    current: Vec<Due>,
    current_time: Time,
    /// Empty lists, to be used again.
    spare: Vec<Vec<Due>>,
}

impl Timers {
    pub(super) fn add(&mut self, at: Time, due: Due) {
        self.by_time
            .entry(at)
            .or_insert_with(|| self.spare.pop().unwrap_or_default())
            .push(due);
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
        Some((self.current_time, due))
    }
}
