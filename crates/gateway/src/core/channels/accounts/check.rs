//! What must hold of an account between any two steps.

use crate::core::ids::ChannelId;

use super::Account;

impl Account {
    /// Whether its sums are those of the channels it made, of which `is_entity` says which
    /// are entities'.
    pub(in crate::core::channels) fn is_sound(
        &self,
        is_entity: impl Fn(ChannelId) -> bool,
    ) -> bool {
        let sum = |sum: usize, &bytes: &usize| sum.saturating_add(bytes);
        self.data_bytes == self.made.values().fold(0, sum)
            && self.entities == self.made.keys().filter(|&&id| is_entity(id)).count()
    }

    /// The channels it made.
    pub(in crate::core::channels) fn made(&self) -> impl Iterator<Item = ChannelId> {
        self.made.keys().copied()
    }
}
