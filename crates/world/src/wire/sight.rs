//! Reading what a player is sent, without unpacking what it does not need.
//!
//! Players by the thousand read the same states: only places and times are
//! taken from the wire, nothing is allocated.

use lagometer_protocol::wire::{Reader, Value, WireError};

use crate::sim::crowd::EntityId;
use crate::wire::messages::STAMPS_PER_S;

/// Field numbers of the messages that are read: `tpspb.TestRepChannelData`,
/// `tpspb.EntityChannelData` and what of `unrealpb` they hold.
mod field {
    pub(super) const GAME_STATE: u32 = 1;
    pub(super) const WORLD_TIME: u32 = 4;
    pub(super) const ACTOR_STATES: u32 = 2;
    pub(super) const MAP_KEY: u32 = 1;
    pub(super) const MAP_VALUE: u32 = 2;
    pub(super) const ENTITY_ACTOR_STATE: u32 = 2;
    pub(super) const ENTITY_PAWN_STATE: u32 = 3;
    pub(super) const ENTITY_CHARACTER_STATE: u32 = 4;
    pub(super) const REMOVED: u32 = 1;
    pub(super) const REMOTE_ROLE: u32 = 5;
    pub(super) const REPLICATED_MOVEMENT: u32 = 11;
    pub(super) const LOCATION: u32 = 3;
    pub(super) const STAMP: u32 = 9;
    pub(super) const SIMULATED_BY: u32 = 3;
}

/// What an update says of one entity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sighting {
    /// It is gone.
    pub(crate) removed: bool,
    /// The components of its place that changed: x, y, z.
    pub(crate) place: [Option<f32>; 3],
    /// The simulation's time of this state in seconds, where it is stamped.
    pub(crate) at_s: Option<f64>,
    /// The number of the server that simulates it, where it says so.
    pub(crate) by: Option<u32>,
}

/// Reads GLOBAL's data: calls `seen` with each entity in it and returns the
/// simulation's time of all of it, where it has one.
pub(crate) fn read_world(
    data: &[u8],
    mut seen: impl FnMut(EntityId, Sighting),
) -> Result<Option<f64>, WireError> {
    let mut at_s = None;
    let mut reader = Reader::new(data);
    while let Some(entry) = reader.next_field()? {
        match entry.number {
            field::GAME_STATE => {
                if let Some(time) = number64(entry.bytes()?, field::WORLD_TIME)? {
                    at_s = Some(time);
                }
            }
            field::ACTOR_STATES => {
                let (entity, sighting) = read_entry(entry.bytes()?)?;
                seen(entity, sighting);
            }
            _ => {}
        }
    }
    Ok(at_s)
}

/// Reads an entity channel's data.
pub(crate) fn read_entity(data: &[u8]) -> Result<Sighting, WireError> {
    let mut sighting = Sighting::default();
    let mut reader = Reader::new(data);
    while let Some(part) = reader.next_field()? {
        match part.number {
            field::ENTITY_ACTOR_STATE => read_actor(part.bytes()?, &mut sighting)?,
            field::ENTITY_PAWN_STATE => {
                let mut pawn = Reader::new(part.bytes()?);
                while let Some(part) = pawn.next_field()? {
                    if part.number == field::SIMULATED_BY {
                        sighting.by = Some(part.uint32()?);
                    }
                }
            }
            field::ENTITY_CHARACTER_STATE => {
                let stamp = number32(part.bytes()?, field::STAMP)?;
                sighting.at_s = stamp.map(f64::from).or(sighting.at_s);
            }
            _ => {}
        }
    }
    Ok(sighting)
}

fn read_entry(entry: &[u8]) -> Result<(EntityId, Sighting), WireError> {
    let mut entity = EntityId(0);
    let mut sighting = Sighting::default();
    let mut reader = Reader::new(entry);
    while let Some(part) = reader.next_field()? {
        match part.number {
            field::MAP_KEY => entity = EntityId(part.uint32()?),
            field::MAP_VALUE => read_actor(part.bytes()?, &mut sighting)?,
            _ => {}
        }
    }
    Ok((entity, sighting))
}

fn read_actor(actor: &[u8], sighting: &mut Sighting) -> Result<(), WireError> {
    let mut reader = Reader::new(actor);
    while let Some(part) = reader.next_field()? {
        match part.number {
            field::REMOVED => sighting.removed = part.uint32()? != 0,
            field::REMOTE_ROLE => {
                sighting.at_s = Some(f64::from(part.uint32()?) / STAMPS_PER_S);
            }
            field::REPLICATED_MOVEMENT => {
                let mut movement = Reader::new(part.bytes()?);
                while let Some(part) = movement.next_field()? {
                    if part.number == field::LOCATION {
                        read_vector(part.bytes()?, &mut sighting.place)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_vector(vector: &[u8], components: &mut [Option<f32>; 3]) -> Result<(), WireError> {
    let mut reader = Reader::new(vector);
    while let Some(component) = reader.next_field()? {
        if let (1..=3, Value::Fixed32(bits)) = (component.number, component.value) {
            components[component.number as usize - 1] = Some(f32::from_bits(bits));
        }
    }
    Ok(())
}

fn number32(message: &[u8], number: u32) -> Result<Option<f32>, WireError> {
    let mut found = None;
    let mut reader = Reader::new(message);
    while let Some(part) = reader.next_field()? {
        if let (true, Value::Fixed32(bits)) = (part.number == number, part.value) {
            found = Some(f32::from_bits(bits));
        }
    }
    Ok(found)
}

fn number64(message: &[u8], number: u32) -> Result<Option<f64>, WireError> {
    let mut found = None;
    let mut reader = Reader::new(message);
    while let Some(part) = reader.next_field()? {
        if let (true, Value::Fixed64(bits)) = (part.number == number, part.value) {
            found = Some(f64::from_bits(bits));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::tpspb::{EntityChannelData, TestRepChannelData};
    use lagometer_protocol::messages::unrealpb::{
        ActorState, CharacterState, FRepMovement, FVector, GameStateBase, PawnState,
    };
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    fn actor(place: [Option<f32>; 3], removed: bool) -> ActorState {
        let [x, y, z] = place;
        ActorState {
            removed,
            replicated_movement: Some(FRepMovement {
                linear_velocity: Some(FVector::default()),
                location: Some(FVector { x, y, z }),
                ..FRepMovement::default()
            }),
            ..ActorState::default()
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            places in proptest::collection::btree_map(
                any::<u32>(),
                any::<[Option<f32>; 3]>()
                    .prop_filter("comparable", |place| place.iter().flatten().all(|x| !x.is_nan())),
                0..20,
            ),
            removed: bool,
            at_s in 0.0..1e6_f64,
        ) {
            let data = TestRepChannelData {
                game_state: Some(GameStateBase {
                    replicated_world_time_seconds: Some(at_s),
                    ..GameStateBase::default()
                }),
                actor_states: places
                    .iter()
                    .map(|(&id, &place)| (id, actor(place, removed)))
                    .collect(),
                ..TestRepChannelData::default()
            };
            let mut seen = std::collections::BTreeMap::new();
            let found = read_world(&data.encode_to_vec(), |entity, sighting| {
                assert_eq!(sighting.removed, removed);
                seen.insert(entity.0, sighting.place);
            });
            prop_assert_eq!(found, Ok(Some(at_s)));
            prop_assert_eq!(seen, places);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = read_world(&bytes, |_, _| {});
            let _ = read_entity(&bytes);
        }
    }

    #[test]
    fn an_entity_is_read_with_its_stamp() {
        let data = EntityChannelData {
            actor_state: Some(actor([Some(1.0), None, Some(3.0)], false)),
            character_state: Some(CharacterState {
                replay_last_transform_update_time_stamp: Some(12.5),
                ..CharacterState::default()
            }),
            pawn_state: Some(PawnState {
                remote_view_pitch: Some(4),
                ..PawnState::default()
            }),
            ..EntityChannelData::default()
        };
        let sighting = read_entity(&data.encode_to_vec()).unwrap();
        assert_eq!((sighting.at_s, sighting.by), (Some(12.5), Some(4)));
        assert_eq!(sighting.place, [Some(1.0), None, Some(3.0)]);
    }
}
