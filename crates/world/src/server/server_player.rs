//! A player as the server knows it that simulates its character.

use std::time::Duration;

use lagometer_protocol::messages::unrealpb::{
    CharacterServerMovePackedParams, RemoteFunctionMessage,
};
use lagometer_units::Time;
use prost::Message as _;

use crate::sim::body::Body;
use crate::sim::crowd::{Crowd, EntityId};
use crate::sim::ground::Ground;
use crate::sim::scenario::Scenario;
use crate::sim::seed::{derive, unit_interval};
use crate::sim::vector::{Vector, Yaw};
use crate::wire::ids::EntityKind;
use crate::wire::intent::Intent;
use crate::wire::replica::Replica;

const FIRST_YAW: u64 = 20;
const LANDING: u64 = 21;

/// Acknowledgements of moves to each player, a second: the engine's default
/// while nothing needs correction.
const ACKS_PER_S: u32 = 10;

/// A player, as its server knows it.
#[derive(Debug)]
pub(super) struct ServerPlayer {
    pub(super) conn_id: u32,
    pub(super) intent: Intent,
    pub(super) replica: Replica,
    pub(super) acknowledged_at: Time,
}

impl ServerPlayer {
    /// A player who has just come and wants nothing yet.
    pub(super) fn new(conn_id: u32, now: Time) -> Self {
        Self {
            conn_id,
            intent: Intent::default(),
            replica: Replica::default(),
            acknowledged_at: now,
        }
    }

    /// Does to the character of the player numbered `player` what it newly
    /// wants. Returns whether that was news.
    pub(super) fn apply_input(
        &mut self,
        player: u32,
        intent: Intent,
        crowd: &mut Crowd,
        ground: &Ground,
        scenario: &Scenario,
    ) -> bool {
        // What is older than what is known was overtaken at a handover.
        if intent.sequence <= self.intent.sequence {
            return false;
        }
        let entity = EntityKind::Pawn.of(player);
        if let Some(body) = crowd.body_mut(entity) {
            body.yaw
                .turn(intent.quarters.wrapping_sub(self.intent.quarters));
        }
        if intent.jumps != self.intent.jumps {
            crowd.jump(entity);
        }
        if intent.teleports != self.intent.teleports {
            teleport(player, intent.teleports, crowd, ground, scenario);
        }
        self.intent = intent;
        true
    }

    /// Whether a move is to be answered now, which then counts as done.
    pub(super) fn answer_is_due(&mut self, now: Time) -> bool {
        let each = Duration::from_secs(1) / ACKS_PER_S;
        if now.since(self.acknowledged_at) < each || self.intent.sequence == 0 {
            return false;
        }
        // Not simply now: frames are coarse, and the rate would sink.
        let due = self.acknowledged_at + each;
        self.acknowledged_at = if now.since(due) < each { due } else { now };
        true
    }
}

/// The character of the player numbered `player` at `place`, as it comes into
/// the world.
pub(super) fn newcomer(scenario: &Scenario, player: u32, place: Vector) -> Body {
    let yaw = 90.0 * unit_interval(derive(scenario.seed, FIRST_YAW, u64::from(player)));
    Body::standing(place, Yaw::new(yaw))
}

/// Puts a character somewhere else at once; it stays where it is if there is
/// no room.
fn teleport(player: u32, nth: u32, crowd: &mut Crowd, ground: &Ground, scenario: &Scenario) {
    let seed = derive(scenario.seed, LANDING, u64::from(player));
    let radius_cm = scenario.movement.radius_cm;
    let place = ground.starting_place(seed, nth, radius_cm, |place| crowd.occupied(place));
    if let (Ok(place), Some(body)) = (place, crowd.body_mut(EntityKind::Pawn.of(player))) {
        *body = Body::standing(place, body.yaw);
    }
}

/// A player's packed move within a remote call.
pub(super) fn read_move(payload: &[u8]) -> Option<Intent> {
    let call = RemoteFunctionMessage::decode(payload).ok()?;
    let parameters = CharacterServerMovePackedParams::decode(&*call.params_payload).ok()?;
    Intent::unpack(&parameters.packed_bits).ok()
}

/// The player whose pawn an entity is.
pub(super) fn player_of(entity: EntityId) -> Option<u32> {
    match EntityKind::parse(entity)? {
        (player, EntityKind::Pawn) => Some(player),
        _ => None,
    }
}
