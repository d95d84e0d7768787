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
    /// The pawns in them, and in which: while one crosses, the cell that it leaves may say so
    /// later than the one that it enters.
    pawns: BTreeMap<EntityId, BTreeSet<u32>>,
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
    }

    /// A cell is not shown any more. Returns the pawns that are in no other.
    pub(super) fn hide(&mut self, cell: u32) -> Vec<EntityId> {
        self.cells.remove(&cell);
        let pawns: Vec<EntityId> = self.pawns.keys().copied().collect();
        pawns
            .into_iter()
            .filter(|&pawn| self.leave(pawn, cell))
            .collect()
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
        self.pawns.entry(pawn).or_default().insert(cell);
        self.subscribed.insert(pawn)
    }

    /// A pawn has left a cell. Returns whether it was in that one and is in no other now.
    pub(super) fn leave(&mut self, pawn: EntityId, cell: u32) -> bool {
        let cells = self.pawns.get_mut(&pawn);
        cells.is_some_and(|cells| cells.remove(&cell) && cells.is_empty())
    }

    /// A cell that a pawn is in, as far as is known.
    pub(super) fn cell_of(&self, pawn: EntityId) -> Option<u32> {
        self.pawns.get(&pawn)?.first().copied()
    }

    /// A pawn is out of sight. Returns the entities of its player from which
    /// to unsubscribe: what everybody may know of a player stays known.
    pub(super) fn disappear(&mut self, pawn: EntityId) -> Vec<EntityId> {
        self.pawns.remove(&pawn);
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
        assert_eq!(around.cell_of(near), Some(HERE));
        assert_eq!(around.cell_of(far), None);
    }

    #[test]
    fn who_has_crossed_stays_in_sight_whichever_cell_speaks_first() {
        let pawn = EntityKind::Pawn.of(1);
        let mut around = Around::default();
        around.show(HERE);
        around.show(THERE);
        around.appear(pawn, HERE);
        // It has crossed, which the cell that it has left does not know yet.
        around.leave(pawn, HERE);
        around.appear(pawn, THERE);
        around.appear(pawn, HERE);
        assert!(!around.leave(pawn, HERE), "it is there");
        around.appear(pawn, HERE);
        assert_eq!(around.hide(HERE), []);
        assert_eq!(around.cell_of(pawn), Some(THERE));
        assert_eq!(around.hide(THERE), [pawn]);
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
