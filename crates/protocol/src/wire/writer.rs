//! Appending fields to an encoded message.

use super::WireType;

/// How many bytes a varint takes, 1 to 10.
#[must_use]
pub const fn encoded_len_varint(value: u64) -> usize {
    // ceil(bits / 7) without a division; zero takes one byte.
    (((value | 1).ilog2() * 9 + 73) / 64) as usize
}

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field's key.
#[inline]
pub fn put_key(out: &mut Vec<u8>, number: u32, wire_type: WireType) {
    put_varint(out, (u64::from(number) << 3) | wire_type as u64);
}

/// Appends a `uint32` field without presence: nothing when it is zero.
#[inline]
pub fn put_uint32_field(out: &mut Vec<u8>, number: u32, value: u32) {
    if value != 0 {
        put_key(out, number, WireType::Varint);
        put_varint(out, u64::from(value));
    }
}

/// Appends a field with a length: bytes, a string or an encoded message.
#[inline]
pub fn put_bytes_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_key(out, number, WireType::Bytes);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Where a length that is not yet known will stand.
#[derive(Debug)]
#[must_use = "a length that is opened must be closed"]
pub struct LengthMark(usize);

/// Leaves room for a length; what is appended from here on is counted in it.
#[inline]
pub fn open_length(out: &mut Vec<u8>) -> LengthMark {
    out.push(0);
    LengthMark(out.len())
}

/// Fills in the length of all that was appended since `mark`.
///
/// # Panics
///
/// When `out` was shortened below the mark.
#[expect(clippy::needless_pass_by_value, reason = "a mark is used once")]
#[inline]
pub fn close_length(out: &mut Vec<u8>, mark: LengthMark) {
    let length = out.len() - mark.0;
    // Nearly every nested message is shorter than 128 bytes, so its length
    // fits the byte left for it; a longer one is moved up.
    if length < 0x80 {
        out[mark.0 - 1] = length as u8;
        return;
    }
    let extra = encoded_len_varint(length as u64) - 1;
    out.resize(out.len() + extra, 0);
    out.copy_within(mark.0..mark.0 + length, mark.0 + extra);
    let mut rest = length as u64;
    for byte in &mut out[mark.0 - 1..mark.0 + extra] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    out[mark.0 + extra - 1] &= 0x7f;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{Reader, Value};

    proptest! {
        #[test]
        fn a_varint_comes_back_in_the_length_foretold(bits in 0u32..64, low: u64) {
            let value = low >> bits;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), encoded_len_varint(value));
            prop_assert_eq!(Reader::new(&out).varint(), Ok(value));
        }

        #[test]
        fn a_length_closed_later_is_the_length_put_at_once(length in 0usize..40_000) {
            let content = vec![7; length];
            let mut at_once = vec![1, 2, 3];
            put_bytes_field(&mut at_once, 5, &content);
            let mut later = vec![1, 2, 3];
            put_key(&mut later, 5, WireType::Bytes);
            let mark = open_length(&mut later);
            later.extend_from_slice(&content);
            close_length(&mut later, mark);
            prop_assert_eq!(later, at_once);
        }
    }

    #[test]
    fn zero_is_not_written() {
        let mut out = Vec::new();
        put_uint32_field(&mut out, 1, 0);
        assert!(out.is_empty());
        put_uint32_field(&mut out, 1, 300);
        let field = Reader::new(&out).next_field().unwrap().unwrap();
        assert_eq!((field.number, field.value), (1, Value::Varint(300)));
    }
}
