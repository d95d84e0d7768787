//! What a message holds: its number, a check, and bytes that can be distinguished from
//! any other message's.

use lagometer_units::SplitMix64;
use thiserror::Error;

/// Writes and recognises the messages of one lane.
///
/// The first eight bytes are the message's number and a check over number,
/// size and key; the rest is a keystream of the same three, so that a message
/// that was damaged, truncated or stitched together is never taken for whole.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    key: u64,
    size_bytes: usize,
}

/// A message that is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the message is not what was sent")]
pub struct Damaged;

impl Payload {
    /// Messages of `size_bytes` (at least 8) under `key`.
    #[must_use]
    pub fn new(key: u64, size_bytes: usize) -> Self {
        Self {
            key,
            size_bytes: size_bytes.max(8),
        }
    }

    /// The size of every message.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Writes message `number` into `buffer`, replacing what it held.
    pub fn write(&self, number: u32, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&number.to_le_bytes());
        buffer.extend_from_slice(&self.check(number).to_le_bytes());
        let mut stream = Keystream::new(self.key, number);
        while buffer.len() + 8 <= self.size_bytes {
            buffer.extend_from_slice(&stream.next_word().to_le_bytes());
        }
        let rest = self.size_bytes - buffer.len();
        buffer.extend_from_slice(&stream.next_word().to_le_bytes()[..rest]);
    }

    /// The number of a message that is exactly what [`write`](Self::write)
    /// made.
    ///
    /// # Errors
    ///
    /// [`Damaged`] for anything else.
    pub fn read(&self, message: &[u8]) -> Result<u32, Damaged> {
        if message.len() != self.size_bytes {
            return Err(Damaged);
        }
        let (head, filler) = message.split_first_chunk::<8>().ok_or(Damaged)?;
        let number = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let check = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if check != self.check(number) {
            return Err(Damaged);
        }
        let mut stream = Keystream::new(self.key, number);
        let (words, rest) = filler.as_chunks::<8>();
        let whole = words
            .iter()
            .all(|word| u64::from_le_bytes(*word) == stream.next_word())
            && stream.next_word().to_le_bytes().starts_with(rest);
        if whole { Ok(number) } else { Err(Damaged) }
    }

    fn check(&self, number: u32) -> u32 {
        let mut stream = Keystream::new(self.key ^ self.size_bytes as u64, !number);
        (stream.next_word() >> 32) as u32
    }
}

/// What a message is filled with: fast, and enough to tell messages apart.
struct Keystream(SplitMix64);

impl Keystream {
    fn new(key: u64, number: u32) -> Self {
        let number = u64::from(number);
        Self(SplitMix64::new(key ^ (number << 32 | number)))
    }

    fn next_word(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(key: u64, number: u32, size in 8_usize..2000) {
            let payload = Payload::new(key, size);
            let mut message = Vec::new();
            payload.write(number, &mut message);
            prop_assert_eq!(message.len(), size);
            prop_assert_eq!(payload.read(&message), Ok(number));
        }

        #[test]
        fn every_flipped_bit_is_noticed(number: u32, size in 8_usize..200, at: prop::sample::Index) {
            let payload = Payload::new(7, size);
            let mut message = Vec::new();
            payload.write(number, &mut message);
            let bit = at.index(size * 8);
            message[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(payload.read(&message), Err(Damaged));
        }

        #[test]
        fn other_bytes_are_damaged(bytes: Vec<u8>) {
            prop_assert_eq!(Payload::new(3, 64).read(&bytes), Err(Damaged));
        }
    }
}
