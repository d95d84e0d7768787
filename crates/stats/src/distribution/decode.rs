//! Reading a written distribution back.
//!
//! The library's own reader trusts its input: it negates a count without a
//! check and sizes its memory by the header. This one refuses instead. The
//! encoding is that of the `HdrHistogram` project ("V2 encoding"): a header of
//! 40 bytes, then counts as zig-zag variable-length integers, a negative one
//! standing for a run of empty buckets. Compressed, all that is a zlib stream
//! (RFC 1950) behind a mark and a length of four bytes each.

use std::io::Read;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;

use super::{BadDistribution, Distribution, SIGNIFICANT_DIGITS};

/// The longest text that is read: eight times what a distribution with a
/// distinct count in each of its 56 000 buckets takes.
const LONGEST_TEXT: usize = 4 << 20;

/// The most bytes that a compressed distribution may unpack to: as many as the
/// longest text holds.
const MOST_UNPACKED: usize = LONGEST_TEXT / 4 * 3;

/// The first four bytes of the compressed V2 encoding.
const COMPRESSED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// The first four bytes of the uncompressed V2 encoding.
const COOKIE: u32 = 0x1c84_9313;

const HEADER_BYTES: usize = 40;

/// Buckets of one power of two: half of the 2048 that three digits need.
const HALF_BUCKETS: u64 = 1024;

pub(super) fn from_base64(text: &str) -> Result<Distribution, BadDistribution> {
    if text.len() > LONGEST_TEXT {
        return Err(BadDistribution::TooLong {
            len: text.len(),
            limit: LONGEST_TEXT,
        });
    }
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| BadDistribution::NotBase64)?;
    let bytes = match bytes.split_first_chunk() {
        Some((mark, packed)) if *mark == COMPRESSED_COOKIE => unpack(packed)?,
        _ => bytes,
    };
    let counts = check_header(&bytes)?;
    decode_counts(counts)
}

/// The uncompressed encoding out of a length and a zlib stream of that length.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, BadDistribution> {
    let (len, stream) = packed
        .split_first_chunk()
        .ok_or(BadDistribution::NotOurs("it is cut short"))?;
    if u32::from_be_bytes(*len) as usize != stream.len() {
        return Err(BadDistribution::NotOurs(
            "its length is not what its header says",
        ));
    }
    let mut bytes = Vec::new();
    let mut unpacked = ZlibDecoder::new(stream).take(MOST_UNPACKED as u64 + 1);
    unpacked
        .read_to_end(&mut bytes)
        .map_err(|_| BadDistribution::NotOurs("it does not unpack"))?;
    if bytes.len() > MOST_UNPACKED {
        return Err(BadDistribution::NotOurs("it unpacks to too much"));
    }
    Ok(bytes)
}

/// Checks the header and returns the encoded counts behind it.
fn check_header(bytes: &[u8]) -> Result<&[u8], BadDistribution> {
    let (header, counts) = bytes
        .split_at_checked(HEADER_BYTES)
        .ok_or(BadDistribution::NotOurs("it is cut short"))?;
    let word = |at: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&header[at..at + 4]);
        u32::from_be_bytes(word)
    };
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    let expect = |holds: bool, otherwise| {
        holds
            .then_some(())
            .ok_or(BadDistribution::NotOurs(otherwise))
    };
    expect(word(0) == COOKIE, "it starts with another mark")?;
    expect(
        word(4) as usize == counts.len(),
        "its length is not what its header says",
    )?;
    expect(word(8) == 0, "it is normalised")?;
    expect(
        word(12) == u32::from(SIGNIFICANT_DIGITS),
        "it has another number of digits",
    )?;
    expect(long(16) == 1, "its unit is not the nanosecond")?;
    expect(
        f64::from_bits(long(32)).to_bits() == 1.0_f64.to_bits(),
        "its values are scaled",
    )?;
    Ok(counts)
}

fn decode_counts(mut encoded: &[u8]) -> Result<Distribution, BadDistribution> {
    let mut distribution = Distribution::new();
    let mut bucket = 0_u64;
    while !encoded.is_empty() {
        let number = zig_zag(take_varint(&mut encoded)?);
        if number <= 0 {
            // A lone zero is an empty bucket, like a run of one.
            bucket = bucket
                .checked_add(number.unsigned_abs().max(1))
                .ok_or(BadDistribution::NotOurs("it has too many buckets"))?;
        } else {
            let value =
                bucket_value(bucket).ok_or(BadDistribution::NotOurs("it has too many buckets"))?;
            distribution.record_n(Duration::from_nanos(value), number.unsigned_abs())?;
            bucket += 1;
        }
    }
    Ok(distribution)
}

/// The smallest value of a bucket. The first 2048 buckets are one nanosecond
/// wide; each 1024 after them are twice as wide as those before.
fn bucket_value(bucket: u64) -> Option<u64> {
    if bucket < 2 * HALF_BUCKETS {
        return Some(bucket);
    }
    let power = u32::try_from(bucket / HALF_BUCKETS - 1).ok()?;
    let mantissa = bucket % HALF_BUCKETS + HALF_BUCKETS;
    (power <= 53).then(|| mantissa << power)
}

/// Takes one little-endian base-128 number of at most nine bytes, the ninth
/// of which counts with all its eight bits.
fn take_varint(encoded: &mut &[u8]) -> Result<u64, BadDistribution> {
    let mut value = 0;
    for index in 0..9 {
        let (&byte, rest) = encoded
            .split_first()
            .ok_or(BadDistribution::NotOurs("its last number is cut short"))?;
        *encoded = rest;
        if index == 8 {
            return Ok(value | u64::from(byte) << 56);
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok(value)
}

const fn zig_zag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}
