//! Leaving out what protobuf would not know by its wire type.

use crate::wire::{
    Field, MAX_DEPTH, Reader, Value, WireError, WireType, close_length, open_length, put_key,
};

use super::layout::{Kind, Layouts, Shape};

/// Appends the message `index` without the fields whose wire type does not fit.
pub(super) fn leave_out(
    layouts: &Layouts,
    index: usize,
    encoded: &[u8],
    depth: u32,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    let layout = layouts.message(index);
    let mut reader = Reader::new(encoded);
    while let Some(field) = reader.next_field()? {
        let Some(known) = layout.known(&field) else {
            if layout.field(field.number).is_none() {
                out.extend_from_slice(field.raw);
            }
            continue;
        };
        match (known.shape, field.value) {
            (Shape::Map { key, value, .. }, Value::Bytes(entry)) => {
                let kinds = [Kind::Scalar(key), value];
                put_key(out, field.number, WireType::Bytes);
                let mark = open_length(out);
                of_entry(layouts, kinds, entry, depth, out)?;
                close_length(out, mark);
            }
            (Shape::Single { kind, .. } | Shape::List { kind, .. }, _) => {
                of_field(layouts, kind, &field, depth, out)?;
            }
            (Shape::Map { .. }, _) => {}
        }
    }
    Ok(())
}

/// Appends an entry of a map whose key and value are of these kinds.
fn of_entry(
    layouts: &Layouts,
    kinds: [Kind; 2],
    entry: &[u8],
    depth: u32,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let mut reader = Reader::new(entry);
    while let Some(field) = reader.next_field()? {
        match field.number {
            number @ (1 | 2) => {
                let kind = kinds[number as usize - 1];
                if kind.fits(&field.value) {
                    of_field(layouts, kind, &field, depth, out)?;
                }
            }
            _ => out.extend_from_slice(field.raw),
        }
    }
    Ok(())
}

/// Appends a field that fits its kind.
fn of_field(
    layouts: &Layouts,
    kind: Kind,
    field: &Field<'_>,
    depth: u32,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    match (kind, field.value) {
        (Kind::Message(inner), Value::Bytes(message)) => {
            put_key(out, field.number, WireType::Bytes);
            let mark = open_length(out);
            leave_out(layouts, inner, message, depth + 1, out)?;
            close_length(out, mark);
        }
        _ => out.extend_from_slice(field.raw),
    }
    Ok(())
}
