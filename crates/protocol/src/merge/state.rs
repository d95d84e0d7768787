//! A channel's whole data, into which updates are merged.

use crate::schema::DataType;
use crate::schema::layout::{Kind, Shape};
use crate::wire;

use super::delta::append_opaque;
use super::encode::{encode_entry, encode_message, encode_slot, encode_unknown};
use super::entries::{self, entry_value};
use super::fields::EntryValue;
use super::key::Key;
use super::node::{Node, Value};
use super::saved::{Counts, SavedState};
use super::tree::Tree;
use super::{MergeContext, MergeError, MergeLimits};

pub use entries::Removal;

/// All of a channel's data, into which updates are merged.
#[derive(Clone, Debug)]
pub struct State {
    data: StateData,
}

#[derive(Clone, Debug)]
enum StateData {
    Typed(Tree),
    Opaque { bytes: Vec<u8>, limits: MergeLimits },
}

impl State {
    /// Empty data. Without a type updates are put one after the other, which
    /// is merging in protobuf but grows with every one of them; a caller that
    /// meets [`MergeError::TooLarge`] then has to begin afresh.
    #[must_use]
    pub fn new(data_type: Option<DataType>, limits: MergeLimits) -> Self {
        Self {
            data: match data_type {
                Some(data_type) => StateData::Typed(Tree::new(data_type, limits)),
                None => StateData::Opaque {
                    bytes: Vec::new(),
                    limits,
                },
            },
        }
    }

    /// Puts `data` in the place of all there was. Unlike an update it is taken
    /// as it is: nothing in it is skipped, removed or cut.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; what there was then stays.
    pub fn load(&mut self, data: &[u8]) -> Result<(), MergeError> {
        match &mut self.data {
            StateData::Typed(tree) => tree.load(data),
            StateData::Opaque { bytes, limits } => {
                let mut loaded = Vec::new();
                append_opaque(&mut loaded, *limits, data)?;
                *bytes = loaded;
                Ok(())
            }
        }
    }

    /// Writes all there is of it but the type.
    #[must_use]
    pub fn save(&self) -> SavedState {
        let (limits, counts) = match &self.data {
            StateData::Typed(tree) => (tree.limits(), Some(tree.counts())),
            StateData::Opaque { limits, .. } => (*limits, None),
        };
        SavedState {
            data: self.to_bytes(),
            max_encoded_bytes: limits.max_encoded_bytes,
            counts,
        }
    }

    /// The data that was just loaded goes on as where it was saved. Returns whether the
    /// counts can be such data's.
    pub(super) fn go_on(&mut self, new_limits: MergeLimits, counts: Option<Counts>) -> bool {
        match (&mut self.data, counts) {
            (StateData::Typed(tree), Some(counts)) if counts.is_sound(tree.len_bound()) => {
                tree.go_on(new_limits, counts);
                true
            }
            (StateData::Opaque { limits, .. }, None) => {
                *limits = new_limits;
                true
            }
            _ => false,
        }
    }

    /// Merges an update. Returns the entries it removed, whether they were
    /// there or not; those that go with them are not listed.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; the data is then as it was.
    pub fn merge(
        &mut self,
        update: &[u8],
        context: &MergeContext,
    ) -> Result<Vec<Removal>, MergeError> {
        self.merge_within(update, context, MergeLimits::NONE)
    }

    /// Merges an update of somebody who may not make the data as large as others may:
    /// as [`merge`](Self::merge), and neither may the data grow beyond `limits`.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; the data is then as it was.
    pub fn merge_within(
        &mut self,
        update: &[u8],
        context: &MergeContext,
        limits: MergeLimits,
    ) -> Result<Vec<Removal>, MergeError> {
        match &mut self.data {
            StateData::Typed(tree) => tree.merge(update, context, limits, None),
            StateData::Opaque {
                bytes,
                limits: for_all,
            } => {
                append_opaque(bytes, limits.or_less(*for_all), update)?;
                Ok(Vec::new())
            }
        }
    }

    /// How many elements of the data were looked at since this was last asked, beyond
    /// those that updates brought: where a list is to be cut at what is too old, or the
    /// data counted because it is nearly as large as it may be. Whoever lets unauthenticated
    /// clients update has them pay for it.
    pub fn take_work(&mut self) -> usize {
        match &mut self.data {
            StateData::Typed(tree) => tree.take_work(),
            StateData::Opaque { .. } => 0,
        }
    }

    /// Puts an encoded message in the place of field `number`, whatever the
    /// type's rules. Returns whether the type has such a field, neither list
    /// nor map.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; the data is then as it was.
    pub fn set_message(&mut self, number: u32, encoded: &[u8]) -> Result<bool, MergeError> {
        let StateData::Typed(tree) = &mut self.data else {
            return Ok(false);
        };
        let Some(index) = tree.message_index(number) else {
            return Ok(false);
        };
        super::check(tree.data_type.layouts(), index, encoded)?;
        tree.make_room(encoded.len())?;
        let mut node = Node::default();
        super::fields::merge_message(&mut node, tree.data_type.layouts(), index, encoded)?;
        tree.root.set(number, Value::Message(node));
        Ok(true)
    }

    /// Puts an entry with an encoded message as its value into the map in
    /// field `number`, in the place of one with the same key. Returns whether
    /// the type has such a map.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; the data is then as it was.
    pub fn insert_entry(
        &mut self,
        number: u32,
        key: Key,
        encoded: &[u8],
    ) -> Result<bool, MergeError> {
        let StateData::Typed(tree) = &mut self.data else {
            return Ok(false);
        };
        let layouts = tree.data_type.layouts();
        let Some(known) = tree.data_type.layout().field(number) else {
            return Ok(false);
        };
        let Shape::Map {
            value: Kind::Message(index),
            ..
        } = known.shape
        else {
            return Ok(false);
        };
        super::check(layouts, index, encoded)?;
        let value = entry_value(layouts, known, EntryValue::Message(encoded.into()))?;
        let key_bytes = match &key {
            Key::Number(_) => 0,
            Key::Text(text) => text.len(),
        };
        // Beside the value: keys of the fields, lengths, a number.
        tree.make_room(encoded.len() + key_bytes + 20)?;
        tree.root.map_or_empty(number).insert(key, value);
        Ok(true)
    }

    /// Takes an entry out of the map in field `number`. Returns whether it was
    /// there.
    pub fn remove_entry(&mut self, number: u32, key: &Key) -> bool {
        match &mut self.data {
            StateData::Typed(tree) => tree.root.remove_entry(number, key).is_some(),
            StateData::Opaque { .. } => false,
        }
    }

    /// The keys of the map in field `number`, in order.
    pub fn keys(&self, number: u32) -> impl Iterator<Item = &Key> {
        let map = match &self.data {
            StateData::Typed(tree) => match tree.root.get(number) {
                Some(Value::Map(map)) => Some(map),
                _ => None,
            },
            StateData::Opaque { .. } => None,
        };
        map.into_iter().flatten().map(|(key, _)| key)
    }

    /// The number, text or bytes at the end of a path of field numbers through
    /// messages that are neither in lists nor in maps.
    #[must_use]
    pub fn value(&self, path: &[u32]) -> Option<wire::Value<'_>> {
        let (&last, through) = path.split_last()?;
        let (node, _) = self.node(through)?;
        match node.get(last)? {
            Value::Varint(bits) => Some(wire::Value::Varint(*bits)),
            Value::Fixed32(bits) => Some(wire::Value::Fixed32(*bits)),
            Value::Fixed64(bits) => Some(wire::Value::Fixed64(*bits)),
            Value::Bytes(bytes) => Some(wire::Value::Bytes(bytes)),
            Value::Message(_) | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The message at the end of such a path, encoded.
    #[must_use]
    pub fn message(&self, path: &[u32]) -> Option<Vec<u8>> {
        let StateData::Typed(tree) = &self.data else {
            return None;
        };
        let (node, index) = self.node(path)?;
        let mut out = Vec::new();
        encode_message(node, tree.data_type.layouts(), index, &mut out);
        Some(out)
    }

    /// The type, if it is known.
    #[must_use]
    pub fn data_type(&self) -> Option<&DataType> {
        match &self.data {
            StateData::Typed(tree) => Some(&tree.data_type),
            StateData::Opaque { .. } => None,
        }
    }

    /// Whether there is no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.data {
            StateData::Typed(tree) => tree.root.is_empty(),
            StateData::Opaque { bytes, .. } => bytes.is_empty(),
        }
    }

    /// The size of the encoded data, bytes. Counted anew each time.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.data {
            StateData::Typed(tree) => tree.encoded_len(),
            StateData::Opaque { bytes, .. } => bytes.len(),
        }
    }

    /// At least the size of the encoded data, bytes, three times it at most after many
    /// small updates. Not counted: this costs nothing.
    #[must_use]
    pub fn len_bound(&self) -> usize {
        match &self.data {
            StateData::Typed(tree) => tree.len_bound(),
            StateData::Opaque { bytes, .. } => bytes.len(),
        }
    }

    /// Appends the encoded data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.data {
            StateData::Typed(tree) => tree.encode(out),
            StateData::Opaque { bytes, .. } => out.extend_from_slice(bytes),
        }
    }

    /// The encoded data.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// The encoded data in parts of at most `max_bytes`, which merged in
    /// their order are the whole: data that is too long for one message goes
    /// out as several updates. A part is longer only when one field, or one
    /// entry of a map, is.
    #[must_use]
    pub fn to_parts(&self, max_bytes: usize) -> Vec<Vec<u8>> {
        let mut parts = vec![Vec::new()];
        let mut piece = Vec::new();
        let mut add = |piece: &mut Vec<u8>| {
            let last = parts.len() - 1;
            if !parts[last].is_empty() && parts[last].len() + piece.len() > max_bytes {
                parts.push(std::mem::take(piece));
            } else {
                parts[last].append(piece);
            }
        };
        match &self.data {
            StateData::Typed(tree) => {
                let layouts = tree.data_type.layouts();
                for slot in tree.root.slots() {
                    let Some(known) = tree.data_type.layout().field(slot.number) else {
                        encode_unknown(slot, &mut piece);
                        add(&mut piece);
                        continue;
                    };
                    if let (Value::Map(map), Shape::Map { key, value, .. }) =
                        (&slot.value, known.shape)
                    {
                        for (entry_key, entry_value) in map {
                            let number = slot.number;
                            encode_entry(
                                number,
                                key,
                                value,
                                entry_key,
                                entry_value,
                                layouts,
                                &mut piece,
                            );
                            add(&mut piece);
                        }
                    } else {
                        encode_slot(slot, layouts, known, &mut piece);
                        add(&mut piece);
                    }
                }
            }
            StateData::Opaque { bytes, .. } => {
                let mut reader = wire::Reader::new(bytes);
                while let Ok(Some(field)) = reader.next_field() {
                    piece.extend_from_slice(field.raw);
                    add(&mut piece);
                }
            }
        }
        parts
    }

    fn node(&self, path: &[u32]) -> Option<(&Node, usize)> {
        let StateData::Typed(tree) = &self.data else {
            return None;
        };
        let mut node = &tree.root;
        let mut index = tree.data_type.index();
        for &number in path {
            let layout = tree.data_type.layouts().message(index);
            let Shape::Single {
                kind: Kind::Message(inner),
                ..
            } = layout.field(number)?.shape
            else {
                return None;
            };
            let Value::Message(next) = node.get(number)? else {
                return None;
            };
            node = next;
            index = inner;
        }
        Some((node, index))
    }
}
