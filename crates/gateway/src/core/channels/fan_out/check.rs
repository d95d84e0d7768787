//! What must hold of a channel's groups between any two steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::check::{BrokenInvariant, hold};
use crate::core::ids::{ChannelId, ConnId, GroupId, SideId};

use super::{FanOut, Group};

/// How many members each group has on each side, and who joins which group.
type Census = (
    BTreeMap<(GroupId, SideId), usize>,
    BTreeSet<(GroupId, ConnId)>,
);

impl FanOut {
    /// Checks the groups of channel `id`; `numbers` are those of all groups
    /// that were checked before, for a number names one group.
    pub(in crate::core::channels) fn check(
        &self,
        id: ChannelId,
        numbers: &mut BTreeSet<GroupId>,
    ) -> Result<(), BrokenInvariant> {
        for group in &self.groups {
            let number = group.number.0;
            hold!(numbers.insert(group.number), "{number} names two groups");
            hold!(!group.is_empty(), "group {number} of {id} has nobody");
            hold!(
                group.cursors().all(|cursor| cursor <= self.head),
                "group {number} of {id} has been sent what there is not yet"
            );
            let first = group.joining.values().map(|joining| joining.cursor).min();
            hold!(
                first.unwrap_or(u64::MAX) >= group.joining_from,
                "group {number} of {id} may forget what joins wait for"
            );
            hold!(
                !group.wants_beat(self.head),
                "group {number} of {id} has something to send and no beat"
            );
        }
        hold!(
            self.paused.values().all(|&cursor| cursor <= self.head),
            "someone who is paused in {id} has been sent what there is not yet"
        );
        let kept: usize = self.updates.iter().map(|(_, one)| one.value.len()).sum();
        hold!(
            self.bytes == kept,
            "{id} counts {} bytes of updates and has {kept}",
            self.bytes
        );
        hold!(
            !self.groups.is_empty() || !self.paused.is_empty() || self.updates.is_empty(),
            "{id} keeps updates for nobody"
        );
        Ok(())
    }

    /// Who is in which group, by the groups themselves.
    pub(in crate::core::channels) fn census(&self) -> Census {
        let members = |group: &Group| {
            let number = group.number;
            let counts = group.sides.iter();
            counts
                .map(move |&(side, count)| ((number, side), count))
                .collect::<Vec<_>>()
        };
        let joining = |group: &Group| {
            let number = group.number;
            let ids = group.joining.keys();
            ids.map(move |&id| (number, id)).collect::<Vec<_>>()
        };
        (
            self.groups.iter().flat_map(members).collect(),
            self.groups.iter().flat_map(joining).collect(),
        )
    }
}
