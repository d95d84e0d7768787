//! The entities there are: which of them everybody is shown, and which belong
//! together.

mod entity_groups;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::core::check::BrokenInvariant;
use crate::core::ids::ChannelId;

use entity_groups::EntityGroups;
pub(super) use entity_groups::{Bond, Grouped};

/// All entities.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Entities {
    /// Those that every client is shown.
    well_known: BTreeSet<ChannelId>,
    groups: EntityGroups,
}

impl Entities {
    /// An entity's channel was made.
    pub(super) fn add(&mut self, id: ChannelId) {
        self.groups.add_entity(id);
    }

    /// An entity's channel goes.
    pub(super) fn remove(&mut self, id: ChannelId) {
        self.well_known.remove(&id);
        self.groups.remove_entity(id);
    }

    /// Every client is to be shown an entity from now on.
    pub(super) fn show_to_all(&mut self, id: ChannelId) {
        self.well_known.insert(id);
    }

    /// Those that every client is shown, in order.
    pub(super) fn well_known(&self) -> impl Iterator<Item = ChannelId> {
        self.well_known.iter().copied()
    }

    /// Puts entities into the group of one of them, up to `most`, each with those it
    /// was with.
    pub(super) fn group(
        &mut self,
        to: ChannelId,
        bond: Bond,
        ids: Vec<ChannelId>,
        most: usize,
    ) -> Grouped {
        self.groups.add(to, bond, ids, most)
    }

    /// Takes entities out of the group of one of them. Returns whether there is such a
    /// group.
    pub(super) fn ungroup(&mut self, of: ChannelId, bond: Bond, ids: Vec<ChannelId>) -> bool {
        self.groups.remove(of, bond, ids)
    }

    /// The entities that go where one goes; none if one of them is locked, or if it is
    /// no entity.
    pub(super) fn together(&self, id: ChannelId) -> BTreeSet<ChannelId> {
        self.groups.together(id)
    }

    /// Whether the tables agree with `entities`, which are all there are.
    pub(super) fn check(&self, entities: &BTreeSet<ChannelId>) -> Result<(), BrokenInvariant> {
        self.groups.check(entities)
    }
}
