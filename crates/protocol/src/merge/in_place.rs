//! Laying a message over one that has the same fields, value by value.
//!
//! What is said again and again of one thing has the same fields every time:
//! its place, its turn. Where it does, each value is written over the one that
//! is there, and nothing is allocated.

use crate::schema::layout::{Kind, Layouts, Shape};
use crate::wire::{Reader, WireError};

use super::node::{Node, Value};

/// Gives the fields of `node` that `encoded` has the values they have there,
/// messages in them whole. Returns whether that was all there is to it; where
/// it was not, some fields may have their values already.
///
/// Expects bytes that were checked against the type.
pub(super) fn assign(
    node: &mut Node,
    layouts: &Layouts,
    index: usize,
    encoded: &[u8],
) -> Result<bool, WireError> {
    Ok(assign_fields(node, layouts, index, encoded)?.is_some())
}

/// Returns how many fields there were, each once and in their order, or `None`
/// where there is more to it.
fn assign_fields(
    node: &mut Node,
    layouts: &Layouts,
    index: usize,
    encoded: &[u8],
) -> Result<Option<usize>, WireError> {
    let layout = layouts.message(index);
    let mut slots = node.slots_mut().iter_mut();
    let mut reader = Reader::new(encoded);
    let mut fields = 0;
    while let Some(field) = reader.next_field()? {
        fields += 1;
        let (Some(slot), Some(known)) = (
            slots.find(|slot| slot.number >= field.number),
            layout.known(&field),
        ) else {
            return Ok(None);
        };
        let Shape::Single { kind, implicit } = known.shape else {
            return Ok(None);
        };
        if slot.number != field.number || known.oneof.is_some() {
            return Ok(None);
        }
        match (kind, &mut slot.value) {
            (Kind::Message(inner), Value::Message(kept)) => {
                let all = kept.slots().len();
                if assign_fields(kept, layouts, inner, field.bytes()?)? != Some(all) {
                    return Ok(None);
                }
            }
            (Kind::Scalar(scalar), kept) => {
                let value = Value::scalar(scalar, &field)?;
                if implicit && value.is_zero() {
                    return Ok(None);
                }
                *kept = value;
            }
            (Kind::Message(_), _) => return Ok(None),
        }
    }
    Ok(Some(fields))
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use crate::merge::{MergeContext, MergeLimits, State};
    use crate::messages::channeldpb::{TransformState, Vector3f};
    use crate::messages::tankspb::TankGameChannelData;
    use crate::schema::Schema;

    fn at(x: f32, y: f32) -> TransformState {
        TransformState {
            position: Some(Vector3f { x, y, z: 0.0 }),
            ..TransformState::default()
        }
    }

    fn merged(updates: &[TransformState]) -> TransformState {
        let data_type = Schema::bundled().find("tankspb.TankGameChannelData");
        let mut state = State::new(data_type, MergeLimits::default());
        for update in updates {
            let data = TankGameChannelData {
                transform_states: [(7, *update)].into(),
                ..TankGameChannelData::default()
            };
            let context = MergeContext::default();
            state.merge(&data.encode_to_vec(), &context).unwrap();
        }
        let data = TankGameChannelData::decode(&*state.to_bytes()).unwrap();
        data.transform_states[&7]
    }

    #[test]
    fn the_same_fields_take_the_new_values() {
        let large = TransformState {
            scale: at(9.0, 9.0).position,
            ..at(1.0, 2.0)
        };
        let both = merged(&[large, at(3.0, 4.0)]);
        assert_eq!(both.position, at(3.0, 4.0).position);
        assert_eq!(both.scale, large.scale);
    }

    #[test]
    fn a_message_with_other_fields_is_taken_whole() {
        for new in [at(3.0, 0.0), at(0.0, 4.0), at(0.0, 0.0)] {
            assert_eq!(merged(&[at(1.0, 2.0), new]), new);
            assert_eq!(merged(&[at(1.0, 0.0), new]), new);
        }
    }
}
