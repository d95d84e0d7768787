//! Updates that have nothing in common need no merging: one after the other
//! they are the window.
//!
//! Where every player updates its own state, as games mostly do, windows are of
//! this kind. Taking their updates apart and putting them together again would
//! cost more than everything else that is done with them.

use crate::schema::DataType;
use crate::schema::layout::Shape;
use crate::schema::rules::Rule;
use crate::wire::{self, Reader, WireError, WireType};

use super::fields::{Entry, EntryValue};
use super::window::{Piece, WindowBytes, oneof_field};

/// What [`WindowBytes::side_by_side`] stands for: `None` where updates touch
/// the same thing, or one of them says more than what it sets.
pub(super) fn lay(
    data_type: &DataType,
    updates: &[(u32, &[u8])],
) -> Result<Option<WindowBytes>, WireError> {
    let mut order: Vec<usize> = (0..updates.len()).collect();
    order.sort_unstable_by_key(|&index| updates[index].0);
    let is_repeated = |pair: &[usize]| updates[pair[0]].0 == updates[pair[1]].0;
    if order.windows(2).any(is_repeated) {
        return Ok(None);
    }
    let mut pieces = Vec::with_capacity(updates.len());
    for (_, update) in updates {
        if !note_pieces(data_type, update, &mut pieces)? {
            return Ok(None);
        }
    }
    pieces.sort_unstable();
    if pieces.windows(2).any(|pair| pair[0] == pair[1]) {
        return Ok(None);
    }
    let len = updates.iter().map(|(_, update)| update.len()).sum();
    let mut bytes = Vec::with_capacity(len);
    let own = order
        .into_iter()
        .map(|index| {
            let (sender, update) = updates[index];
            let start = bytes.len();
            bytes.extend_from_slice(update);
            (sender, Some(start..bytes.len()))
        })
        .collect();
    Ok(Some(WindowBytes { bytes, own }))
}

/// Notes what an update touches. Returns whether it only sets things.
fn note_pieces(
    data_type: &DataType,
    update: &[u8],
    pieces: &mut Vec<Piece>,
) -> Result<bool, WireError> {
    let layout = data_type.layout();
    let mut reader = Reader::new(update);
    while let Some(field) = reader.next_field()? {
        let Some(known) = layout.known(&field) else {
            return Ok(false);
        };
        if known.rule == Rule::Skip {
            return Ok(false);
        }
        let Shape::Map {
            key,
            value,
            removed,
        } = known.shape
        else {
            pieces.push(Piece::field(oneof_field(layout, known.number)));
            continue;
        };
        let entry = Entry::read(key, value, field.bytes()?)?;
        // What is removed may be in other maps too, and the order counts.
        if let (Some(removed), EntryValue::Message(encoded)) = (removed, &entry.value)
            && let Some(wire::Value::Varint(1..)) =
                wire::find(encoded, &[removed], WireType::Varint)?
        {
            return Ok(false);
        }
        pieces.push(Piece::entry(known.number, entry.key));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::messages::tpspb::TestRepChannelData;
    use crate::messages::unrealpb::{ActorState, GameStateBase};
    use crate::schema::Schema;

    fn actors(ids: &[u32], removed: bool) -> Vec<u8> {
        let state = ActorState {
            removed,
            local_role: Some(3),
            ..ActorState::default()
        };
        let actor_states = ids.iter().map(|&id| (id, state.clone())).collect();
        TestRepChannelData {
            actor_states,
            ..TestRepChannelData::default()
        }
        .encode_to_vec()
    }

    fn lay_bare(updates: &[(u32, &[u8])]) -> Option<WindowBytes> {
        let data_type = Schema::bundled().find("tpspb.TestRepChannelData").unwrap();
        WindowBytes::side_by_side(&data_type, updates)
    }

    #[test]
    fn who_touches_something_of_his_own_is_cut_out_whole() {
        let (of_7, of_3) = (actors(&[1, 2], false), actors(&[4], false));
        let window = lay_bare(&[(7, &of_7), (3, &of_3)]).unwrap();
        assert_eq!(window.all(), [of_3.clone(), of_7.clone()].concat());
        assert_eq!(window.without(7).unwrap().concat(), of_3);
        assert_eq!(window.without(3).unwrap().concat(), of_7);
        assert_eq!(window.senders().collect::<Vec<_>>(), [3, 7]);
    }

    #[test]
    fn what_has_to_be_merged_is_not_laid_side_by_side() {
        let (one, other) = (actors(&[1, 2], false), actors(&[4], false));
        assert_eq!(lay_bare(&[(7, &one), (3, &one)]), None, "the same entries");
        assert_eq!(lay_bare(&[(7, &one), (7, &other)]), None, "one sender");
        let gone = actors(&[5], true);
        assert_eq!(lay_bare(&[(7, &one), (3, &gone)]), None, "a removal");
        let state = TestRepChannelData {
            game_state: Some(GameStateBase::default()),
            ..TestRepChannelData::default()
        }
        .encode_to_vec();
        assert!(lay_bare(&[(7, &one), (3, &state)]).is_some());
        assert_eq!(lay_bare(&[(7, &state), (3, &state)]), None, "one field");
        let unknown = [0xf8, 0x7f, 1];
        assert_eq!(lay_bare(&[(7, &one), (3, &unknown)]), None, "who knows");
        assert_eq!(lay_bare(&[(7, &one), (3, &[0x12, 9])]), None, "broken");
    }
}
