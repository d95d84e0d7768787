//! Keys of a map field of a channel's data: read from bytes, ordered, written again.

use crate::schema::layout::Scalar;
use crate::wire::{Field, WireError, WireType, put_bytes_field, put_key, put_varint};

use super::node::Value;

/// The key of a map's entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A whole number or bool, as its bits lie on the wire.
    Number(u64),
    /// A text.
    Text(Box<str>),
}

impl Key {
    /// What an entry without a key has.
    pub(super) fn default_of(scalar: Scalar) -> Self {
        match scalar {
            Scalar::String => Self::Text("".into()),
            _ => Self::Number(0),
        }
    }

    pub(super) fn read(scalar: Scalar, field: &Field<'_>) -> Result<Self, WireError> {
        if scalar == Scalar::String {
            return Ok(Self::Text(field.string()?.into()));
        }
        Ok(match Value::scalar(scalar, field)? {
            Value::Varint(bits) | Value::Fixed64(bits) => Self::Number(bits),
            Value::Fixed32(bits) => Self::Number(u64::from(bits)),
            // Bytes and floats cannot be keys.
            _ => return Err(WireError::UnexpectedWireType(field.number)),
        })
    }

    /// Appends the key as field 1 of an entry.
    pub(super) fn encode(&self, scalar: Scalar, out: &mut Vec<u8>) {
        match (self, scalar) {
            (Self::Text(text), _) => put_bytes_field(out, 1, text.as_bytes()),
            (Self::Number(bits), Scalar::Fixed32) => {
                put_key(out, 1, WireType::Fixed32);
                out.extend_from_slice(&(*bits as u32).to_le_bytes());
            }
            (Self::Number(bits), Scalar::Fixed64) => {
                put_key(out, 1, WireType::Fixed64);
                out.extend_from_slice(&bits.to_le_bytes());
            }
            (Self::Number(bits), _) => {
                put_key(out, 1, WireType::Varint);
                put_varint(out, *bits);
            }
        }
    }
}

impl From<u32> for Key {
    fn from(key: u32) -> Self {
        Self::Number(u64::from(key))
    }
}
