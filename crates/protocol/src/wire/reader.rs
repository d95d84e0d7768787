//! Walking the fields of an encoded message.

use std::str::Utf8Error;

use thiserror::Error;

use super::{MAX_DEPTH, WireType};

/// Why bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A value goes on past the end.
    #[error("a value goes on past the end of its message")]
    Truncated,
    /// A varint of more than 64 bits.
    #[error("a varint holds more than 64 bits")]
    VarintTooLong,
    /// A key that holds no field number or more than 32 bits.
    #[error("a key holds no valid field number")]
    BadKey,
    /// A wire type that does not exist.
    #[error("wire type {0} does not exist")]
    BadWireType(u8),
    /// A field whose wire type is not the one its type has.
    #[error("field {0} has a wire type that does not fit it")]
    UnexpectedWireType(u32),
    /// A group that is not closed, or closed without having been opened.
    #[error("a group is not properly closed")]
    BadGroup,
    /// Messages or groups lie deeper within each other than
    /// [`MAX_DEPTH`].
    #[error("messages lie more than {MAX_DEPTH} deep within each other")]
    TooDeep,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    NotUtf8,
}

impl From<Utf8Error> for WireError {
    fn from(_: Utf8Error) -> Self {
        Self::NotUtf8
    }
}

/// One field as it lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// The field's number, 1 to 2²⁹ − 1.
    pub number: u32,
    /// What it holds.
    pub value: Value<'a>,
    /// The whole field, key and value, as it was encoded.
    pub raw: &'a [u8],
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An integer, a bool or an enum.
    Varint(u64),
    /// Eight bytes, read little-endian.
    Fixed64(u64),
    /// A string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    /// A group, skipped; its bytes are in [`Field::raw`].
    Group,
    /// Four bytes, read little-endian.
    Fixed32(u32),
}

impl Value<'_> {
    /// How the value is laid out.
    #[must_use]
    #[inline]
    pub fn wire_type(&self) -> WireType {
        match self {
            Self::Varint(_) => WireType::Varint,
            Self::Fixed64(_) => WireType::Fixed64,
            Self::Bytes(_) => WireType::Bytes,
            Self::Group => WireType::Group,
            Self::Fixed32(_) => WireType::Fixed32,
        }
    }
}

impl<'a> Field<'a> {
    /// The value of a `uint32` field; more than 32 bits are cut off, as
    /// everywhere in protobuf.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedWireType`] when it is no varint.
    #[inline]
    pub fn uint32(&self) -> Result<u32, WireError> {
        match self.value {
            Value::Varint(value) => Ok(value as u32),
            _ => Err(WireError::UnexpectedWireType(self.number)),
        }
    }

    /// The value of a `bytes` or message field.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedWireType`] when it has no length.
    #[inline]
    pub fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::UnexpectedWireType(self.number)),
        }
    }

    /// The value of a `string` field.
    ///
    /// # Errors
    ///
    /// [`WireError::UnexpectedWireType`] when it has no length,
    /// [`WireError::NotUtf8`] when it is no text.
    #[inline]
    pub fn string(&self) -> Result<&'a str, WireError> {
        Ok(std::str::from_utf8(self.bytes()?)?)
    }
}

/// Walks the fields of one message, in the order they were written.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of an encoded message.
    #[must_use]
    #[inline]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// What has not been read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are no message; what then follows in them
    /// has no meaning.
    #[expect(
        clippy::inline_always,
        reason = "the loop over a message's fields is the hottest there is, and what a field is \
                  made of need not leave the registers"
    )]
    #[inline(always)]
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.rest;
        let (number, wire_type) = self.key()?;
        let value = match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            3 => {
                self.skip_group(number, 1)?;
                Value::Group
            }
            4 => return Err(WireError::BadGroup),
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(WireError::BadWireType(other)),
        };
        let raw = &start[..start.len() - self.rest.len()];
        Ok(Some(Field { number, value, raw }))
    }

    /// Reads one varint, for packed numbers.
    ///
    /// # Errors
    ///
    /// [`WireError::Truncated`] or [`WireError::VarintTooLong`].
    #[inline]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        // Most varints are keys, small numbers and short lengths: one byte.
        if let [byte, rest @ ..] = self.rest
            && *byte < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    /// Reads so many bytes as an array, for packed numbers of fixed size.
    ///
    /// # Errors
    ///
    /// [`WireError::Truncated`] when fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Whether the end has been reached.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn key(&mut self) -> Result<(u32, u8), WireError> {
        let key = u32::try_from(self.varint()?).map_err(|_| WireError::BadKey)?;
        let number = key >> 3;
        let wire_type = (key & 7) as u8;
        if wire_type > WireType::Fixed32 as u8 {
            return Err(WireError::BadWireType(wire_type));
        }
        if number == 0 {
            return Err(WireError::BadKey);
        }
        Ok((number, wire_type))
    }

    #[inline]
    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                if index == 9 && byte > 1 {
                    return Err(WireError::VarintTooLong);
                }
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 {
            WireError::Truncated
        } else {
            WireError::VarintTooLong
        })
    }

    fn skip_group(&mut self, number: u32, depth: u32) -> Result<(), WireError> {
        if depth > MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        loop {
            let (inner, wire_type) = self.key()?;
            match wire_type {
                0 => {
                    self.varint()?;
                }
                1 => {
                    self.take(8)?;
                }
                2 => {
                    let length = self.varint()?;
                    self.take(length)?;
                }
                3 => self.skip_group(inner, depth + 1)?,
                4 if inner == number => return Ok(()),
                4 => return Err(WireError::BadGroup),
                _ => {
                    self.take(4)?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
        let mut reader = Reader::new(bytes);
        let mut fields = Vec::new();
        while let Some(field) = reader.next_field()? {
            fields.push(field);
        }
        Ok(fields)
    }

    #[test]
    fn every_wire_type_is_read() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: eight bytes
            0x1a, 2, b'h', b'i', // 3: bytes
            0x23, 0x08, 0x01, 0x24, // 4: a group
            0x2d, 2, 0, 0, 0, // 5: four bytes
        ];
        let fields = fields(&bytes).unwrap();
        let values: Vec<_> = fields.iter().map(|field| field.value).collect();
        assert_eq!(
            values,
            [
                Value::Varint(150),
                Value::Fixed64(1),
                Value::Bytes(b"hi"),
                Value::Group,
                Value::Fixed32(2),
            ]
        );
        let raw: Vec<u8> = fields.iter().flat_map(|field| field.raw).copied().collect();
        assert_eq!(raw, bytes, "the raw fields together are the message");
    }

    #[test]
    fn bad_bytes_are_distinguished() {
        assert_eq!(fields(&[0x08]), Err(WireError::Truncated));
        assert_eq!(fields(&[0x0a, 5, 1]), Err(WireError::Truncated));
        assert_eq!(fields(&[0x00, 0]), Err(WireError::BadKey));
        assert_eq!(fields(&[0x0e]), Err(WireError::BadWireType(6)));
        assert_eq!(fields(&[0x0c]), Err(WireError::BadGroup));
        assert_eq!(fields(&[0x0b, 0x14]), Err(WireError::BadGroup));
        let eleven = [&[0x08][..], &[0xff; 10], &[1]].concat();
        assert_eq!(fields(&eleven), Err(WireError::VarintTooLong));
        assert_eq!(fields(&[0x0b; 200]), Err(WireError::TooDeep));
    }

    #[test]
    fn the_largest_varint_has_ten_bytes() {
        let bytes = [&[0x08][..], &[0xff; 9], &[1]].concat();
        assert_eq!(fields(&bytes).unwrap()[0].value, Value::Varint(u64::MAX));
    }
}
