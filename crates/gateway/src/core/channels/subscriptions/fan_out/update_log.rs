//! A channel's updates that some subscriber has not been sent, in the order they
//! came, each with a number.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::check::{BrokenInvariant, hold};
use crate::core::ids::{ChannelId, ConnId};

use super::super::windows::Update;

/// So many updates, or bytes of them, end a window early.
const MAX_WAITING_UPDATES: usize = 4096;
const MAX_WAITING_BYTES: usize = 1 << 20;

/// What an update takes beside its bytes, about.
const UPDATE_BYTES: usize = 128;

/// Data whose updates are not simply merged is mostly of that kind throughout:
/// after so many more it is tried again.
const CONDENSE_AGAIN_AFTER: u64 = 256;

/// The updates.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct UpdateLog {
    /// Each with its number; where several were merged, that of the first.
    updates: VecDeque<(u64, Update)>,
    /// The number the next update will have.
    head: u64,
    bytes: usize,
    /// Updates are not worth trying to merge before this one.
    condense_from: u64,
}

impl UpdateLog {
    /// The number the next update will have.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn push(&mut self, update: Update) {
        self.bytes += update.value.len();
        self.updates.push_back((self.head, update));
        self.head += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// So much waits that windows are to end now.
    pub(super) fn is_full(&self, most_bytes: usize) -> bool {
        self.updates.len() > MAX_WAITING_UPDATES || self.bytes > MAX_WAITING_BYTES.min(most_bytes)
    }

    /// What the updates that come before the number `needed` take, bytes.
    pub(super) fn bytes_before(&self, needed: u64) -> usize {
        let before = self
            .updates
            .iter()
            .take_while(|(number, _)| *number < needed);
        before
            .map(|(_, update)| UPDATE_BYTES + update.value.len())
            .sum()
    }

    /// The updates from number `cursor` on, without those of `sender`.
    pub(super) fn since(&self, cursor: u64, without: Option<ConnId>) -> Vec<&Update> {
        self.updates
            .range(self.place_of(cursor)..)
            .map(|(_, update)| update)
            .filter(|update| without != Some(update.sender))
            .collect()
    }

    /// Forgets what comes before the number `needed`.
    pub(super) fn trim(&mut self, needed: u64) {
        while let Some((number, update)) = self.updates.front()
            && *number < needed
        {
            self.bytes -= update.value.len();
            self.updates.pop_front();
        }
    }

    /// Merges updates that will only be sent together: those between two
    /// `cursors`, the newest left out, which mostly go out before there is more
    /// to merge them with.
    pub(super) fn condense<I: Iterator<Item = u64>>(
        &mut self,
        cursors: impl Fn() -> I,
        mut as_one: impl FnMut(&[&Update]) -> Option<Update>,
    ) {
        if self.head < self.condense_from {
            return;
        }
        let Some(latest) = cursors().max() else {
            return;
        };
        let mut end = self.place_of(latest);
        while end > 1 {
            let number = self.updates[end - 1].0;
            let from = cursors().filter(|&cursor| cursor <= number).max();
            let Some(from) = from else {
                return;
            };
            let start = self.place_of(from);
            if end - start > 1 {
                let run = self.updates.range(start..end);
                let run: Vec<&Update> = run.map(|(_, update)| update).collect();
                let Some(update) = as_one(&run) else {
                    self.condense_from = self.head + CONDENSE_AGAIN_AFTER;
                    return;
                };
                let len: usize = run.iter().map(|update| update.value.len()).sum();
                self.bytes = self.bytes + update.value.len() - len;
                let number = self.updates[start].0;
                self.updates.drain(start + 1..end);
                self.updates[start] = (number, update);
            }
            end = start;
        }
    }

    /// Where the first update that has number `cursor` or a later one is.
    fn place_of(&self, cursor: u64) -> usize {
        self.updates.partition_point(|(number, _)| *number < cursor)
    }

    /// Whether its bytes are counted right; `id` is the channel's.
    pub(super) fn check(&self, id: ChannelId) -> Result<(), BrokenInvariant> {
        let kept: usize = self.updates.iter().map(|(_, one)| one.value.len()).sum();
        hold!(
            self.bytes == kept,
            "{id} counts {} bytes of updates and has {kept}",
            self.bytes
        );
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.updates.len()
    }

    /// What could not be merged is tried again at once.
    #[cfg(test)]
    pub(super) fn try_to_condense_again(&mut self) {
        self.condense_from = 0;
    }
}
