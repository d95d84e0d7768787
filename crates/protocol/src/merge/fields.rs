//! Merging the fields of a message by protobuf's own rules.
//!
//! All functions here expect bytes that were checked against the type.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::schema::layout::{FieldLayout, Kind, Layout, Layouts, Scalar, Shape};
use crate::wire::{self, Field, Reader, WireError};

use super::key::Key;
use super::node::{Node, Value};

/// Merges an encoded message into `node`.
pub(super) fn merge_message(
    node: &mut Node,
    layouts: &Layouts,
    index: usize,
    encoded: &[u8],
) -> Result<(), WireError> {
    let mut reader = Reader::new(encoded);
    while let Some(field) = reader.next_field()? {
        let layout = layouts.message(index);
        let Some(known) = layout.known(&field) else {
            node.keep_unknown(field.raw);
            continue;
        };
        match known.shape {
            Shape::Single { .. } => merge_single(node, layouts, index, known, &field)?,
            Shape::List { kind, .. } => {
                append_elements(node.list_or_empty(field.number), kind, &field)?;
                drop_empty_list(node, field.number);
            }
            Shape::Map { key, value, .. } => {
                let entry = Entry::read(key, value, field.bytes()?)?;
                node.map_or_empty(field.number)
                    .insert(entry.key, entry.value.into_encoded());
            }
        }
    }
    Ok(())
}

/// Merges one occurrence of a field that is neither list nor map.
pub(super) fn merge_single(
    node: &mut Node,
    layouts: &Layouts,
    index: usize,
    known: &FieldLayout,
    field: &Field<'_>,
) -> Result<(), WireError> {
    let Shape::Single { kind, implicit } = known.shape else {
        return Ok(());
    };
    clear_siblings(node, layouts.message(index), known);
    match kind {
        Kind::Scalar(scalar) => {
            let value = Value::scalar(scalar, field)?;
            if !(implicit && value.is_zero()) {
                node.set(known.number, value);
            }
            Ok(())
        }
        Kind::Message(inner) => merge_message(
            node.message_or_empty(known.number),
            layouts,
            inner,
            field.bytes()?,
        ),
    }
}

/// Of a oneof only the member given last is there.
pub(super) fn clear_siblings(node: &mut Node, layout: &Layout, known: &FieldLayout) {
    if known.oneof.is_some() {
        node.retain(|number| number == known.number || !are_siblings(layout, known, number));
    }
}

/// Whether the field `number` belongs to the same oneof as `known`.
pub(super) fn are_siblings(layout: &Layout, known: &FieldLayout, number: u32) -> bool {
    known.oneof.is_some()
        && layout
            .field(number)
            .is_some_and(|other| other.oneof == known.oneof)
}

/// Appends the elements that one occurrence of a list's field holds.
pub(super) fn append_elements(
    list: &mut VecDeque<Value>,
    kind: Kind,
    field: &Field<'_>,
) -> Result<(), WireError> {
    match (kind, field.value) {
        (Kind::Scalar(scalar), wire::Value::Bytes(packed)) if scalar.is_packable() => {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                list.push_back(match scalar {
                    Scalar::Fixed32 => Value::Fixed32(u32::from_le_bytes(reader.array()?)),
                    Scalar::Fixed64 => Value::Fixed64(u64::from_le_bytes(reader.array()?)),
                    _ => {
                        let bits = reader.varint()?;
                        Value::Varint(scalar.cut(bits).unwrap_or(bits))
                    }
                });
            }
        }
        (Kind::Scalar(scalar), _) => list.push_back(Value::scalar(scalar, field)?),
        // Elements are never merged into, so they stay encoded.
        (Kind::Message(_), _) => list.push_back(Value::Bytes(field.bytes()?.to_vec())),
    }
    Ok(())
}

/// A field with an empty packed list says nothing.
pub(super) fn drop_empty_list(node: &mut Node, number: u32) {
    if matches!(node.get(number), Some(Value::List(list)) if list.is_empty()) {
        node.remove(number);
    }
}

/// One entry of a map, as an update gives it.
pub(super) struct Entry<'a> {
    pub(super) key: Key,
    pub(super) value: EntryValue<'a>,
}

pub(super) enum EntryValue<'a> {
    Scalar(Value),
    /// An encoded message.
    Message(Cow<'a, [u8]>),
}

impl<'a> Entry<'a> {
    pub(super) fn read(key: Scalar, value: Kind, encoded: &'a [u8]) -> Result<Self, WireError> {
        let mut entry = Self {
            key: Key::default_of(key),
            value: match value {
                Kind::Scalar(scalar) => EntryValue::Scalar(Value::zero(scalar)),
                Kind::Message(_) => EntryValue::Message(Cow::Borrowed(&[])),
            },
        };
        let mut reader = Reader::new(encoded);
        while let Some(field) = reader.next_field()? {
            match (field.number, value, &mut entry.value) {
                (1, _, _) if key.fits(&field.value) => entry.key = Key::read(key, &field)?,
                // What does not fit is dropped, as all in entries that is not known.
                (2, ..) if !value.fits(&field.value) => {}
                (2, Kind::Scalar(scalar), _) => {
                    entry.value = EntryValue::Scalar(Value::scalar(scalar, &field)?);
                }
                // A value given in parts is the parts merged.
                (2, Kind::Message(_), EntryValue::Message(message)) if !message.is_empty() => {
                    message.to_mut().extend_from_slice(field.bytes()?);
                }
                (2, Kind::Message(_), _) => {
                    entry.value = EntryValue::Message(Cow::Borrowed(field.bytes()?));
                }
                _ => {}
            }
        }
        Ok(entry)
    }
}

/// The key of an entry alone.
pub(super) fn entry_key(key: Scalar, encoded: &[u8]) -> Result<Key, WireError> {
    let mut found = Key::default_of(key);
    let mut reader = Reader::new(encoded);
    while let Some(field) = reader.next_field()? {
        if field.number == 1 && key.fits(&field.value) {
            found = Key::read(key, &field)?;
        }
    }
    Ok(found)
}

impl EntryValue<'_> {
    /// The value to store where nothing will be merged into it.
    pub(super) fn into_encoded(self) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::Message(encoded) => Value::Bytes(encoded.into_owned()),
        }
    }
}
