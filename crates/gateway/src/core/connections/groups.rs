//! The groups of subscribers that this side has members in.

use crate::core::bus::Member;
use crate::core::check::{BrokenInvariant, Members, hold};
use crate::core::ids::{ChannelId, ConnId, GroupId};

/// Groups by their number, which are small and used again.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
}

#[derive(Debug, Default)]
struct Group {
    channel: Option<ChannelId>,
    /// In order of their connection numbers.
    members: Vec<Placed>,
}

/// A member and the slot of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) member: Member,
    pub(super) slot: u32,
}

impl Groups {
    pub(super) fn join(&mut self, group: GroupId, channel: ChannelId, placed: Placed) {
        let index = group.0 as usize;
        if self.groups.len() <= index {
            self.groups.resize_with(index + 1, Group::default);
        }
        let group = &mut self.groups[index];
        if group.channel != Some(channel) {
            group.members.clear();
            group.channel = Some(channel);
        }
        match group.place(placed.member.id) {
            Ok(place) => group.members[place] = placed,
            Err(place) => group.members.insert(place, placed),
        }
    }

    pub(super) fn leave(&mut self, group: GroupId, id: ConnId) {
        if let Some(group) = self.groups.get_mut(group.0 as usize)
            && let Ok(place) = group.place(id)
        {
            group.members.remove(place);
            if group.members.is_empty() {
                *group = Group::default();
            }
        }
    }

    /// The members, taken out so that they can be walked while connections are
    /// written to; to be put back.
    pub(super) fn take(&mut self, group: GroupId) -> Vec<Placed> {
        self.groups
            .get_mut(group.0 as usize)
            .map(|group| std::mem::take(&mut group.members))
            .unwrap_or_default()
    }

    pub(super) fn put_back(&mut self, group: GroupId, members: Vec<Placed>) {
        if let Some(group) = self.groups.get_mut(group.0 as usize) {
            group.members = members;
        }
    }
}

impl Groups {
    /// The members of all groups that have some.
    pub(super) fn members(&self) -> Members {
        let groups = (0..).zip(&self.groups);
        groups
            .filter(|(_, group)| !group.members.is_empty())
            .map(|(number, group)| {
                let ids = group.members.iter().map(|placed| placed.member.id);
                (GroupId(number), ids.collect())
            })
            .collect()
    }

    /// Whether members are in order, each once.
    pub(super) fn check(&self) -> Result<(), BrokenInvariant> {
        for (number, ids) in self.members() {
            hold!(
                ids.is_sorted_by(|one, other| one < other),
                "the members of group {} are not in order: {ids:?}",
                number.0
            );
        }
        Ok(())
    }
}

impl Group {
    fn place(&self, id: ConnId) -> Result<usize, usize> {
        self.members
            .binary_search_by_key(&id, |placed| placed.member.id)
    }
}
