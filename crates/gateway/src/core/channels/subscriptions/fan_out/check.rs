//! What must hold of a channel's groups between any two steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::check::{BrokenInvariant, hold};
use crate::core::ids::{ChannelId, ConnId, GroupId, SideId};

use super::FanOut;

/// How many members each group has on each side, and who joins which group.
type Census = (
    BTreeMap<(GroupId, SideId), usize>,
    BTreeSet<(GroupId, ConnId)>,
);

impl FanOut {
    /// Checks the groups of channel `id`; `numbers` are those of all groups
    /// that were checked before, for a number names one group.
    pub(in crate::core::channels::subscriptions) fn check(
        &self,
        id: ChannelId,
        numbers: &mut BTreeSet<GroupId>,
    ) -> Result<(), BrokenInvariant> {
        let head = self.head();
        for group in &self.groups {
            let number = group.number();
            hold!(numbers.insert(number), "{} names two groups", number.0);
            group.check(id, head)?;
        }
        hold!(
            self.paused.values().all(|&cursor| cursor <= head),
            "someone who is paused in {id} has been sent what there is not yet"
        );
        self.log.check(id)?;
        hold!(
            !self.groups.is_empty() || !self.paused.is_empty() || self.log.is_empty(),
            "{id} keeps updates for nobody"
        );
        Ok(())
    }

    /// Who is in which group, by the groups themselves.
    pub(in crate::core::channels::subscriptions) fn census(&self) -> Census {
        let mut census = Census::default();
        for group in &self.groups {
            let number = group.number();
            let (members, joining) = group.census();
            census
                .0
                .extend(members.map(|(side, count)| ((number, side), count)));
            census.1.extend(joining.map(|id| (number, id)));
        }
        census
    }
}
