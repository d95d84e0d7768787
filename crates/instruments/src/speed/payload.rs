//! What is carried in bulk, such that the receiver can see by the bytes
//! alone that each is the right one in the right place.
//!
//! Every payload is cut from one block of noise that both ends make from the
//! lane's seed. A message begins with its number, and its number says where in
//! the block the rest is cut from; a stream is the block over and over. The
//! receiver compares every byte with what it must be, which is both more than
//! a checksum can promise and faster than computing one.

use lagometer_units::SplitMix64;
use thiserror::Error;

/// Bytes of the block: a prime, so that no length in which a network deals
/// divides it, and a piece that was lost, doubled or put elsewhere cannot
/// match.
const BLOCK_BYTES: usize = 65_521;

/// How far the cut moves from one message to the next; it visits every place
/// of the block before it comes back.
const STEP_BYTES: u64 = 4_099;

/// Bytes in front of a message: its number, little-endian.
pub(super) const NUMBER_BYTES: usize = 8;

/// Pieces of a stream that share one write.
const STREAM_PIECES: usize = 16;

/// The block.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    block: Vec<u8>,
}

/// Why a message is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Damage {
    /// The message has another length.
    #[error("a message has another length than was sent")]
    Length,
    /// A byte is not what it must be.
    #[error("a message holds other bytes than were sent")]
    Bytes,
}

impl Payload {
    /// The block of a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut generator = SplitMix64::new(seed);
        let mut block = Vec::with_capacity(BLOCK_BYTES + 8);
        while block.len() < BLOCK_BYTES {
            block.extend_from_slice(&generator.next_u64().to_le_bytes());
        }
        block.truncate(BLOCK_BYTES);
        Self { block }
    }

    /// Puts message `number` in place of what `message` holds, which has room
    /// for at least the number.
    pub(super) fn write(&self, number: u64, message: &mut [u8]) {
        let (head, mut rest) = message.split_at_mut(NUMBER_BYTES);
        head.copy_from_slice(&number.to_le_bytes());
        let mut at = place(number);
        while !rest.is_empty() {
            let piece = rest.len().min(BLOCK_BYTES - at);
            let (now, later) = rest.split_at_mut(piece);
            now.copy_from_slice(&self.block[at..at + piece]);
            rest = later;
            at = 0;
        }
    }

    /// The number of a message, if the message is whole and `bytes` long.
    pub(super) fn check(&self, message: &[u8], bytes: usize) -> Result<u64, Damage> {
        let Some((number, rest)) = message.split_first_chunk::<NUMBER_BYTES>() else {
            return Err(Damage::Length);
        };
        if message.len() != bytes.max(NUMBER_BYTES) {
            return Err(Damage::Length);
        }
        let number = u64::from_le_bytes(*number);
        if self.matches(place(number), rest) {
            Ok(number)
        } else {
            Err(Damage::Bytes)
        }
    }

    /// Whether `bytes` are those of the stream from `position` on.
    pub(super) fn check_stream(&self, position: u64, bytes: &[u8]) -> bool {
        self.matches((position % BLOCK_BYTES as u64) as usize, bytes)
    }

    /// The stream from `position` on, `bytes` long or less, in pieces for one
    /// write.
    pub(super) fn stream<'a>(
        &'a self,
        position: u64,
        bytes: usize,
        pieces: &mut Vec<std::io::IoSlice<'a>>,
    ) {
        pieces.clear();
        let mut at = (position % BLOCK_BYTES as u64) as usize;
        let mut left = bytes;
        while left > 0 && pieces.len() < STREAM_PIECES {
            let piece = left.min(BLOCK_BYTES - at);
            pieces.push(std::io::IoSlice::new(&self.block[at..at + piece]));
            left -= piece;
            at = 0;
        }
    }

    fn matches(&self, mut at: usize, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let piece = bytes.len().min(BLOCK_BYTES - at);
            if bytes[..piece] != self.block[at..at + piece] {
                return false;
            }
            bytes = &bytes[piece..];
            at = 0;
        }
        true
    }
}

/// Where in the block a message is cut from.
const fn place(number: u64) -> usize {
    (number.wrapping_mul(STEP_BYTES) % BLOCK_BYTES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_known_again_and_any_change_of_it_is_not(
            number: u64,
            bytes in 8_usize..200_000,
            at in any::<prop::sample::Index>(),
            change in 1_u8..,
        ) {
            let payload = Payload::new(7);
            let mut message = vec![0; bytes];
            payload.write(number, &mut message);
            prop_assert_eq!(message.len(), bytes);
            prop_assert_eq!(payload.check(&message, bytes), Ok(number));
            prop_assert_eq!(payload.check(&message, bytes + 1), Err(Damage::Length));
            message.push(0);
            prop_assert_eq!(payload.check(&message, bytes), Err(Damage::Length));
            message.pop();
            let at = at.index(message.len());
            message[at] ^= change;
            // A changed number takes the cut elsewhere, except where nothing
            // but the number was sent.
            let checked = payload.check(&message, bytes);
            prop_assert!(checked != Ok(number), "{checked:?}");
            if at >= NUMBER_BYTES {
                prop_assert_eq!(checked, Err(Damage::Bytes));
            }
        }

        #[test]
        fn a_stream_is_known_again_wherever_it_is_cut(
            position in 0_u64..10_000_000,
            bytes in 1_usize..2_000_000,
            missing in 1_usize..60_000,
        ) {
            let payload = Payload::new(7);
            let mut pieces = Vec::new();
            payload.stream(position, bytes, &mut pieces);
            let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            prop_assert!(!joined.is_empty() && joined.len() <= bytes);
            prop_assert!(payload.check_stream(position, &joined));
            if joined.len() >= 16 {
                prop_assert!(!payload.check_stream(position + missing as u64, &joined));
            }
        }
    }

    #[test]
    fn other_seeds_make_other_bytes() {
        let (mut one, mut other) = ([0; 100], [0; 100]);
        Payload::new(1).write(0, &mut one);
        Payload::new(2).write(0, &mut other);
        assert_ne!(one, other);
        assert_eq!(Payload::new(1).check(&[1, 2, 3], 100), Err(Damage::Length));
    }
}
