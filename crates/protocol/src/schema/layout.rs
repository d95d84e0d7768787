//! Descriptors boiled down to what merging and masking look up for each field.

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind as ProtoKind, MessageDescriptor};

use crate::wire::{Field, Value};

use super::SchemaError;
use super::rules::{self, Rule};

/// All messages of a schema; they name each other by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layouts {
    messages: Vec<Layout>,
    by_name: BTreeMap<String, usize>,
}

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) name: String,
    /// In the order of their numbers.
    pub(crate) fields: Vec<FieldLayout>,
    /// For field numbers below its length the index in `fields`, or
    /// `NO_FIELD`. Numbers beyond are searched for.
    dense: Vec<u16>,
    /// Some field is never merged.
    pub(crate) has_skipped: bool,
    /// Some field has a rule of its own.
    pub(crate) has_rules: bool,
    /// It, or a message somewhere within it, has a oneof with a message.
    pub(crate) has_message_oneofs: bool,
}

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct FieldLayout {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// The oneof it belongs to; within the message.
    pub(crate) oneof: Option<usize>,
    /// How it is merged when the message is a channel's data.
    pub(crate) rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Single {
        kind: Kind,
        /// Zero means absent.
        implicit: bool,
    },
    List {
        kind: Kind,
        packed: bool,
    },
    Map {
        key: Scalar,
        value: Kind,
        /// The number of the value's bool `removed`.
        removed: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar(Scalar),
    /// The message of that index.
    Message(usize),
}

/// Scalars by how their values are laid out and cut to size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    /// `int32` and enums: a varint, sign-extended.
    Int32,
    /// `uint32` and `sint32`: a varint of 32 bits.
    Uint32,
    /// A varint of 64 bits.
    Int64,
    Fixed32,
    Fixed64,
    String,
    Bytes,
}

const NO_FIELD: u16 = u16::MAX;

/// Field numbers below this are looked up by index.
const DENSE_LIMIT: u32 = 256;

impl Layouts {
    pub(crate) fn add_pool(&mut self, pool: &DescriptorPool) -> Result<(), SchemaError> {
        let first = self.messages.len();
        let messages: Vec<MessageDescriptor> = pool
            .all_messages()
            .filter(|message| !message.is_map_entry())
            .collect();
        let indices: BTreeMap<&str, usize> = messages
            .iter()
            .enumerate()
            .map(|(index, message)| (message.full_name(), first + index))
            .collect();
        for message in &messages {
            self.messages.push(Layout::new(message, &indices)?);
        }
        for (name, index) in indices {
            self.by_name.insert(name.to_owned(), index);
        }
        self.spread_message_oneofs();
        Ok(())
    }

    /// What a message has within it its containers have too. Types may
    /// contain themselves, so this goes on until nothing changes.
    fn spread_message_oneofs(&mut self) {
        loop {
            let mut changed = false;
            for index in 0..self.messages.len() {
                let layout = &self.messages[index];
                if !layout.has_message_oneofs
                    && layout.fields.iter().any(|field| {
                        field
                            .shape
                            .message()
                            .is_some_and(|inner| self.messages[inner].has_message_oneofs)
                    })
                {
                    self.messages[index].has_message_oneofs = true;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    pub(crate) fn find(&self, full_name: &str) -> Option<usize> {
        self.by_name.get(full_name).copied()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    #[inline]
    pub(crate) fn message(&self, index: usize) -> &Layout {
        &self.messages[index]
    }
}

impl Layout {
    fn new(
        message: &MessageDescriptor,
        indices: &BTreeMap<&str, usize>,
    ) -> Result<Self, SchemaError> {
        let rules = rules::of(message)?;
        let mut fields: Vec<FieldLayout> = message
            .fields()
            // Groups are gone from the language; an old type's are carried
            // along like fields that are not known.
            .filter(|field| !field.is_group())
            .map(|field| {
                let number = field.number();
                FieldLayout {
                    number,
                    name: field.name().to_owned(),
                    shape: shape(&field, indices),
                    oneof: field
                        .containing_oneof()
                        .filter(|oneof| !oneof.is_synthetic())
                        .and_then(|oneof| {
                            message
                                .oneofs()
                                .position(|other| other.name() == oneof.name())
                        }),
                    rule: rules.get(&number).cloned().unwrap_or_default(),
                }
            })
            .collect();
        fields.sort_by_key(|field| field.number);

        let dense_len = fields
            .iter()
            .map(|field| field.number)
            .filter(|&number| number < DENSE_LIMIT)
            .max()
            .map_or(0, |number| number as usize + 1);
        let mut dense = vec![NO_FIELD; dense_len];
        for (index, field) in fields.iter().enumerate() {
            if let Some(entry) = dense.get_mut(field.number as usize) {
                *entry = index as u16;
            }
        }
        Ok(Self {
            name: message.full_name().to_owned(),
            has_skipped: fields.iter().any(|field| field.rule == Rule::Skip),
            has_rules: fields.iter().any(|field| field.rule != Rule::Protobuf),
            has_message_oneofs: fields
                .iter()
                .any(|field| field.oneof.is_some() && field.shape.message().is_some()),
            fields,
            dense,
        })
    }

    /// The field that is given on the wire. `None` also where its wire type is not
    /// the one its type has: to protobuf that is a field that is not known.
    #[inline]
    pub(crate) fn known(&self, field: &Field<'_>) -> Option<&FieldLayout> {
        self.field(field.number)
            .filter(|known| known.fits(&field.value))
    }

    #[inline]
    pub(crate) fn field(&self, number: u32) -> Option<&FieldLayout> {
        match self.dense.get(number as usize) {
            Some(&NO_FIELD) => None,
            Some(&index) => Some(&self.fields[usize::from(index)]),
            None => self
                .fields
                .binary_search_by_key(&number, |field| field.number)
                .ok()
                .map(|index| &self.fields[index]),
        }
    }
}

impl FieldLayout {
    /// Whether a value on the wire is one of the field's.
    #[inline]
    fn fits(&self, value: &Value<'_>) -> bool {
        match (self.shape, value) {
            (Shape::Map { .. }, value) => matches!(value, Value::Bytes(_)),
            (Shape::Single { kind, .. } | Shape::List { kind, .. }, _) if kind.fits(value) => true,
            (Shape::List { kind, .. }, Value::Bytes(_)) => kind.is_packable(),
            _ => false,
        }
    }
}

impl Kind {
    /// Whether a value on the wire is one of the kind.
    #[inline]
    pub(crate) fn fits(self, value: &Value<'_>) -> bool {
        match self {
            Self::Message(_) => matches!(value, Value::Bytes(_)),
            Self::Scalar(scalar) => scalar.fits(value),
        }
    }

    fn is_packable(self) -> bool {
        matches!(self, Self::Scalar(scalar) if scalar.is_packable())
    }
}

impl Shape {
    /// The message that the field holds, or its elements or values are.
    pub(crate) fn message(self) -> Option<usize> {
        match self {
            Self::Single { kind, .. } | Self::List { kind, .. } | Self::Map { value: kind, .. } => {
                match kind {
                    Kind::Message(index) => Some(index),
                    Kind::Scalar(_) => None,
                }
            }
        }
    }
}

impl Scalar {
    /// Whether a value on the wire is one of the type.
    #[inline]
    pub(crate) fn fits(self, value: &Value<'_>) -> bool {
        match self {
            Self::String | Self::Bytes => matches!(value, Value::Bytes(_)),
            Self::Fixed32 => matches!(value, Value::Fixed32(_)),
            Self::Fixed64 => matches!(value, Value::Fixed64(_)),
            Self::Bool | Self::Int32 | Self::Uint32 | Self::Int64 => {
                matches!(value, Value::Varint(_))
            }
        }
    }

    /// Whether a list of them may be packed into one field.
    pub(crate) fn is_packable(self) -> bool {
        !matches!(self, Self::String | Self::Bytes)
    }
}

fn shape(field: &FieldDescriptor, indices: &BTreeMap<&str, usize>) -> Shape {
    if field.is_map()
        && let ProtoKind::Message(entry) = field.kind()
    {
        let value = entry.map_entry_value_field().kind();
        return Shape::Map {
            key: scalar(&entry.map_entry_key_field().kind()),
            removed: value.as_message().and_then(rules::removed_field),
            value: kind(&value, indices),
        };
    }
    let kind = kind(&field.kind(), indices);
    if field.is_list() {
        Shape::List {
            kind,
            packed: field.is_packed(),
        }
    } else {
        Shape::Single {
            kind,
            implicit: !field.supports_presence(),
        }
    }
}

fn kind(kind: &ProtoKind, indices: &BTreeMap<&str, usize>) -> Kind {
    match kind {
        // A pool is closed: every type it names is in it.
        ProtoKind::Message(message) => Kind::Message(indices[message.full_name()]),
        other => Kind::Scalar(scalar(other)),
    }
}

fn scalar(kind: &ProtoKind) -> Scalar {
    match kind {
        ProtoKind::Bool => Scalar::Bool,
        ProtoKind::Int32 | ProtoKind::Enum(_) => Scalar::Int32,
        ProtoKind::Uint32 | ProtoKind::Sint32 => Scalar::Uint32,
        ProtoKind::Int64 | ProtoKind::Uint64 | ProtoKind::Sint64 => Scalar::Int64,
        ProtoKind::Fixed32 | ProtoKind::Sfixed32 | ProtoKind::Float => Scalar::Fixed32,
        ProtoKind::Fixed64 | ProtoKind::Sfixed64 | ProtoKind::Double => Scalar::Fixed64,
        ProtoKind::String => Scalar::String,
        ProtoKind::Bytes | ProtoKind::Message(_) => Scalar::Bytes,
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::Schema;

    #[test]
    fn fields_are_found_by_small_and_by_large_numbers() {
        let mut schema = Schema::empty();
        schema
            .add_proto_source(
                "sparse.proto",
                "syntax = \"proto3\"; message Sparse { bool a = 1; bool b = 255; bool c = 256; bool d = 536870911; }",
            )
            .unwrap();
        let sparse = schema.find("Sparse").unwrap();
        for (number, name) in [(1, "a"), (255, "b"), (256, "c"), (536_870_911, "d")] {
            assert_eq!(sparse.layout().field(number).unwrap().name, name);
        }
        for number in [0, 2, 254, 257, u32::MAX] {
            assert!(sparse.layout().field(number).is_none());
        }
    }
}
