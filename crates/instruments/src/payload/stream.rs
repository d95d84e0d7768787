//! Checking messages that arrive as a stream of bytes, in pieces of any size.

use super::{Corrupt, HEADER_BYTES, Payload};

/// Follows a stream of messages, one right behind the other.
#[derive(Clone, Debug)]
pub struct StreamCheck {
    payload: Payload,
    /// The message that the stream is in.
    number: u64,
    /// Its bytes that have been seen.
    within: usize,
}

impl StreamCheck {
    /// At the first byte of message 0.
    #[must_use]
    pub const fn new(payload: Payload) -> Self {
        Self {
            payload,
            number: 0,
            within: 0,
        }
    }

    /// Whole messages that have been seen.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.number
    }

    /// Checks the next bytes of the stream, every one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if they are not what was sent; the stream cannot be
    /// followed any further then.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), Corrupt> {
        while !bytes.is_empty() {
            let (count, whole) = self.piece(bytes)?;
            bytes = &bytes[count..];
            if whole {
                self.number += 1;
                self.within = 0;
            } else {
                self.within += count;
            }
        }
        Ok(())
    }

    /// Checks the next bytes, up to the end of the header or of the message;
    /// how many, and whether the message ends there.
    #[inline]
    fn piece(&self, bytes: &[u8]) -> Result<(usize, bool), Corrupt> {
        let size = self.payload.size;
        let at = self.within;
        let right = |expected: &[u8]| {
            let count = expected.len().min(bytes.len());
            let same = bytes[..count] == expected[..count];
            same.then_some((count, at + count == size)).ok_or(Corrupt)
        };
        if size < HEADER_BYTES {
            right(&self.payload.disguised(self.number)[at..size])
        } else if at < HEADER_BYTES {
            right(&self.payload.header(self.number)[at..])
        } else {
            let place = self.payload.place(self.number);
            right(&self.payload.pattern[place + at..place + size])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(size: usize, messages: u64) -> Vec<u8> {
        let mut payload = Payload::new(11, size);
        (0..messages)
            .flat_map(|number| payload.message(number).to_vec())
            .collect()
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_are_followed(
            size in 1_usize..200,
            cuts in prop::collection::vec(1_usize..500, 1..50),
        ) {
            let bytes = stream(size, 300);
            let mut check = StreamCheck::new(Payload::new(11, size));
            let mut rest = bytes.as_slice();
            for cut in cuts.into_iter().cycle() {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                prop_assert_eq!(check.take(piece), Ok(()));
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(check.messages(), 300);
        }

        #[test]
        fn no_changed_byte_passes(
            size in 1_usize..100,
            at in any::<prop::sample::Index>(),
            change in 1_u8..,
        ) {
            let mut bytes = stream(size, 100);
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            let mut check = StreamCheck::new(Payload::new(11, size));
            prop_assert_eq!(check.take(&bytes), Err(Corrupt));
        }
    }
}
