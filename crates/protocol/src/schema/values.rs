//! Counting what a message would be decoded to, without decoding it.

use crate::wire::{MAX_DEPTH, Reader, Value};

use super::layout::{Kind, Layouts, Scalar, Shape};

/// Takes one off `left` for each value of the message `index` and of those within
/// it, until none is left. What follows something malformed no decoder reads either.
pub(super) fn count(layouts: &Layouts, index: usize, encoded: &[u8], depth: u32, left: &mut usize) {
    if depth > MAX_DEPTH {
        return;
    }
    let layout = layouts.message(index);
    let mut reader = Reader::new(encoded);
    while *left > 0
        && let Ok(Some(field)) = reader.next_field()
    {
        *left -= 1;
        let (Some(known), Value::Bytes(bytes)) = (layout.field(field.number), field.value) else {
            continue;
        };
        match known.shape {
            Shape::Single {
                kind: Kind::Message(inner),
                ..
            }
            | Shape::List {
                kind: Kind::Message(inner),
                ..
            } => count(layouts, inner, bytes, depth + 1, left),
            Shape::Map { value, .. } => of_entry(layouts, value, bytes, depth, left),
            Shape::List {
                kind: Kind::Scalar(scalar),
                ..
            } if scalar.is_packable() => {
                // One less: the field is counted already.
                *left = left.saturating_sub(packed(scalar, bytes).saturating_sub(1));
            }
            _ => {}
        }
    }
}

/// The same for an entry of a map.
fn of_entry(layouts: &Layouts, value: Kind, entry: &[u8], depth: u32, left: &mut usize) {
    let mut reader = Reader::new(entry);
    while *left > 0
        && let Ok(Some(field)) = reader.next_field()
    {
        if let (2, Kind::Message(inner), Value::Bytes(bytes)) = (field.number, value, field.value) {
            count(layouts, inner, bytes, depth + 1, left);
        } else if field.number > 2 {
            *left -= 1;
        }
    }
}

/// How many numbers a packed list has.
fn packed(scalar: Scalar, bytes: &[u8]) -> usize {
    match scalar {
        Scalar::Fixed32 => bytes.len() / 4,
        Scalar::Fixed64 => bytes.len() / 8,
        // Each ends with the byte whose highest bit is clear.
        _ => bytes.iter().filter(|byte| **byte < 0x80).count(),
    }
}
