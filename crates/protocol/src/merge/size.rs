//! How many bytes data taken apart will encode to.

use crate::schema::layout::{FieldLayout, Kind, Layouts, Scalar, Shape};
use crate::wire::encoded_len_varint;

use super::key::Key;
use super::node::{Node, Slot, Value};

/// The exact size of the encoded message.
pub(super) fn message_len(node: &Node, layouts: &Layouts, index: usize) -> usize {
    let layout = layouts.message(index);
    node.slots()
        .iter()
        .map(|slot| match (layout.field(slot.number), &slot.value) {
            (Some(known), _) => slot_len(slot, layouts, known),
            (None, Value::Bytes(raw)) => raw.len(),
            (None, _) => 0,
        })
        .sum()
}

fn slot_len(slot: &Slot, layouts: &Layouts, known: &FieldLayout) -> usize {
    let number = slot.number;
    match (&slot.value, known.shape) {
        (Value::Map(map), Shape::Map { key, value, .. }) => map
            .iter()
            .map(|(entry_key, entry_value)| {
                let len = map_key_len(entry_key, key) + single_len(2, entry_value, value, layouts);
                key_len(number) + with_length(len)
            })
            .sum(),
        (
            Value::List(list),
            Shape::List {
                kind: Kind::Scalar(_),
                packed: true,
            },
        ) => key_len(number) + with_length(list.iter().map(packed_len).sum()),
        (Value::List(list), Shape::List { kind, .. }) => list
            .iter()
            .map(|element| single_len(number, element, kind, layouts))
            .sum(),
        (value, Shape::Single { kind, .. }) => single_len(number, value, kind, layouts),
        _ => 0,
    }
}

fn single_len(number: u32, value: &Value, kind: Kind, layouts: &Layouts) -> usize {
    key_len(number)
        + match (value, kind) {
            (Value::Bytes(bytes), _) => with_length(bytes.len()),
            (Value::Message(node), Kind::Message(index)) => {
                with_length(message_len(node, layouts, index))
            }
            (value, _) => packed_len(value),
        }
}

/// The size of a number without its key.
fn packed_len(value: &Value) -> usize {
    match value {
        Value::Varint(bits) => encoded_len_varint(*bits),
        Value::Fixed32(_) => 4,
        Value::Fixed64(_) => 8,
        _ => 0,
    }
}

fn map_key_len(key: &Key, scalar: Scalar) -> usize {
    1 + match (key, scalar) {
        (Key::Text(text), _) => with_length(text.len()),
        (Key::Number(_), Scalar::Fixed32) => 4,
        (Key::Number(_), Scalar::Fixed64) => 8,
        (Key::Number(bits), _) => encoded_len_varint(*bits),
    }
}

fn key_len(number: u32) -> usize {
    encoded_len_varint(u64::from(number) << 3)
}

fn with_length(len: usize) -> usize {
    encoded_len_varint(len as u64) + len
}
