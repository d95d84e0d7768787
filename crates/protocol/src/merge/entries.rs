//! The maps of channel data: rules for entries, removals, and what a delta
//! remembers of them.

use std::collections::BTreeSet;
use std::collections::btree_map;

use crate::schema::layout::{FieldLayout, Kind, Layouts, Shape};
use crate::schema::rules::{self, EntryRule, Rule, Values};
use crate::wire::{self, Field, WireError};

use super::MergeOptions;
use super::fields::{Entry, EntryValue, clear_siblings, merge_message};
use super::in_place;
use super::key::Key;
use super::node::{Node, Value};

/// An entry that an update removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The map's field number.
    pub field: u32,
    /// The entry's key.
    pub key: Key,
}

/// Keys that a delta has removed, and from which maps. An update that puts one
/// of them back cannot be merged into the delta: whoever received both at once
/// would merge the new entry into the old one instead of beginning afresh.
#[derive(Clone, Debug, Default)]
pub(super) struct Tombstones(BTreeSet<(u32, Key)>);

/// What the maps of one update have asked for so far.
#[derive(Debug, Default)]
pub(super) struct EntryWork {
    pub(super) removals: Vec<Removal>,
}

static PROTOBUF_RULE: EntryRule = EntryRule {
    values: Values::Replace,
    removal: rules::Removal::ByOption,
    also_remove: Vec::new(),
};

impl EntryWork {
    /// Takes in one entry. Where `tombstones` are given a removed entry stays
    /// as a removal.
    pub(super) fn merge(
        &mut self,
        node: &mut Node,
        layouts: &Layouts,
        known: &FieldLayout,
        field: &Field<'_>,
        options: MergeOptions,
        tombstones: Option<&mut Tombstones>,
    ) -> Result<(), WireError> {
        let Shape::Map { key, value, .. } = known.shape else {
            return Ok(());
        };
        let rule = entry_rule(known);
        let entry = Entry::read(key, value, field.bytes()?)?;

        if is_removal(known, rule, &entry.value, options)? {
            self.removals.push(Removal {
                field: known.number,
                key: entry.key.clone(),
            });
            if let Some(tombstones) = tombstones {
                // A value that is replaced whole forgets the old one by itself.
                if rule.values != Values::Replace || !rule.also_remove.is_empty() {
                    tombstones.0.insert((known.number, entry.key.clone()));
                }
                node.map_or_empty(known.number)
                    .insert(entry.key, entry.value.into_encoded());
            } else {
                node.remove_entry(known.number, &entry.key);
            }
            return Ok(());
        }

        let map = node.map_or_empty(known.number);
        let (EntryValue::Message(encoded), Kind::Message(inner)) = (&entry.value, value) else {
            map.insert(entry.key, entry.value.into_encoded());
            return Ok(());
        };
        match map.entry(entry.key) {
            btree_map::Entry::Vacant(vacant) => {
                // Most entries of a delta are touched once and need not be
                // taken apart.
                let is_final = tombstones.is_some() && !layouts.message(inner).has_message_oneofs;
                vacant.insert(if is_final {
                    Value::Bytes(encoded.to_vec())
                } else {
                    first_value(layouts, inner, rule, encoded)?
                });
            }
            btree_map::Entry::Occupied(mut occupied) => {
                let was_removed = tombstones
                    .is_some_and(|tombstones| tombstones.contains(known.number, occupied.key()));
                if was_removed {
                    // By this very update, which gives the key twice.
                    *occupied.get_mut() = first_value(layouts, inner, rule, encoded)?;
                } else {
                    merge_value(occupied.get_mut(), layouts, inner, rule, encoded)?;
                }
            }
        }
        Ok(())
    }

    /// Removes from other maps what goes with the entries that were removed.
    /// Done last, so that it does not matter in which order an update lists
    /// its maps.
    pub(super) fn finish<'l>(
        self,
        node: &mut Node,
        layout_of: impl Fn(u32) -> Option<&'l FieldLayout>,
        mut tombstones: Option<&mut Tombstones>,
    ) -> Vec<Removal> {
        for removal in &self.removals {
            let Some(Rule::Entries(rule)) = layout_of(removal.field).map(|known| &known.rule)
            else {
                continue;
            };
            for &other in &rule.also_remove {
                node.remove_entry(other, &removal.key);
                if let Some(tombstones) = &mut tombstones {
                    tombstones.0.insert((other, removal.key.clone()));
                }
            }
        }
        self.removals
    }
}

impl Tombstones {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn contains(&self, field: u32, key: &Key) -> bool {
        !self.0.is_empty() && self.0.contains(&(field, key.clone()))
    }

    /// Whether an occurrence of a map's field puts a removed key back.
    pub(super) fn are_disturbed_by(
        &self,
        known: &FieldLayout,
        field: &Field<'_>,
        options: MergeOptions,
    ) -> Result<bool, WireError> {
        let Shape::Map { key, value, .. } = known.shape else {
            return Ok(false);
        };
        let entry = Entry::read(key, value, field.bytes()?)?;
        Ok(self.contains(known.number, &entry.key)
            && !is_removal(known, entry_rule(known), &entry.value, options)?)
    }
}

fn entry_rule(known: &FieldLayout) -> &EntryRule {
    match &known.rule {
        Rule::Entries(rule) => rule,
        _ => &PROTOBUF_RULE,
    }
}

/// Whether the entry asks for its own removal and its map grants that.
fn is_removal(
    known: &FieldLayout,
    rule: &EntryRule,
    value: &EntryValue<'_>,
    options: MergeOptions,
) -> Result<bool, WireError> {
    let granted = match rule.removal {
        rules::Removal::Always => true,
        rules::Removal::ByOption => options.remove_entries,
        rules::Removal::Never => false,
    };
    let Shape::Map {
        removed: Some(removed),
        ..
    } = known.shape
    else {
        return Ok(false);
    };
    match value {
        EntryValue::Message(encoded) if granted => Ok(matches!(
            wire::find(encoded, &[removed], wire::WireType::Varint)?,
            Some(wire::Value::Varint(bits)) if bits != 0
        )),
        _ => Ok(false),
    }
}

/// The value of a key that was not there.
pub(super) fn first_value(
    layouts: &Layouts,
    inner: usize,
    rule: &EntryRule,
    encoded: &[u8],
) -> Result<Value, WireError> {
    Ok(match rule.values {
        Values::Replace | Values::KeepFirst => Value::Bytes(encoded.to_vec()),
        Values::Deep | Values::Overlay | Values::Copy(_) => {
            let mut node = Node::default();
            merge_message(&mut node, layouts, inner, encoded)?;
            Value::Message(node)
        }
    })
}

/// Brings a new value to a key that is there.
fn merge_value(
    old: &mut Value,
    layouts: &Layouts,
    inner: usize,
    rule: &EntryRule,
    encoded: &[u8],
) -> Result<(), WireError> {
    match rule.values {
        Values::KeepFirst => return Ok(()),
        Values::Replace => {
            *old = Value::Bytes(encoded.to_vec());
            return Ok(());
        }
        Values::Deep | Values::Overlay | Values::Copy(_) => {}
    }
    if let Value::Bytes(kept) = old {
        *old = first_value(layouts, inner, rule, kept)?;
    }
    let Value::Message(node) = old else {
        return Ok(());
    };
    match &rule.values {
        Values::Deep => merge_message(node, layouts, inner, encoded)?,
        Values::Overlay if in_place::assign(node, layouts, inner, encoded)? => {}
        Values::Overlay => {
            let mut new = Node::default();
            merge_message(&mut new, layouts, inner, encoded)?;
            let layout = layouts.message(inner);
            for slot in new.into_slots() {
                if let Some(known) = layout.field(slot.number) {
                    clear_siblings(node, layout, known);
                }
                node.set(slot.number, slot.value);
            }
        }
        Values::Copy(numbers) => {
            let mut new = Node::default();
            merge_message(&mut new, layouts, inner, encoded)?;
            for &number in numbers {
                match new.remove(number) {
                    Some(value) => node.set(number, value),
                    None => drop(node.remove(number)),
                }
            }
        }
        Values::Replace | Values::KeepFirst => {}
    }
    Ok(())
}

/// Stores an entry's value as its map's rule will need it.
pub(super) fn entry_value(
    layouts: &Layouts,
    known: &FieldLayout,
    value: EntryValue<'_>,
) -> Result<Value, WireError> {
    match (value, known.shape) {
        (
            EntryValue::Message(encoded),
            Shape::Map {
                value: Kind::Message(inner),
                ..
            },
        ) => first_value(layouts, inner, entry_rule(known), &encoded),
        (value, _) => Ok(value.into_encoded()),
    }
}
