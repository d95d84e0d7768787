//! When a node that stands by takes the lease.

use lagometer_units::Time;

use super::entry::Entry;
use super::{Lease, State, Take};

impl Lease {
    /// The entry is another node's, or there is none: takes it if it is free or has been the
    /// same for too long.
    pub(super) fn on_other(
        &mut self,
        now: Time,
        asked_at: Time,
        read: Option<(Option<Entry>, u64)>,
    ) {
        let epoch = self.newest + 1;
        let State::StandsBy { seen } = &mut self.state else {
            return;
        };
        let Some((entry, revision)) = read else {
            self.take = Some(Take {
                revision: None,
                epoch,
                from: None,
                is_named: false,
            });
            self.ask_at = now;
            return;
        };
        self.claim.names_me =
            entry.is_some_and(|entry| !entry.is_free && entry.successor == Some(self.node));
        // What was told of while nothing could be read may name another, or nobody.
        if std::mem::take(&mut self.claim.has_missed) && !self.claim.is_good() {
            *seen = None;
        }
        let since = match *seen {
            // Another may have been written since, and been told of.
            Some((of, since)) if of == revision || asked_at < since => since,
            // From now on, not from when it was asked for: so long it may be valid still.
            _ => {
                *seen = Some((revision, now));
                now
            }
        };
        let is_for_me = |entry: Entry| entry.successor.is_none_or(|node| node == self.node);
        let is_free = entry.is_some_and(|entry| entry.is_free && is_for_me(entry));
        // Who is in sync goes before others.
        // Where its own giving up was lost, whom it was for goes first, too.
        let was_mine = |entry: Entry| entry.node == self.node && Some(entry.epoch) <= self.given_up;
        let is_for_another =
            entry.is_some_and(|entry| !entry.is_free && (!is_for_me(entry) || was_mine(entry)));
        let timeout = if is_for_another {
            // … by more than one answer that is lost costs it.
            self.times.lease + 3 * self.times.renew
        } else {
            self.times.lease
        };
        if !is_free && asked_at < since + timeout {
            // It is known at once when the lease is over.
            self.ask_at = self.ask_at.min(since + timeout).max(now);
        } else {
            self.take = Some(Take {
                revision: Some(revision),
                epoch,
                from: entry.map(|entry| (entry.node, entry.epoch)),
                is_named: entry.is_some_and(|entry| entry.successor == Some(self.node)),
            });
            self.ask_at = now;
        }
    }

    /// Of the entry that was read, if an attempt to take it wrote it whose answer was lost:
    /// that attempt, and its revision. If it did not, that is known now.
    pub(super) fn own_unanswered(&mut self, read: Option<(Entry, u64)>) -> Option<(Take, u64)> {
        let first = self.unanswered?;
        let written = read.filter(|(entry, _)| {
            entry.node == self.node && entry.epoch >= first.epoch && !entry.is_free
        });
        if written.is_none() {
            self.unanswered = None;
        }
        Some((first, written?.1))
    }
}
