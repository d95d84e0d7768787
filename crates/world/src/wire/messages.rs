//! The world's words on the wire: which messages, of which types, with what in
//! them.

use lagometer_protocol::any;
use lagometer_protocol::messages::channeldpb::{BroadcastType, SpatialInfo};
use lagometer_protocol::messages::tpspb::{EntityChannelData, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{
    ActorState, CharacterServerMovePackedParams, CharacterState, GameStateBase,
    RemoteFunctionMessage, SpatialChannelData, SpatialEntityState, SpawnObjectMessage,
    UnrealObjectRef,
};
use prost::Message as _;

use crate::sim::crowd::EntityId;
use crate::sim::vector::Vector;
use crate::wire::ids::EntityKind;
use crate::wire::intent::Intent;

/// The channel that everybody may subscribe to.
pub(crate) const GLOBAL: u32 = 0;

/// How the channels of a world's cells are marked, so that a later world finds
/// them if nobody has removed them.
pub(crate) const CELL_MARK: &str = "lagometer cell";

/// How many marks there are for channels of entities: a gateway lists the
/// channels of one mark in one message, which holds more than two thousand.
pub(crate) const ENTITY_MARKS: u32 = 16;

/// How the channels of entities are marked: those of every sixteenth player
/// alike.
pub(crate) fn entity_mark(nth: u32) -> String {
    format!("lagometer entity {:x}", nth % ENTITY_MARKS)
}

/// The engine's message types.
pub(crate) const LOW_LEVEL: u32 = 100;
pub(crate) const RPC: u32 = 102;
pub(crate) const SPAWN: u32 = 103;
pub(crate) const PLAYER_LEFT: u32 = 202;

pub(crate) const SINGLE_CONNECTION: u32 = BroadcastType::SingleConnection as u32;
pub(crate) const ALL_BUT_SERVER: u32 = BroadcastType::AllButServer as u32;

/// The engine's number of an object that others simulate.
pub(crate) const SIMULATED_PROXY: u32 = 1;

pub(crate) const CELL_TYPE_URL: &str = "type.googleapis.com/unrealpb.SpatialChannelData";
pub(crate) const WORLD_TYPE: &str = "tpspb.TestRepChannelData";
pub(crate) const ENTITY_TYPE: &str = "tpspb.EntityChannelData";
pub(crate) const WORLD_TYPE_URL: &str = "type.googleapis.com/tpspb.TestRepChannelData";
pub(crate) const ENTITY_TYPE_URL: &str = "type.googleapis.com/tpspb.EntityChannelData";

/// Bytes of an update after which the next begins: a frame takes 65,535, and
/// entries are some 40 bytes.
const FULL_UPDATE: usize = 60_000;

/// Some more than the longest entry of an update.
const LONGEST_ENTRY: usize = 64;

/// Wraps encoded data with the name of its type.
pub(crate) fn any(type_name: &str, value: Vec<u8>) -> prost_types::Any {
    prost_types::Any {
        type_url: any::type_url(type_name),
        value,
    }
}

/// How the engine's servers refer to a player's object.
pub(crate) fn object(player: u32, kind: EntityKind, owning_conn_id: u32) -> UnrealObjectRef {
    UnrealObjectRef {
        net_guid: Some(kind.of(player).0),
        class_path: Some(kind.class_path().to_owned()),
        owning_conn_id: Some(owning_conn_id),
        ..UnrealObjectRef::default()
    }
}

/// How often a second the stamps of states in GLOBAL's data count.
pub(crate) const STAMPS_PER_S: f64 = 10_000.0;

/// An update of GLOBAL's data that is being filled.
pub(crate) struct WorldUpdate {
    data: TestRepChannelData,
    at_s: f64,
    encoded: Vec<u8>,
}

impl WorldUpdate {
    /// An update as of `at_s` seconds of simulation.
    pub(crate) fn new(at_s: f64) -> Self {
        Self {
            data: TestRepChannelData::default(),
            at_s,
            encoded: Vec::new(),
        }
    }

    /// Adds what is to be sent of an entity: at least that its state is of now.
    /// The stamp is in a field that the engine has no use for in a state that is
    /// replicated; it counts up with every update, as a sequence number does,
    /// and lasts for five days.
    pub(crate) fn push(
        &mut self,
        entity: EntityId,
        actor: Option<ActorState>,
        character: Option<CharacterState>,
    ) {
        let stamped = ActorState {
            remote_role: Some((self.at_s * STAMPS_PER_S) as u32),
            ..actor.unwrap_or_default()
        };
        self.data.actor_states.insert(entity.0, stamped);
        if let Some(character) = character {
            self.data.character_states.insert(entity.0, character);
        }
    }

    /// Whether it is to be sent before anything else is put in.
    pub(crate) fn is_full(&self) -> bool {
        let entries = self.data.actor_states.len() + self.data.character_states.len();
        entries * LONGEST_ENTRY > FULL_UPDATE
    }

    /// As it goes over the wire; the update is then empty again.
    pub(crate) fn encode(&mut self) -> &[u8] {
        self.data.game_state = Some(GameStateBase {
            replicated_world_time_seconds: Some(self.at_s),
            ..GameStateBase::default()
        });
        self.encoded.clear();
        // A vector takes whatever is written.
        let _ = self.data.encode(&mut self.encoded);
        self.data = TestRepChannelData::default();
        &self.encoded
    }
}

/// GLOBAL's update that takes an entity away.
pub(crate) fn world_without(entity: EntityId) -> Vec<u8> {
    let mut data = TestRepChannelData::default();
    let gone = ActorState {
        removed: true,
        ..ActorState::default()
    };
    data.actor_states.insert(entity.0, gone);
    data.encode_to_vec()
}

/// An entity channel's update, stamped with the simulation's time.
pub(crate) fn entity_update(
    actor: ActorState,
    character: Option<CharacterState>,
    at_s: f32,
) -> EntityChannelData {
    EntityChannelData {
        actor_state: Some(actor),
        character_state: Some(CharacterState {
            replay_last_transform_update_time_stamp: Some(at_s),
            ..character.unwrap_or_default()
        }),
        ..EntityChannelData::default()
    }
}

/// A place in the gateway's axes: its z is the engine's y, its y is up.
pub(crate) fn spatial(place: Vector) -> SpatialInfo {
    SpatialInfo {
        x: place.x,
        y: place.z,
        z: place.y,
    }
}

/// A cell's update that takes all of a player's entities away, and their
/// channels with them.
pub(crate) fn cell_without(player: u32) -> Vec<u8> {
    let gone = || SpatialEntityState {
        removed: true,
        ..SpatialEntityState::default()
    };
    let entities = EntityKind::ALL
        .into_iter()
        .map(|kind| (kind.of(player).0, gone()))
        .collect();
    SpatialChannelData { entities }.encode_to_vec()
}

/// What a player says before it has a pawn: its number.
pub(crate) fn login(player: u32) -> [u8; 4] {
    player.to_le_bytes()
}

/// Reads what [`login`] wrote.
pub(crate) fn read_login(payload: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(payload.try_into().ok()?))
}

/// Reads whose pawn an object is: its id, and the connection that owns it.
pub(crate) fn read_spawn(payload: &[u8]) -> Option<(EntityId, Option<u32>)> {
    let spawn = SpawnObjectMessage::decode(payload).ok()?;
    let UnrealObjectRef {
        net_guid,
        owning_conn_id,
        ..
    } = spawn.obj?;
    Some((EntityId(net_guid?), owning_conn_id))
}

/// A player's remote call that moves its pawn.
pub(crate) fn move_call(pawn: EntityId, intent: &Intent) -> Vec<u8> {
    call(pawn, "ServerMovePacked", &intent.pack())
}

/// The server's answer: which move it has applied.
pub(crate) fn move_answer(pawn: EntityId, intent: &Intent) -> Vec<u8> {
    call(
        pawn,
        "ClientMoveResponsePacked",
        &intent.sequence.to_le_bytes(),
    )
}

fn call(target: EntityId, function: &str, packed: &[u8]) -> Vec<u8> {
    // Both directions' parameters have the same two fields.
    let parameters = CharacterServerMovePackedParams {
        bits_num: 8 * packed.len() as u32,
        packed_bits: packed.to_vec().into(),
    };
    RemoteFunctionMessage {
        target_obj: Some(UnrealObjectRef {
            net_guid: Some(target.0),
            ..UnrealObjectRef::default()
        }),
        function_name: function.to_owned(),
        params_payload: parameters.encode_to_vec().into(),
        ..RemoteFunctionMessage::default()
    }
    .encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_as_long_as_published() {
        let pawn = EntityKind::Pawn.of(17);
        let intent = Intent::default();
        // 73 and 43 bytes, give or take a field's length.
        assert!((71..=75).contains(&move_call(pawn, &intent).len()));
        assert!((41..=45).contains(&move_answer(pawn, &intent).len()));
    }

    #[test]
    fn a_full_update_fits_a_frame() {
        let mut update = WorldUpdate::new(1.0);
        let mut player = 0;
        while !update.is_full() {
            let entity = EntityKind::Pawn.of(player);
            let body = crate::sim::body::Body::standing(
                crate::sim::vector::Vector {
                    x: 1.5,
                    y: -1.5,
                    z: 2.5,
                },
                crate::sim::vector::Yaw::new(45.0),
            );
            let mut replica = crate::wire::replica::Replica::default();
            update.push(
                entity,
                replica.actor_changes(&body),
                replica.character_changes(&body),
            );
            player += 1;
        }
        let len = update.encode().len();
        assert!((25_000..=FULL_UPDATE).contains(&len), "{len}");
    }

    #[test]
    fn logins_are_read_back() {
        assert_eq!(read_login(&login(70_000)), Some(70_000));
        assert_eq!(read_login(b"player"), None);
    }
}
