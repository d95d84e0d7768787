//! Checking that bytes are a message of a type before anything is merged.

use crate::schema::layout::{FieldLayout, Kind, Layouts, Scalar, Shape};
use crate::wire::{Field, MAX_DEPTH, Reader, Value, WireError};

/// Checks `encoded` against the message `index`, to its depths.
pub(crate) fn check(layouts: &Layouts, index: usize, encoded: &[u8]) -> Result<(), WireError> {
    check_message(layouts, index, encoded, 0)
}

fn check_message(
    layouts: &Layouts,
    index: usize,
    encoded: &[u8],
    depth: u32,
) -> Result<(), WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    let layout = layouts.message(index);
    let mut reader = Reader::new(encoded);
    while let Some(field) = reader.next_field()? {
        // What does not fit its type is no field that is known: it is kept.
        if let Some(known) = layout.known(&field) {
            check_field(layouts, known, &field, depth)?;
        }
    }
    Ok(())
}

fn check_field(
    layouts: &Layouts,
    known: &FieldLayout,
    field: &Field<'_>,
    depth: u32,
) -> Result<(), WireError> {
    match known.shape {
        Shape::Single { kind, .. } => check_kind(layouts, kind, field, depth),
        Shape::List { kind, .. } => match (kind, field.value) {
            (Kind::Scalar(scalar), Value::Bytes(packed)) if scalar.is_packable() => {
                check_packed(scalar, packed)
            }
            _ => check_kind(layouts, kind, field, depth),
        },
        Shape::Map { key, value, .. } => {
            let mut reader = Reader::new(field.bytes()?);
            while let Some(field) = reader.next_field()? {
                match field.number {
                    1 if key.fits(&field.value) => check_scalar(key, &field)?,
                    2 if value.fits(&field.value) => {
                        check_kind(layouts, value, &field, depth + 1)?;
                    }
                    _ => {}
                }
            }
            Ok(())
        }
    }
}

fn check_kind(
    layouts: &Layouts,
    kind: Kind,
    field: &Field<'_>,
    depth: u32,
) -> Result<(), WireError> {
    match kind {
        Kind::Scalar(scalar) => check_scalar(scalar, field),
        Kind::Message(index) => check_message(layouts, index, field.bytes()?, depth + 1),
    }
}

fn check_scalar(scalar: Scalar, field: &Field<'_>) -> Result<(), WireError> {
    match (scalar, field.value) {
        (Scalar::String, Value::Bytes(_)) => field.string().map(drop),
        (Scalar::Bytes, Value::Bytes(_))
        | (Scalar::Fixed32, Value::Fixed32(_))
        | (Scalar::Fixed64, Value::Fixed64(_))
        | (Scalar::Bool | Scalar::Int32 | Scalar::Uint32 | Scalar::Int64, Value::Varint(_)) => {
            Ok(())
        }
        _ => Err(WireError::UnexpectedWireType(field.number)),
    }
}

fn check_packed(scalar: Scalar, packed: &[u8]) -> Result<(), WireError> {
    let mut reader = Reader::new(packed);
    while !reader.is_empty() {
        match scalar {
            Scalar::Fixed32 => drop(reader.array::<4>()?),
            Scalar::Fixed64 => drop(reader.array::<8>()?),
            _ => drop(reader.varint()?),
        }
    }
    Ok(())
}
