//! Which numbers the world's things have on the wire.

use crate::sim::crowd::EntityId;

/// Where a gateway's entity channels begin, and the world's net ids with them.
pub(crate) const FIRST_ENTITY: u32 = 0x8_0000;

/// Entities that belong to each player.
pub(crate) const EACH: u32 = 3;

/// What of a player an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntityKind {
    /// What walks.
    Pawn,
    /// What the player holds it by.
    Controller,
    /// What everybody may know of the player.
    PlayerState,
}

impl EntityKind {
    pub(crate) const ALL: [Self; 3] = [Self::Pawn, Self::Controller, Self::PlayerState];

    /// The net id of this entity of the player numbered `player`.
    pub(crate) fn of(self, player: u32) -> EntityId {
        EntityId(FIRST_ENTITY + EACH * player + self as u32)
    }

    /// Whose an entity is, and of which kind; `None` for what belongs to nobody.
    pub(crate) fn parse(entity: EntityId) -> Option<(u32, Self)> {
        let nth = entity.0.checked_sub(FIRST_ENTITY)?;
        Some((nth / EACH, Self::ALL[(nth % EACH) as usize]))
    }

    /// The engine's class, as its servers write it.
    pub(crate) const fn class_path(self) -> &'static str {
        match self {
            Self::Pawn => "/Game/Blueprints/BP_TestRepPlayer.BP_TestRepPlayer_C",
            Self::Controller => "/Game/Blueprints/BP_TestPC.BP_TestPC_C",
            Self::PlayerState => "/Script/Engine.PlayerState",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_back_to_their_players() {
        for player in [0, 1, 2, 999] {
            for kind in EntityKind::ALL {
                assert_eq!(EntityKind::parse(kind.of(player)), Some((player, kind)));
            }
        }
        assert_eq!(EntityKind::parse(EntityId(7)), None);
    }
}
