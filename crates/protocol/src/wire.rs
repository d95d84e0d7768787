//! The protobuf wire format, read and written without generated types.
//!
//! The hot paths (envelopes, channel data) work on the encoded bytes
//! themselves: a [`Reader`] walks the fields of a message without copying, the
//! writing functions append fields to a buffer. Both follow the library that
//! decodes the cold messages to the byte: what one refuses the other refuses.

mod find;
mod reader;
mod writer;

pub use find::find;
pub use reader::{Field, Reader, Value, WireError};
pub use writer::{
    LengthMark, close_length, encoded_len_varint, open_length, put_bytes_field, put_key,
    put_uint32_field, put_varint,
};

/// How many messages and groups may lie within each other.
pub const MAX_DEPTH: u32 = 100;

/// How a field's value is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WireType {
    /// Seven bits a byte, least significant first.
    Varint = 0,
    /// Eight bytes, little-endian.
    Fixed64 = 1,
    /// A length as varint, then so many bytes.
    Bytes = 2,
    /// Fields up to a matching end mark; no longer in use.
    Group = 3,
    /// Four bytes, little-endian.
    Fixed32 = 5,
}
