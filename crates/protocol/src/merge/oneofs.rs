//! Oneofs whose message gives way to another member and comes back.

use crate::schema::layout::{Kind, Layouts, Shape};
use crate::wire::{Reader, WireError};

use super::fields::{Entry, EntryValue, are_siblings};
use super::node::{Node, Value};

/// Whether `encoded` brings a message of a oneof of which `node`, part of a
/// delta, holds another member.
///
/// The delta would then hold the message alone, as if it had been there all
/// the time, and be merged into what the message was before it gave way.
pub(super) fn switches(
    node: &Node,
    layouts: &Layouts,
    index: usize,
    encoded: &[u8],
) -> Result<bool, WireError> {
    let layout = layouts.message(index);
    let mut reader = Reader::new(encoded);
    while let Some(field) = reader.next_field()? {
        let Some(known) = layout.known(&field) else {
            continue;
        };
        let Some(inner) = known.shape.message() else {
            continue;
        };
        let switched = match (known.shape, node.get(field.number)) {
            (Shape::Single { .. }, None) => node
                .slots()
                .iter()
                .any(|slot| are_siblings(layout, known, slot.number)),
            (Shape::Single { .. }, Some(Value::Message(message)))
                if layouts.message(inner).has_message_oneofs =>
            {
                switches(message, layouts, inner, field.bytes()?)?
            }
            (Shape::Map { key, value, .. }, Some(Value::Map(map)))
                if layouts.message(inner).has_message_oneofs =>
            {
                let entry = Entry::read(key, value, field.bytes()?)?;
                match (map.get(&entry.key), entry.value, value) {
                    (
                        Some(Value::Message(message)),
                        EntryValue::Message(encoded),
                        Kind::Message(inner),
                    ) => switches(message, layouts, inner, &encoded)?,
                    _ => false,
                }
            }
            _ => false,
        };
        if switched {
            return Ok(true);
        }
    }
    Ok(false)
}
