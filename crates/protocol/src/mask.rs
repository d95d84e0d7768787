//! Field masks: the part of a channel's data that a subscriber wants.

use std::collections::BTreeMap;

use crate::schema::DataType;
use crate::schema::layout::{Kind, Layouts, Shape};
use crate::wire::{
    Reader, Value, WireError, WireType, close_length, open_length, put_bytes_field, put_key,
};

/// A set of field paths, made ready for one type of data.
///
/// A path is made of field names with dots between: `actorState.removed`. It
/// leads through messages, through the messages in a list (each of them) and
/// through the messages in a map (each value). A field that no path names is
/// left out. Where both a field and something within it are named, only what
/// is within is kept.
///
/// Whether an entry of a map is `removed` is kept in any case: a subscriber
/// that sees the map at all must learn that an entry is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    data_type: DataType,
    root: Names,
}

/// The most levels of one path. A mask is walked, compared and dropped level by
/// level on the stack, so a peer must not choose how deep it goes; channel data
/// of games is four or five levels deep.
pub const MAX_MASK_DEPTH: usize = 32;

/// Names with what is wanted within them; all of it when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names(BTreeMap<String, Self>);

/// The field numbers that the names are in one message, in order.
type Wanted<'m> = Vec<(u32, &'m Names)>;

impl Mask {
    /// A mask of `paths`. `None` when they name nothing at all: everything is
    /// then wanted. A name that the type does not have is no mistake; there is
    /// just nothing to keep for it; neither is one of more than
    /// [`MAX_MASK_DEPTH`] levels, which counts as naming nothing that is there.
    #[must_use]
    pub fn new<'p>(data_type: DataType, paths: impl IntoIterator<Item = &'p str>) -> Option<Self> {
        let mut root = Names::default();
        for path in paths {
            let mut names = &mut root;
            // What lies deeper is not looked for: the whole of the last level
            // would be kept where something within it was asked for, so the
            // path leads to a name that no field has.
            if mask_depth(path) > MAX_MASK_DEPTH {
                names.0.entry(String::new()).or_default();
                continue;
            }
            for name in path.split('.').filter(|name| !name.is_empty()) {
                names = names.0.entry(name.to_owned()).or_default();
            }
        }
        (!root.0.is_empty()).then_some(Self { data_type, root })
    }

    /// Appends what the mask keeps of `encoded`. Fields that the type does not
    /// know are left out.
    ///
    /// # Errors
    ///
    /// [`WireError`] when `encoded` is not a message of the type; what was
    /// appended then has no meaning.
    pub fn apply(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        keep(
            &self.root,
            self.data_type.layouts(),
            self.data_type.index(),
            None,
            encoded,
            out,
        )
    }

    /// The type it was made for.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }
}

/// How many levels a path of a mask has.
#[must_use]
pub fn mask_depth(path: &str) -> usize {
    path.split('.').filter(|name| !name.is_empty()).count()
}

/// Appends the fields of one message that are named, and `also`.
fn keep(
    names: &Names,
    layouts: &Layouts,
    index: usize,
    also: Option<u32>,
    encoded: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let layout = layouts.message(index);
    let wanted: Wanted<'_> = layout
        .fields
        .iter()
        .filter_map(|field| Some((field.number, names.0.get(&field.name)?)))
        .collect();
    let mut reader = Reader::new(encoded);
    while let Some(field) = reader.next_field()? {
        let Ok(position) = wanted.binary_search_by_key(&field.number, |(number, _)| *number) else {
            if also == Some(field.number) {
                out.extend_from_slice(field.raw);
            }
            continue;
        };
        let within = wanted[position].1;
        let Some(known) = layout.known(&field) else {
            continue;
        };
        match known.shape {
            _ if within.0.is_empty() => out.extend_from_slice(field.raw),
            Shape::Single {
                kind: Kind::Message(inner),
                ..
            }
            | Shape::List {
                kind: Kind::Message(inner),
                ..
            } => {
                put_key(out, field.number, WireType::Bytes);
                let mark = open_length(out);
                keep(within, layouts, inner, None, field.bytes()?, out)?;
                close_length(out, mark);
            }
            Shape::Map {
                value: Kind::Message(inner),
                removed,
                ..
            } => {
                put_key(out, field.number, WireType::Bytes);
                let mark = open_length(out);
                keep_entry(within, layouts, inner, removed, field.bytes()?, out)?;
                close_length(out, mark);
            }
            // There is nothing within a number or a text.
            _ => out.extend_from_slice(field.raw),
        }
    }
    Ok(())
}

fn keep_entry(
    within: &Names,
    layouts: &Layouts,
    inner: usize,
    removed: Option<u32>,
    entry: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let mut value = Vec::new();
    let mut reader = Reader::new(entry);
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => out.extend_from_slice(field.raw),
            2 => {
                if let Value::Bytes(message) = field.value {
                    keep(within, layouts, inner, removed, message, &mut value)?;
                }
            }
            _ => {}
        }
    }
    put_bytes_field(out, 2, &value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::messages::tpspb::{TestNpcState, TestRepChannelData, TestRepGameState};
    use crate::messages::unrealpb::{ActorState, FVector, GameStateBase};
    use crate::schema::Schema;

    fn data() -> TestRepChannelData {
        TestRepChannelData {
            game_state: Some(GameStateBase {
                replicated_world_time_seconds: Some(3.5),
                b_replicated_has_begun_play: Some(true),
                ..GameStateBase::default()
            }),
            actor_states: [
                (
                    7,
                    ActorState {
                        b_hidden: Some(true),
                        local_role: Some(3),
                        ..ActorState::default()
                    },
                ),
                (
                    8,
                    ActorState {
                        removed: true,
                        ..ActorState::default()
                    },
                ),
            ]
            .into(),
            test_game_state: Some(TestRepGameState { jumps: Some(5) }),
            test_npc_states: [(
                7,
                TestNpcState {
                    b_moving: Some(true),
                    goal_location: Some(FVector {
                        x: Some(1.0),
                        y: Some(2.0),
                        z: None,
                    }),
                },
            )]
            .into(),
            ..TestRepChannelData::default()
        }
    }

    fn masked(paths: &[&str]) -> TestRepChannelData {
        let data_type = Schema::bundled().find("tpspb.TestRepChannelData").unwrap();
        let mask = Mask::new(data_type, paths.iter().copied()).unwrap();
        let mut out = Vec::new();
        mask.apply(&data().encode_to_vec(), &mut out).unwrap();
        TestRepChannelData::decode(&*out).unwrap()
    }

    #[test]
    fn a_named_field_is_kept_whole_and_others_go() {
        let expected = TestRepChannelData {
            test_game_state: data().test_game_state,
            ..TestRepChannelData::default()
        };
        assert_eq!(masked(&["testGameState"]), expected);
        assert_eq!(masked(&["testGameState", "noSuchField"]), expected);
        assert_eq!(masked(&["noSuchField"]), TestRepChannelData::default());
        assert_eq!(masked(&["testGameState.jumps.deeper"]), expected);
    }

    #[test]
    fn a_path_leads_into_messages_and_values() {
        let kept = masked(&[
            "gameState.bReplicatedHasBegunPlay",
            "testNPCStates.goalLocation.y",
        ]);
        let game_state = kept.game_state.unwrap();
        assert_eq!(game_state.b_replicated_has_begun_play, Some(true));
        assert_eq!(game_state.replicated_world_time_seconds, None);
        let npc = &kept.test_npc_states[&7];
        assert_eq!(npc.b_moving, None);
        let goal = npc.goal_location.unwrap();
        assert_eq!((goal.x, goal.y), (None, Some(2.0)));
        assert!(kept.actor_states.is_empty());
    }

    #[test]
    fn what_is_within_narrows_what_is_named() {
        let kept = masked(&["gameState", "gameState.replicatedWorldTimeSeconds"]);
        let game_state = kept.game_state.unwrap();
        assert_eq!(game_state.replicated_world_time_seconds, Some(3.5));
        assert_eq!(game_state.b_replicated_has_begun_play, None);
    }

    #[test]
    fn a_removal_is_never_hidden() {
        let kept = masked(&["actorStates.bHidden"]);
        assert_eq!(kept.actor_states[&7].b_hidden, Some(true));
        assert_eq!(kept.actor_states[&7].local_role, None);
        assert!(kept.actor_states[&8].removed);
    }

    #[test]
    fn a_mask_of_thousands_of_levels_does_not_overflow_the_stack() {
        let data_type = Schema::bundled().find("tpspb.TestRepChannelData").unwrap();
        // Enough to overflow a stack of 2 MiB by dropping alone.
        let deep = "a.".repeat(500_000);
        let mask = Mask::new(data_type.clone(), [deep.as_str(), "testGameState"]).unwrap();
        assert_eq!(mask, mask.clone());
        let mut out = Vec::new();
        mask.apply(&data().encode_to_vec(), &mut out).unwrap();
        let kept = TestRepChannelData::decode(&*out).unwrap();
        assert_eq!(kept, masked(&["testGameState"]));
        // Alone it still is a mask: who asked for something is not sent all.
        let alone = Mask::new(data_type.clone(), [deep.as_str()]).unwrap();
        out.clear();
        alone.apply(&data().encode_to_vec(), &mut out).unwrap();
        assert!(out.is_empty());
        let deepest = vec!["a"; MAX_MASK_DEPTH].join(".");
        assert_eq!(mask_depth(&deepest), MAX_MASK_DEPTH);
        assert!(Mask::new(data_type, [deepest.as_str()]).is_some());
    }

    #[test]
    fn paths_that_name_nothing_are_no_mask() {
        let data_type = Schema::bundled().find("tpspb.TestRepChannelData").unwrap();
        assert_eq!(Mask::new(data_type.clone(), []), None);
        assert_eq!(Mask::new(data_type, ["", "."]), None);
    }
}
