//! Data taken apart: a message's fields with their values.

use std::collections::{BTreeMap, VecDeque};

use crate::schema::layout::Scalar;
use crate::wire::{self, Field, WireError};

use super::key::Key;

/// A message taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    /// In the order of their numbers, each number once.
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) value: Value,
}

/// What a field holds. Lists and maps are never empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    /// Text or bytes; or a message that is never merged into, encoded.
    Bytes(Vec<u8>),
    Message(Node),
    List(VecDeque<Self>),
    Map(BTreeMap<Key, Self>),
}

/// The number under which a node keeps the fields its type does not know,
/// encoded, one after the other. No field can have it.
pub(super) const UNKNOWN: u32 = u32::MAX;

impl Node {
    pub(super) fn set(&mut self, number: u32, value: Value) {
        match self.find(number) {
            Ok(index) => self.slots[index].value = value,
            Err(index) => self.slots.insert(index, Slot { number, value }),
        }
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Value> {
        let index = self.find(number).ok()?;
        Some(self.slots.remove(index).value)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.slots.retain(|slot| keep(slot.number));
    }

    /// The value of a field, put there by `default` if it was absent.
    pub(super) fn value_or(&mut self, number: u32, default: impl FnOnce() -> Value) -> &mut Value {
        let index = self.find(number).unwrap_or_else(|index| {
            let value = default();
            self.slots.insert(index, Slot { number, value });
            index
        });
        &mut self.slots[index].value
    }

    /// The message in a field, empty if it was absent.
    pub(super) fn message_or_empty(&mut self, number: u32) -> &mut Self {
        let value = self.value_or(number, || Value::Message(Self::default()));
        if !matches!(value, Value::Message(_)) {
            *value = Value::Message(Self::default());
        }
        match value {
            Value::Message(node) => node,
            _ => unreachable!("it was made a message above"),
        }
    }

    /// The list in a field, empty if it was absent. Something is to be put in.
    pub(super) fn list_or_empty(&mut self, number: u32) -> &mut VecDeque<Value> {
        let value = self.value_or(number, || Value::List(VecDeque::new()));
        if !matches!(value, Value::List(_)) {
            *value = Value::List(VecDeque::new());
        }
        match value {
            Value::List(list) => list,
            _ => unreachable!("it was made a list above"),
        }
    }

    /// The map in a field, empty if it was absent. Something is to be put in.
    pub(super) fn map_or_empty(&mut self, number: u32) -> &mut BTreeMap<Key, Value> {
        let value = self.value_or(number, || Value::Map(BTreeMap::new()));
        if !matches!(value, Value::Map(_)) {
            *value = Value::Map(BTreeMap::new());
        }
        match value {
            Value::Map(map) => map,
            _ => unreachable!("it was made a map above"),
        }
    }

    /// Takes a key out of the map in a field.
    pub(super) fn remove_entry(&mut self, number: u32, key: &Key) -> Option<Value> {
        let index = self.find(number).ok()?;
        let Value::Map(map) = &mut self.slots[index].value else {
            return None;
        };
        let removed = map.remove(key);
        if map.is_empty() {
            self.slots.remove(index);
        }
        removed
    }

    pub(super) fn keep_unknown(&mut self, raw: &[u8]) {
        if let Value::Bytes(bytes) = self.value_or(UNKNOWN, || Value::Bytes(Vec::new())) {
            bytes.extend_from_slice(raw);
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    pub(super) fn get(&self, number: u32) -> Option<&Value> {
        let index = self.find(number).ok()?;
        Some(&self.slots[index].value)
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Their numbers have to stay as they are.
    pub(super) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    pub(super) fn into_slots(self) -> Vec<Slot> {
        self.slots
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn find(&self, number: u32) -> Result<usize, usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.number)
    }
}

impl Value {
    /// Reads a scalar, cut to the size of its type.
    pub(super) fn scalar(scalar: Scalar, field: &Field<'_>) -> Result<Self, WireError> {
        Ok(match (scalar, field.value) {
            (Scalar::Fixed32, wire::Value::Fixed32(bits)) => Self::Fixed32(bits),
            (Scalar::Fixed64, wire::Value::Fixed64(bits)) => Self::Fixed64(bits),
            (Scalar::String, wire::Value::Bytes(_)) => {
                Self::Bytes(field.string()?.as_bytes().to_vec())
            }
            (Scalar::Bytes, wire::Value::Bytes(bytes)) => Self::Bytes(bytes.to_vec()),
            (_, wire::Value::Varint(bits)) => Self::Varint(
                scalar
                    .cut(bits)
                    .ok_or(WireError::UnexpectedWireType(field.number))?,
            ),
            _ => return Err(WireError::UnexpectedWireType(field.number)),
        })
    }

    /// What a map's value is that an entry does not give.
    pub(super) fn zero(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Fixed32 => Self::Fixed32(0),
            Scalar::Fixed64 => Self::Fixed64(0),
            Scalar::String | Scalar::Bytes => Self::Bytes(Vec::new()),
            _ => Self::Varint(0),
        }
    }

    /// Whether it is what a field without presence has when it is absent.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Varint(bits) | Self::Fixed64(bits) => *bits == 0,
            Self::Fixed32(bits) => *bits == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Message(_) | Self::List(_) | Self::Map(_) => false,
        }
    }
}

impl Scalar {
    /// A varint cut to the size of its type; `None` where it is no varint.
    pub(super) fn cut(self, bits: u64) -> Option<u64> {
        Some(match self {
            Self::Bool => u64::from(bits != 0),
            Self::Int32 => i64::from(bits as i32).cast_unsigned(),
            Self::Uint32 => u64::from(bits as u32),
            Self::Int64 => bits,
            Self::Fixed32 | Self::Fixed64 | Self::String | Self::Bytes => return None,
        })
    }
}
