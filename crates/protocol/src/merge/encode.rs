//! From data taken apart back to bytes.

use crate::schema::layout::{FieldLayout, Kind, Layouts, Scalar, Shape};
use crate::wire::{WireType, close_length, open_length, put_bytes_field, put_key, put_varint};

use super::key::Key;
use super::node::{Node, Slot, UNKNOWN, Value};

/// Appends the message. Fields are in the order of their numbers and entries
/// in the order of their keys; what is not known comes last.
pub(super) fn encode_message(node: &Node, layouts: &Layouts, index: usize, out: &mut Vec<u8>) {
    let layout = layouts.message(index);
    for slot in node.slots() {
        match layout.field(slot.number) {
            Some(known) => encode_slot(slot, layouts, known, out),
            None => encode_unknown(slot, out),
        }
    }
}

pub(super) fn encode_unknown(slot: &Slot, out: &mut Vec<u8>) {
    if let (UNKNOWN, Value::Bytes(raw)) = (slot.number, &slot.value) {
        out.extend_from_slice(raw);
    }
}

pub(super) fn encode_slot(slot: &Slot, layouts: &Layouts, known: &FieldLayout, out: &mut Vec<u8>) {
    match (&slot.value, known.shape) {
        (Value::Map(map), Shape::Map { key, value, .. }) => {
            for (entry_key, entry_value) in map {
                encode_entry(
                    slot.number,
                    key,
                    value,
                    entry_key,
                    entry_value,
                    layouts,
                    out,
                );
            }
        }
        (
            Value::List(list),
            Shape::List {
                kind: Kind::Scalar(_),
                packed: true,
            },
        ) => {
            put_key(out, slot.number, WireType::Bytes);
            let mark = open_length(out);
            for element in list {
                encode_packed(element, out);
            }
            close_length(out, mark);
        }
        (Value::List(list), Shape::List { kind, .. }) => {
            for element in list {
                encode_single(slot.number, element, kind, layouts, out);
            }
        }
        (value, Shape::Single { kind, .. }) => {
            encode_single(slot.number, value, kind, layouts, out);
        }
        _ => {}
    }
}

/// Appends one entry of the map in field `number`.
pub(super) fn encode_entry(
    number: u32,
    key_scalar: Scalar,
    value_kind: Kind,
    key: &Key,
    value: &Value,
    layouts: &Layouts,
    out: &mut Vec<u8>,
) {
    put_key(out, number, WireType::Bytes);
    let mark = open_length(out);
    key.encode(key_scalar, out);
    encode_single(2, value, value_kind, layouts, out);
    close_length(out, mark);
}

fn encode_single(number: u32, value: &Value, kind: Kind, layouts: &Layouts, out: &mut Vec<u8>) {
    match value {
        Value::Varint(bits) => {
            put_key(out, number, WireType::Varint);
            put_varint(out, *bits);
        }
        Value::Fixed32(bits) => {
            put_key(out, number, WireType::Fixed32);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Value::Fixed64(bits) => {
            put_key(out, number, WireType::Fixed64);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Value::Bytes(bytes) => put_bytes_field(out, number, bytes),
        Value::Message(node) => {
            put_key(out, number, WireType::Bytes);
            let mark = open_length(out);
            if let Kind::Message(index) = kind {
                encode_message(node, layouts, index, out);
            }
            close_length(out, mark);
        }
        Value::List(_) | Value::Map(_) => {}
    }
}

fn encode_packed(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Varint(bits) => put_varint(out, *bits),
        Value::Fixed32(bits) => out.extend_from_slice(&bits.to_le_bytes()),
        Value::Fixed64(bits) => out.extend_from_slice(&bits.to_le_bytes()),
        _ => {}
    }
}
