//! Groups of entities: those that change hands together, and those that are locked
//! and do not.
//!
//! Several entities share one group: what is added through one is seen by all. An
//! entity that is put into another's group brings along those it was with.
//!
//! Home has the groups of all entities, whichever shard has their channels.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::core::check::{BrokenInvariant, hold};
use crate::core::ids::ChannelId;

/// What a group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Bond {
    /// Its entities change hands together.
    Handover,
    /// Its entities do not change hands.
    Lock,
}

/// Names a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct GroupKey(u64);

/// The groups that are an entity's.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Own {
    handover: Option<GroupKey>,
    lock: Option<GroupKey>,
}

impl Own {
    fn of(&mut self, bond: Bond) -> &mut Option<GroupKey> {
        match bond {
            Bond::Handover => &mut self.handover,
            Bond::Lock => &mut self.lock,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Shared {
    members: BTreeSet<ChannelId>,
    /// How many entities have it as theirs.
    holders: usize,
}

/// All entities and their groups.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct EntityGroups {
    entities: BTreeMap<ChannelId, Own>,
    groups: BTreeMap<GroupKey, Shared>,
    last: u64,
    /// Of other shards' entities that are not known yet: whose group they are to be put into,
    /// and how many that may have.
    expected: BTreeMap<(ChannelId, Bond), (ChannelId, usize)>,
}

/// So many entities at most are expected.
const EXPECTED_AT_MOST: usize = 4096;

/// What putting entities into a group came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grouped {
    /// How many entities were looked at.
    pub(super) looked_at: usize,
    /// The group has as many as it may; the rest were left out.
    pub(super) is_full: bool,
}

impl EntityGroups {
    /// An entity's channel was made.
    pub(super) fn add_entity(&mut self, id: ChannelId) {
        self.entities.entry(id).or_default();
        for bond in [Bond::Handover, Bond::Lock] {
            if let Some((to, most)) = self.expected.remove(&(id, bond)) {
                self.add(to, bond, [id], most);
            }
        }
    }

    /// An entity is to be put into the group of one once it is known, if it will be.
    pub(super) fn expect(&mut self, id: ChannelId, to: ChannelId, bond: Bond, most: usize) {
        if self.expected.len() >= EXPECTED_AT_MOST {
            self.expected.pop_first();
        }
        self.expected.insert((id, bond), (to, most));
    }

    /// It is not to be put there, after all.
    pub(super) fn expect_no_more(&mut self, id: ChannelId, bond: Bond) {
        self.expected.remove(&(id, bond));
    }

    /// Whether there is such an entity.
    pub(super) fn has_entity(&self, id: ChannelId) -> bool {
        self.entities.contains_key(&id)
    }

    /// An entity's channel goes: it leaves its groups.
    pub(super) fn remove_entity(&mut self, id: ChannelId) {
        for bond in [Bond::Handover, Bond::Lock] {
            self.remove(id, bond, [id]);
            self.set(id, bond, None);
        }
        self.entities.remove(&id);
        self.expected.retain(|_, (to, _)| *to != id);
    }

    /// Puts entities into the group of one of them, up to `most`, each with those
    /// it was with. One that is locked is noted, but stays as it is.
    pub(super) fn add(
        &mut self,
        to: ChannelId,
        bond: Bond,
        ids: impl IntoIterator<Item = ChannelId>,
        most: usize,
    ) -> Grouped {
        let mut grouped = Grouped::default();
        let group = self.own_group(to, bond);
        for id in ids {
            let along = self.handover_of(id).filter(|&own| own != group);
            // Those who come along are looked at one by one.
            grouped.looked_at += 1 + self.len(along);
            let is_new = !self.has(group, id);
            if self.len(Some(group)) + usize::from(is_new) + self.len(along) > most {
                grouped.is_full = true;
                break;
            }
            self.insert(group, [id]);
            self.adopt(id, group, bond);
        }
        grouped
    }

    /// Takes entities out of the group of one of them: each is alone from now on,
    /// and handed over with nobody. Returns whether there is such a group.
    pub(super) fn remove(
        &mut self,
        of: ChannelId,
        bond: Bond,
        ids: impl IntoIterator<Item = ChannelId>,
    ) -> bool {
        let own = self.entities.get_mut(&of).and_then(|own| *own.of(bond));
        let Some(group) = own else {
            return false;
        };
        for id in ids {
            if let Some(shared) = self.groups.get_mut(&group) {
                shared.members.remove(&id);
            }
            if self.entities.contains_key(&id) {
                let fresh = self.new_group();
                self.set(id, bond, Some(fresh));
            }
        }
        true
    }

    /// The entities that go where one goes; none if one of them is locked, or if
    /// it is no entity.
    pub(super) fn together(&self, id: ChannelId) -> BTreeSet<ChannelId> {
        let Some(own) = self.entities.get(&id) else {
            return BTreeSet::new();
        };
        if own.handover.is_none() {
            return [id].into();
        }
        let together = self.members(own.handover);
        let locked = self.members(own.lock);
        if together.is_disjoint(&locked) {
            together
        } else {
            BTreeSet::new()
        }
    }

    /// These entities are lost.
    pub(super) fn forget(&mut self, is_lost: impl Fn(ChannelId) -> bool) {
        let ids = self.entities.keys().copied();
        let lost: Vec<ChannelId> = ids.filter(|&id| is_lost(id)).collect();
        for id in lost {
            self.remove_entity(id);
        }
    }

    /// Whether the tables agree: groups are there as long as someone holds them,
    /// and `entities` are all there are of those that `is_here` knows.
    pub(super) fn check(
        &self,
        entities: &BTreeSet<ChannelId>,
        is_here: impl Fn(ChannelId) -> bool,
    ) -> Result<(), BrokenInvariant> {
        let known = self.entities.keys().copied();
        let known: BTreeSet<ChannelId> = known.filter(|&id| is_here(id)).collect();
        hold!(
            known == *entities,
            "groups know of the entities {known:?}, there are {entities:?}"
        );
        let mut holders: BTreeMap<GroupKey, usize> = BTreeMap::new();
        for own in self.entities.values() {
            for group in own.handover.iter().chain(&own.lock) {
                *holders.entry(*group).or_default() += 1;
            }
        }
        let counted = self
            .groups
            .iter()
            .map(|(key, shared)| (*key, shared.holders));
        let counted: BTreeMap<GroupKey, usize> = counted.collect();
        hold!(
            counted == holders,
            "groups count the holders {counted:?}, entities hold {holders:?}"
        );
        Ok(())
    }

    /// The group of an entity, made if it has none.
    fn own_group(&mut self, id: ChannelId, bond: Bond) -> GroupKey {
        let own = self.entities.get_mut(&id).and_then(|own| *own.of(bond));
        own.unwrap_or_else(|| {
            let key = self.new_group();
            self.set(id, bond, Some(key));
            key
        })
    }

    /// An entity takes a group for its own, bringing along those it was with.
    /// One that is locked stays as it is.
    fn adopt(&mut self, id: ChannelId, group: GroupKey, bond: Bond) {
        let Some(own) = self.entities.get(&id) else {
            return;
        };
        let (handover, lock) = (own.handover, own.lock);
        if self.len(lock) > 0 {
            return;
        }
        // Its own group has them already: copying it into itself at every
        // entity would be quadratic.
        if handover != Some(group) {
            let along = self.members(handover);
            self.insert(group, along);
        }
        self.set(id, bond, Some(group));
    }

    fn set(&mut self, id: ChannelId, bond: Bond, group: Option<GroupKey>) {
        let Some(own) = self.entities.get_mut(&id) else {
            return;
        };
        let old = std::mem::replace(own.of(bond), group);
        if let Some(shared) = group.and_then(|group| self.groups.get_mut(&group)) {
            shared.holders += 1;
        }
        if let Some(old) = old
            && let Some(shared) = self.groups.get_mut(&old)
        {
            shared.holders -= 1;
            if shared.holders == 0 {
                self.groups.remove(&old);
            }
        }
    }

    fn new_group(&mut self) -> GroupKey {
        self.last += 1;
        let key = GroupKey(self.last);
        self.groups.insert(key, Shared::default());
        key
    }

    fn handover_of(&self, id: ChannelId) -> Option<GroupKey> {
        self.entities.get(&id)?.handover
    }

    fn members(&self, key: Option<GroupKey>) -> BTreeSet<ChannelId> {
        key.and_then(|key| self.groups.get(&key))
            .map(|group| group.members.clone())
            .unwrap_or_default()
    }

    fn len(&self, key: Option<GroupKey>) -> usize {
        key.and_then(|key| self.groups.get(&key))
            .map_or(0, |group| group.members.len())
    }

    fn has(&self, key: GroupKey, id: ChannelId) -> bool {
        self.groups
            .get(&key)
            .is_some_and(|group| group.members.contains(&id))
    }

    fn insert(&mut self, key: GroupKey, members: impl IntoIterator<Item = ChannelId>) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.members.extend(members);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids<const N: usize>(ids: [u32; N]) -> BTreeSet<ChannelId> {
        ids.into_iter().map(ChannelId).collect()
    }

    fn entities(count: u32) -> EntityGroups {
        let mut groups = EntityGroups::default();
        (1..=count).for_each(|id| groups.add_entity(ChannelId(id)));
        groups
    }

    #[test]
    fn entities_go_together_with_those_they_were_with_before() {
        let mut groups = entities(5);
        assert_eq!(groups.together(ChannelId(1)), ids([1]));
        assert_eq!(groups.together(ChannelId(9)), ids([]), "it is no entity");
        groups.add(ChannelId(1), Bond::Handover, ids([1, 2]), 64);
        groups.add(ChannelId(3), Bond::Handover, ids([3, 4]), 64);
        groups.add(ChannelId(1), Bond::Handover, ids([3]), 64);
        for id in [1, 2, 3] {
            assert_eq!(groups.together(ChannelId(id)), ids([1, 2, 3, 4]));
        }
        groups.remove(ChannelId(1), Bond::Handover, ids([2]));
        assert_eq!(groups.together(ChannelId(1)), ids([1, 3, 4]));
        groups.remove_entity(ChannelId(3));
        assert_eq!(groups.together(ChannelId(1)), ids([1, 4]));
        groups.check(&ids([1, 2, 4, 5]), |_| true).unwrap();
    }

    #[test]
    fn a_group_with_a_locked_entity_does_not_go() {
        let mut groups = entities(2);
        groups.add(ChannelId(1), Bond::Handover, ids([1, 2]), 64);
        groups.add(ChannelId(1), Bond::Lock, ids([1]), 64);
        assert_eq!(groups.together(ChannelId(1)), ids([]));
    }

    #[test]
    fn a_group_that_is_full_takes_nobody_and_says_so() {
        let mut groups = entities(5);
        let grouped = groups.add(ChannelId(1), Bond::Handover, ids([1, 2, 3, 4]), 3);
        assert!(grouped.is_full && grouped.looked_at == 4, "{grouped:?}");
        assert_eq!(groups.together(ChannelId(1)), ids([1, 2, 3]));
        groups.check(&ids([1, 2, 3, 4, 5]), |_| true).unwrap();
    }

    #[test]
    fn groups_that_nobody_holds_are_gone() {
        let mut groups = entities(40);
        for id in (1..=40).map(ChannelId) {
            groups.add(ChannelId(1), Bond::Handover, [id], 64);
        }
        for id in (1..=40).map(ChannelId) {
            groups.remove_entity(id);
        }
        assert!(groups.groups.is_empty() && groups.entities.is_empty());
    }
}
