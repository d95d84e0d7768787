//! `google.protobuf.Any`, read in place.

use crate::wire::{
    Reader, Value, WireError, WireType, encoded_len_varint, put_bytes_field, put_key, put_varint,
};

const TYPE_URL: u32 = 1;
const VALUE: u32 = 2;

/// What comes before the type's name in every URL that is written.
const URL_PREFIX: &str = "type.googleapis.com/";

/// A message of some type, named by a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnyView<'a> {
    /// `type.googleapis.com/` and the full name of the type.
    pub type_url: &'a str,
    /// The encoded message.
    pub value: &'a [u8],
}

impl<'a> AnyView<'a> {
    /// Reads an encoded `Any`.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut any = Self::default();
        any.merge(bytes)?;
        Ok(any)
    }

    /// Appends the encoded `Any`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if !self.type_url.is_empty() {
            put_bytes_field(out, TYPE_URL, self.type_url.as_bytes());
        }
        if !self.value.is_empty() {
            put_bytes_field(out, VALUE, self.value);
        }
    }

    /// The full name of the type, such as `tpspb.EntityChannelData`: what
    /// follows the URL's last slash.
    #[must_use]
    pub fn type_name(&self) -> &'a str {
        type_name(self.type_url)
    }

    /// The encoded size.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        head_len(self.type_url, self.value.len()) + self.value.len()
    }

    /// Reads further bytes of the same field: they override what was read.
    pub(crate) fn merge(&mut self, bytes: &'a [u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(bytes);
        while let Some(field) = reader.next_field()? {
            match (field.number, field.value) {
                (TYPE_URL, Value::Bytes(_)) => self.type_url = field.string()?,
                (VALUE, Value::Bytes(value)) => self.value = value,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The URL of a type's full name.
#[must_use]
pub fn type_url(type_name: &str) -> String {
    format!("{URL_PREFIX}{type_name}")
}

/// The full name in a type's URL: what follows its last slash.
#[must_use]
pub fn type_name(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or(type_url)
}

/// Appends all of an `Any` that comes before a value of `value_len` bytes.
pub(crate) fn encode_head(type_url: &str, value_len: usize, out: &mut Vec<u8>) {
    AnyView {
        type_url,
        value: &[],
    }
    .encode(out);
    if value_len > 0 {
        put_key(out, VALUE, WireType::Bytes);
        put_varint(out, value_len as u64);
    }
}

/// The size of what [`encode_head`] appends.
pub(crate) fn head_len(type_url: &str, value_len: usize) -> usize {
    let url = match type_url.len() {
        0 => 0,
        len => 1 + encoded_len_varint(len as u64) + len,
    };
    let value = match value_len {
        0 => 0,
        len => 1 + encoded_len_varint(len as u64),
    };
    url + value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_url() {
        let url = type_url("tpspb.EntityChannelData");
        assert_eq!(url, "type.googleapis.com/tpspb.EntityChannelData");
        assert_eq!(type_name(&url), "tpspb.EntityChannelData");
        assert_eq!(
            type_name("tpspb.EntityChannelData"),
            "tpspb.EntityChannelData"
        );
        assert_eq!(type_name(""), "");
    }
}
