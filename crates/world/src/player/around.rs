//! What lies around a player in a world of cells: which cells it is shown,
//! who is in them, and which entities it has subscribed to for that.

use std::collections::{BTreeMap, BTreeSet};

use crate::sim::crowd::EntityId;
use crate::wire::ids::EntityKind;

/// What a player knows of the cells around it.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    /// The cells it is subscribed to.
    cells: BTreeSet<u32>,
    /// The pawns in them, and in which.
    pawns: BTreeMap<EntityId, u32>,
    /// From where those that were handed over have come: that cell may list them still, in a
    /// state that is older than the handover and comes after it.
    came_from: BTreeMap<EntityId, u32>,
    /// The entities of others it is subscribed to.
    subscribed: BTreeSet<EntityId>,
    /// The cell whose server receives its messages.
    home: Option<u32>,
}

impl Around {
    /// The cell whose server receives the player's messages.
    pub(super) fn home(&self) -> Option<u32> {
        self.home
    }

    /// Its own pawn is in that cell, or is to come there.
    pub(super) fn settle(&mut self, cell: u32) {
        self.home = Some(cell);
    }

    /// Whether a cell is shown.
    pub(super) fn shows(&self, cell: u32) -> bool {
        self.cells.contains(&cell)
    }

    /// A cell is shown from now on.
    pub(super) fn show(&mut self, cell: u32) {
        self.cells.insert(cell);
        // Its whole state is newer than what was handed over from it before.
        self.came_from.retain(|_, from| *from != cell);
    }

    /// A cell is not shown any more. Returns the pawns in it.
    pub(super) fn hide(&mut self, cell: u32) -> Vec<EntityId> {
        self.cells.remove(&cell);
        let there = |(pawn, at): (&EntityId, &u32)| (*at == cell).then_some(*pawn);
        self.pawns.iter().filter_map(there).collect()
    }

    /// The gateway has subscribed the player to an entity.
    pub(super) fn subscribed(&mut self, entity: EntityId) {
        self.subscribed.insert(entity);
    }

    /// The gateway has ended the player's subscription to an entity. Returns whether the
    /// player took itself to be subscribed, as it does where the gateway subscribed it on its
    /// own after the player had asked to unsubscribe, or where it has asked for it anew.
    pub(super) fn unsubscribed(&mut self, entity: EntityId) -> bool {
        self.subscribed.remove(&entity)
    }

    /// A pawn is in a cell. Returns whether the player has to subscribe to it.
    pub(super) fn appear(&mut self, pawn: EntityId, cell: u32) -> bool {
        self.pawns.insert(pawn, cell);
        self.subscribed.insert(pawn)
    }

    /// A pawn was handed over from a cell.
    pub(super) fn handed_over(&mut self, pawn: EntityId, from: u32) {
        self.came_from.insert(pawn, from);
    }

    /// Whether a cell lists a pawn that was handed over from there.
    pub(super) fn has_left(&self, pawn: EntityId, cell: u32) -> bool {
        self.pawns.get(&pawn).is_some_and(|&at| at != cell)
            && self.came_from.get(&pawn) == Some(&cell)
    }

    /// Whether a pawn is, as far as is known, in that cell.
    pub(super) fn is_in(&self, pawn: EntityId, cell: u32) -> bool {
        self.pawns.get(&pawn) == Some(&cell)
    }

    /// The cell that a pawn is in, as far as is known.
    pub(super) fn cell_of(&self, pawn: EntityId) -> Option<u32> {
        self.pawns.get(&pawn).copied()
    }

    /// A pawn is out of sight. Returns the entities of its player from which
    /// to unsubscribe: what everybody may know of a player stays known.
    pub(super) fn disappear(&mut self, pawn: EntityId) -> Vec<EntityId> {
        self.pawns.remove(&pawn);
        self.came_from.remove(&pawn);
        let Some((player, _)) = EntityKind::parse(pawn) else {
            return Vec::new();
        };
        [EntityKind::Pawn, EntityKind::Controller]
            .into_iter()
            .map(|kind| kind.of(player))
            .filter(|entity| self.subscribed.remove(entity))
            .collect()
    }

    /// An entity's channel is gone.
    pub(super) fn forget(&mut self, entity: EntityId) {
        self.pawns.remove(&entity);
        self.came_from.remove(&entity);
        self.subscribed.remove(&entity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u32 = 0x1_0000;
    const THERE: u32 = 0x1_0001;

    #[test]
    fn who_is_in_a_hidden_cell_is_out_of_sight() {
        let mut around = Around::default();
        let [near, far] = [1, 2].map(|player| EntityKind::Pawn.of(player));
        around.show(HERE);
        around.show(THERE);
        assert!(around.appear(near, HERE));
        assert!(around.appear(far, THERE));
        assert!(!around.appear(far, THERE), "it is subscribed to already");
        assert_eq!(around.hide(THERE), [far]);
        assert_eq!(around.disappear(far), [far]);
        assert!(!around.shows(THERE) && around.shows(HERE));
        assert!(around.is_in(near, HERE) && !around.is_in(far, THERE));
    }

    #[test]
    fn a_cell_that_lists_who_has_left_it_is_not_believed() {
        let pawn = EntityKind::Pawn.of(1);
        let mut around = Around::default();
        around.show(HERE);
        around.show(THERE);
        around.appear(pawn, HERE);
        assert!(!around.has_left(pawn, HERE), "it is there");
        around.handed_over(pawn, HERE);
        around.appear(pawn, THERE);
        assert!(around.has_left(pawn, HERE) && !around.has_left(pawn, THERE));
        assert_eq!(around.hide(HERE), []);
        // It was handed back.
        around.handed_over(pawn, THERE);
        around.appear(pawn, HERE);
        assert!(around.has_left(pawn, THERE) && !around.has_left(pawn, HERE));
        around.show(THERE);
        assert!(!around.has_left(pawn, THERE), "it is listed anew");
        around.handed_over(pawn, THERE);
        around.disappear(pawn);
        assert!(!around.has_left(pawn, THERE), "nothing is known of it");
    }

    #[test]
    fn what_a_handover_brought_goes_with_its_pawn() {
        let mut around = Around::default();
        for kind in EntityKind::ALL {
            around.subscribed(kind.of(7));
        }
        let pawn = EntityKind::Pawn.of(7);
        assert!(!around.appear(pawn, HERE), "the gateway has subscribed it");
        assert_eq!(
            around.disappear(pawn),
            [pawn, EntityKind::Controller.of(7)],
            "everybody knows its player's state"
        );
        assert!(around.appear(pawn, HERE), "it has to subscribe again");
    }
}
