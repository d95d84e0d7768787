//! What messages hold, so that whoever receives one can identify it and
//! that every byte of it is right, at a price that does not show in a figure.
//!
//! A message of at least [`HEADER_BYTES`] opens with its number and a check
//! over number, size and the run's key; the rest is a stretch of a
//! pseudo-random pattern which begins a word further on in each message, for
//! [`Payload::rotation`] messages. The sender copies nothing: the messages lie
//! over one another in one buffer, and only the header is written for each.
//! The receiver compares the rest with its own copy of the pattern.
//!
//! Shorter messages have no room for that: they hold the low bytes of their
//! number, disguised by the key. One byte reveals a loss, a repetition or an
//! overtaking apart as long as fewer than 128 messages are concerned.

mod stream;

use std::time::SystemTime;

use lagometer_socket::MidPageBuffer;
use lagometer_units::{GOLDEN, SplitMix64};

pub use stream::StreamCheck;

/// Bytes of number and check before the pattern begins.
pub const HEADER_BYTES: usize = 8;

/// The largest message, in bytes.
pub const LARGEST: usize = 1 << 20;

/// Messages whose patterns differ where nothing else is asked for.
pub const ROTATION: usize = 64;

/// How far the pattern moves from one message to the next.
const STEP_BYTES: usize = 8;

/// Makes the messages of one run and checks them. Both ends make their own
/// from the same key, size and rotation.
#[derive(Clone, Debug)]
pub struct Payload {
    key: u64,
    size: usize,
    rotation: usize,
    /// What the rest of a message holds, from its place on.
    pattern: Vec<u8>,
    /// As `pattern`, with the header of the last messages written over it.
    buffer: MidPageBuffer,
}

/// An arrival that is no message of the run: its length or its content is
/// wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

impl Payload {
    /// Messages of `size` bytes, 1 to [`LARGEST`], for the run with `key`.
    #[must_use]
    pub fn new(key: u64, size: usize) -> Self {
        Self::with_rotation(key, size, ROTATION)
    }

    /// As [`new`](Self::new); the patterns of `rotation` messages in a row
    /// differ.
    #[must_use]
    pub fn with_rotation(key: u64, size: usize, rotation: usize) -> Self {
        let size = size.clamp(1, LARGEST);
        let rotation = rotation.max(1);
        let words = (size + rotation * STEP_BYTES + HEADER_BYTES).div_ceil(8);
        let pattern: Vec<u8> = (0..words as u64)
            .flat_map(|word| SplitMix64::first(key ^ word.wrapping_mul(GOLDEN)).to_le_bytes())
            .collect();
        Self {
            key,
            size,
            rotation,
            buffer: MidPageBuffer::from(pattern.as_slice()),
            pattern,
        }
    }

    /// The run's key.
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key
    }

    /// Bytes of a message.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Messages in a row whose patterns differ.
    #[must_use]
    pub const fn rotation(&self) -> usize {
        self.rotation
    }

    /// How many messages in a row have numbers of their own; half of
    /// that is how far a number may be from the expected one.
    #[must_use]
    pub const fn numbers(&self) -> u64 {
        if self.size < 4 {
            1 << (8 * self.size)
        } else {
            1 << 32
        }
    }

    /// The message with this number. In ascending order of numbers nothing is
    /// copied but a header, and a few words each `rotation` messages.
    #[inline]
    pub fn message(&mut self, number: u64) -> &[u8] {
        if self.size < HEADER_BYTES {
            let disguised = self.disguised(number);
            self.buffer[..HEADER_BYTES].copy_from_slice(&disguised);
            return &self.buffer[..self.size];
        }
        let at = self.place(number);
        if at == 0 {
            // The headers of the last round lie over the pattern.
            let round = (self.rotation * STEP_BYTES + HEADER_BYTES).min(self.pattern.len());
            self.buffer[..round].copy_from_slice(&self.pattern[..round]);
        }
        let header = self.header(number);
        self.buffer[at..at + HEADER_BYTES].copy_from_slice(&header);
        &self.buffer[at..at + self.size]
    }

    /// Writes message `number` into `out`, which is as long as a message.
    ///
    /// # Panics
    ///
    /// If `out` is of another length.
    pub fn write(&self, number: u64, out: &mut [u8]) {
        assert_eq!(out.len(), self.size, "a message is as long as it is");
        if self.size < HEADER_BYTES {
            out.copy_from_slice(&self.disguised(number)[..self.size]);
            return;
        }
        let at = self.place(number) + HEADER_BYTES;
        out[..HEADER_BYTES].copy_from_slice(&self.header(number));
        out[HEADER_BYTES..].copy_from_slice(&self.pattern[at..at + self.size - HEADER_BYTES]);
    }

    /// Writes the header of message `number` over that of a message of the
    /// same place in the rotation, which `out` holds.
    pub fn renumber(&self, number: u64, out: &mut [u8]) {
        if self.size < HEADER_BYTES {
            self.write(number, out);
        } else {
            out[..HEADER_BYTES].copy_from_slice(&self.header(number));
        }
    }

    /// Checks every byte of an arrival and returns its number: the one next to
    /// `expected` of those that it may be.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if it is no message of this run.
    #[inline]
    pub fn check(&self, arrival: &[u8], expected: u64) -> Result<u64, Corrupt> {
        if arrival.len() != self.size {
            return Err(Corrupt);
        }
        if self.size < HEADER_BYTES {
            let mut low = [0; 8];
            low[..self.size].copy_from_slice(arrival);
            let low = u64::from_le_bytes(low) ^ self.key;
            let bits = 8 * self.size as u32;
            return Ok(nearest(low, bits.min(32), expected));
        }
        let (header, rest) = arrival.split_at(HEADER_BYTES);
        let low = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let number = nearest(u64::from(low), 32, expected);
        let at = self.place(number) + HEADER_BYTES;
        let right = header == self.header(number)
            && (rest.is_empty() || *rest == self.pattern[at..at + rest.len()]);
        if right { Ok(number) } else { Err(Corrupt) }
    }

    /// Where the message begins in the pattern.
    #[inline]
    fn place(&self, number: u64) -> usize {
        (number % self.rotation as u64) as usize * STEP_BYTES
    }

    /// What a message without a header is made of.
    #[inline]
    const fn disguised(&self, number: u64) -> [u8; HEADER_BYTES] {
        (number ^ self.key).to_le_bytes()
    }

    #[inline]
    fn header(&self, number: u64) -> [u8; HEADER_BYTES] {
        let low = number as u32;
        let check =
            SplitMix64::first(self.key ^ u64::from(low) ^ ((self.size as u64) << 32)) as u32;
        (u64::from(low) | u64::from(check) << 32).to_le_bytes()
    }
}

/// A key for a run: runs that meet on one path differ in it.
#[must_use]
pub fn fresh_key() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SplitMix64::first(since.as_nanos() as u64)
}

/// The number nearest to `expected` whose low `bits` are those of `low`.
#[inline]
const fn nearest(low: u64, bits: u32, expected: u64) -> u64 {
    let range = 1_u64 << bits;
    let ahead = low.wrapping_sub(expected) & (range - 1);
    if ahead < range / 2 || expected + ahead < range {
        expected + ahead
    } else {
        expected + ahead - range
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_distinguished_at_every_size() {
        for size in [
            1, 2, 3, 4, 7, 8, 9, 15, 16, 100, 1400, 1472, 1473, 65_507, 65_536,
        ] {
            let mut sender = Payload::new(7, size);
            let receiver = Payload::new(7, size);
            for number in 0..300 {
                let message = sender.message(number).to_vec();
                assert_eq!(message.len(), size);
                assert_eq!(receiver.check(&message, number), Ok(number), "{size} B");
                let mut written = vec![0; size];
                receiver.write(number, &mut written);
                assert_eq!(written, message, "{size} B");
            }
        }
    }

    #[test]
    fn numbers_jump_back_and_forth_without_harm() {
        let mut sender = Payload::new(1, 200);
        let receiver = Payload::new(1, 200);
        for number in [5, 64, 3, 128, 127, 129, 1, 0, 63] {
            let message = sender.message(number).to_vec();
            let mut written = vec![0; 200];
            receiver.write(number, &mut written);
            if message == written {
                assert_eq!(receiver.check(&message, number), Ok(number));
            } else {
                // Only ascending numbers are promised; nothing wrong passes.
                assert_eq!(receiver.check(&message, number), Err(Corrupt));
            }
        }
    }

    #[test]
    fn one_byte_counts_up_to_its_range() {
        let mut sender = Payload::new(9, 1);
        let receiver = Payload::new(9, 1);
        let message = sender.message(1000).to_vec();
        assert_eq!(receiver.check(&message, 990), Ok(1000));
        assert_eq!(receiver.check(&message, 1100), Ok(1000));
        assert_eq!(receiver.check(&message, 1129), Ok(1256), "out of range");
    }

    #[test]
    fn another_runs_message_is_refused() {
        let mut sender = Payload::new(1, 8);
        assert_eq!(Payload::new(2, 8).check(sender.message(0), 0), Err(Corrupt));
        assert_eq!(Payload::new(1, 9).check(sender.message(0), 0), Err(Corrupt));
    }

    proptest! {
        #[test]
        fn no_flipped_bit_passes(
            size in 8_usize..3000,
            number in 0_u64..1_000_000,
            at in any::<prop::sample::Index>(),
            bit in 0_u32..8,
        ) {
            let mut message = vec![0; size];
            let payload = Payload::new(3, size);
            payload.write(number, &mut message);
            let at = at.index(size);
            message[at] ^= 1 << bit;
            prop_assert_eq!(payload.check(&message, number), Err(Corrupt));
        }

        #[test]
        fn a_number_is_found_again_from_nearby(
            size in 1_usize..20,
            number in 1_000_u64..u64::from(u32::MAX) * 4,
            off in -120_i64..120,
        ) {
            let mut message = vec![0; size];
            let payload = Payload::new(3, size);
            payload.write(number, &mut message);
            let expected = number.saturating_add_signed(off);
            prop_assert_eq!(payload.check(&message, expected), Ok(number));
        }
    }
}
