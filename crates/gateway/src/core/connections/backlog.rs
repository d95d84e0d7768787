//! Who caused what waits for one server.
//!
//! Only a server for which much waits has one: it begins when the outbox passes a
//! mark, and ends when the outbox is empty. What waited before the mark was passed
//! counts as nobody's.
//!
//! Bytes are counted as they were queued. An outbox that compresses holds fewer
//! than that, so that the oldest count as written a little early; whoever sent
//! most still has most.

use std::collections::{BTreeMap, VecDeque};

use lagometer_units::Time;

use crate::core::ids::ConnId;

/// What waits in one server's outbox, by who caused it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Runs of bytes in the order they were queued, with who caused each.
    runs: VecDeque<(Option<ConnId>, usize)>,
    /// The bytes of all runs.
    total: usize,
    shares: BTreeMap<ConnId, Share>,
}

/// One client's part.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    bytes: usize,
    /// Its side was told to pause it until then.
    paused_until: Option<Time>,
}

impl Backlog {
    /// Bytes were queued: by a client's request, or not.
    pub(super) fn queued(&mut self, cause: Option<ConnId>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        match self.runs.back_mut() {
            Some((of, run)) if *of == cause => *run += bytes,
            _ => self.runs.push_back((cause, bytes)),
        }
        if let Some(cause) = cause {
            self.shares.entry(cause).or_default().bytes += bytes;
        }
    }

    /// No more than so many bytes wait now: the oldest were written.
    pub(super) fn settle(&mut self, waiting: usize) {
        while self.total > waiting
            && let Some((cause, run)) = self.runs.front_mut()
        {
            let written = (self.total - waiting).min(*run);
            *run -= written;
            self.total -= written;
            if let Some(cause) = *cause
                && let Some(share) = self.shares.get_mut(&cause)
            {
                share.bytes -= written;
                if share.bytes == 0 {
                    self.shares.remove(&cause);
                }
            }
            if self.runs.front().is_some_and(|(_, run)| *run == 0) {
                self.runs.pop_front();
            }
        }
    }

    /// Bytes that wait because of a client.
    pub(super) fn of(&self, client: ConnId) -> usize {
        self.shares.get(&client).map_or(0, |share| share.bytes)
    }

    /// Until when a client is paused for what it has here.
    pub(super) fn paused_until(&self, client: ConnId) -> Option<Time> {
        self.shares.get(&client)?.paused_until
    }

    /// A client is paused until then.
    pub(super) fn note_pause(&mut self, client: ConnId, until: Time) {
        if let Some(share) = self.shares.get_mut(&client) {
            share.paused_until = Some(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_are_what_is_left_of_each_clients_bytes_in_order(
            steps in proptest::collection::vec((0_u32..4, 0_usize..300, any::<bool>()), 1..80),
        ) {
            let mut backlog = Backlog::default();
            // Each byte by who caused it.
            let mut bytes: VecDeque<Option<ConnId>> = VecDeque::new();
            for (who, count, writes) in steps {
                if writes {
                    bytes.drain(..count.min(bytes.len()));
                    backlog.settle(bytes.len());
                } else {
                    let cause = (who > 0).then_some(ConnId(who));
                    bytes.extend(std::iter::repeat_n(cause, count));
                    backlog.queued(cause, count);
                }
                for client in (1..4).map(ConnId) {
                    let left = bytes.iter().filter(|&&cause| cause == Some(client)).count();
                    prop_assert_eq!(backlog.of(client), left);
                    prop_assert_eq!(backlog.shares.contains_key(&client), left > 0);
                }
                prop_assert_eq!(backlog.total, bytes.len());
            }
        }
    }
}
