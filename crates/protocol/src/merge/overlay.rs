//! Updates of plain fields can be laid one over the other as they are encoded.
//!
//! What a game server says of one thing, frame by frame, is mostly of this
//! kind: numbers and texts, in messages within messages, in the order of their
//! numbers. Walking two of them side by side and writing down, of each field,
//! the later one costs no more than reading both; taking them apart and putting
//! them together again costs an allocation for every message there is.

use crate::schema::DataType;
use crate::schema::layout::{FieldLayout, Kind, Layouts, Shape};
use crate::schema::rules::Rule;
use crate::wire::{
    Field, MAX_DEPTH, Reader, Value, WireError, WireType, close_length, open_length, put_key,
};

/// What [`WindowBytes::overlay`](super::WindowBytes::overlay) stands for:
/// `None` where there is more to it.
pub(super) fn overlay(
    data_type: &DataType,
    updates: &[&[u8]],
) -> Result<Option<Vec<u8>>, WireError> {
    let (layouts, index) = (data_type.layouts(), data_type.index());
    let Some((first, rest)) = updates.split_first() else {
        return Ok(Some(Vec::new()));
    };
    let mut laid = first.to_vec();
    let mut out = Vec::with_capacity(laid.len() * 2);
    for later in rest {
        out.clear();
        if !lay(layouts, index, &laid, later, 0, &mut out)? {
            return Ok(None);
        }
        std::mem::swap(&mut laid, &mut out);
    }
    Ok(Some(laid))
}

/// Writes down what two messages are together. Returns whether they are such
/// that this can be done.
fn lay(
    layouts: &Layouts,
    index: usize,
    earlier: &[u8],
    later: &[u8],
    depth: u32,
    out: &mut Vec<u8>,
) -> Result<bool, WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    let layout = layouts.message(index);
    let (mut earlier, mut later) = (Reader::new(earlier), Reader::new(later));
    let (mut old, mut new) = (earlier.next_field()?, later.next_field()?);
    let mut last = 0;
    loop {
        let number = match (&old, &new) {
            (None, None) => return Ok(true),
            (Some(one), None) | (None, Some(one)) => one.number,
            (Some(old), Some(new)) => old.number.min(new.number),
        };
        // Each number once, in their order.
        if number <= last {
            return Ok(false);
        }
        last = number;
        let Some(known) = layout.field(number) else {
            return Ok(false);
        };
        let of_old = old.filter(|field| field.number == number);
        let of_new = new.filter(|field| field.number == number);
        let are_plain = [&of_old, &of_new]
            .into_iter()
            .flatten()
            .all(|field| layout.known(field).is_some() && is_plain(known, field));
        if !are_plain {
            return Ok(false);
        }
        match (&of_old, &of_new, known.shape.message()) {
            (Some(old), Some(new), Some(inner)) => {
                put_key(out, number, WireType::Bytes);
                let mark = open_length(out);
                if !lay(layouts, inner, old.bytes()?, new.bytes()?, depth + 1, out)? {
                    return Ok(false);
                }
                close_length(out, mark);
            }
            (_, Some(field), _) | (Some(field), None, _) => out.extend_from_slice(field.raw),
            (None, None, _) => {}
        }
        if of_old.is_some() {
            old = earlier.next_field()?;
        }
        if of_new.is_some() {
            new = later.next_field()?;
        }
    }
}

/// Whether a field is what its bytes say, whatever else there is.
fn is_plain(known: &FieldLayout, field: &Field<'_>) -> bool {
    let Shape::Single { kind, implicit } = known.shape else {
        return false;
    };
    if known.oneof.is_some() || known.rule != Rule::Protobuf {
        return false;
    }
    // A zero without presence says nothing; it must not hide what was there.
    let may_be_zero = implicit && matches!(kind, Kind::Scalar(_));
    !may_be_zero
        || match field.value {
            Value::Varint(bits) | Value::Fixed64(bits) => bits != 0,
            Value::Fixed32(bits) => bits != 0,
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::Group => false,
        }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use crate::merge::WindowBytes;
    use crate::messages::tpspb::{EntityChannelData, TestRepChannelData};
    use crate::messages::unrealpb::{ActorState, CharacterState, FVector};
    use crate::schema::Schema;

    fn overlaid(name: &str, updates: &[&[u8]]) -> Option<Vec<u8>> {
        let data_type = Schema::bundled().find(name).unwrap();
        WindowBytes::overlay(&data_type, 7, updates).map(WindowBytes::into_bytes)
    }

    fn moved(x: Option<f32>, y: Option<f32>, role: Option<u32>) -> Vec<u8> {
        let scale = FVector {
            x,
            y,
            ..FVector::default()
        };
        EntityChannelData {
            actor_state: role.map(|role| ActorState {
                remote_role: Some(role),
                ..ActorState::default()
            }),
            character_state: Some(CharacterState {
                anim_root_motion_translation_scale: x,
                ..CharacterState::default()
            }),
            scene_component_state: Some(crate::messages::unrealpb::SceneComponentState {
                relative_location: Some(scale),
                ..Default::default()
            }),
            ..EntityChannelData::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn of_each_field_the_later_one_counts() {
        let updates = [
            moved(Some(1.0), Some(2.0), Some(3)),
            moved(Some(4.0), None, None),
            moved(None, Some(5.0), None),
        ];
        let updates: Vec<&[u8]> = updates.iter().map(|update| &**update).collect();
        let laid = overlaid("tpspb.EntityChannelData", &updates).unwrap();
        assert_eq!(laid, moved(Some(4.0), Some(5.0), Some(3)));
    }

    #[test]
    fn what_is_more_than_plain_fields_is_left_to_merging() {
        let rep = TestRepChannelData {
            actor_states: [(1, ActorState::default())].into(),
            ..TestRepChannelData::default()
        }
        .encode_to_vec();
        assert_eq!(
            overlaid("tpspb.TestRepChannelData", &[&rep, &rep]),
            None,
            "a map"
        );
        let name = "tpspb.EntityChannelData";
        let plain = moved(Some(1.0), None, None);
        assert_eq!(overlaid(name, &[&plain, &[0xf8, 0x7f, 1]]), None, "unknown");
        assert_eq!(overlaid(name, &[&plain, &[0x12, 9]]), None, "broken");
        let twice = [&plain[..], &plain].concat();
        assert_eq!(overlaid(name, &[&plain, &twice]), None, "out of order");
    }
}
