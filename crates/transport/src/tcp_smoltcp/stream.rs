//! Messages on a stream of bytes: each behind its length.

/// The length in front of each message, little-endian.
pub(super) const LENGTH_BYTES: usize = 4;

/// The length that goes in front of a message.
pub(super) fn length_of(message: &[u8]) -> [u8; LENGTH_BYTES] {
    u32::try_from(message.len())
        .expect("no message is longer than the largest send buffer, 64 MiB")
        .to_le_bytes()
}

/// A message of which a part may have arrived.
#[derive(Debug, Default)]
pub(super) struct Partial {
    /// The length, as far as it is here, then the message likewise.
    bytes: Vec<u8>,
}

/// What stands at the front of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// So many more bytes are needed, and at least one.
    Needs(usize),
    /// A message is complete.
    Complete,
    /// A message announces itself as longer than any may be. The stream is
    /// damaged and cannot be read on.
    TooLong,
}

impl Partial {
    /// Appends what comes next on the stream; no more than is needed.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes out the message that is complete.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.drain(..LENGTH_BYTES);
        bytes
    }

    /// What stands at the front, where no message is longer than
    /// `limit_bytes`.
    pub(super) fn front(&self, limit_bytes: usize) -> Front {
        let Some(length) = self.bytes.first_chunk() else {
            return Front::Needs(LENGTH_BYTES - self.bytes.len());
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > limit_bytes {
            return Front::TooLong;
        }
        match LENGTH_BYTES + length - self.bytes.len() {
            0 => Front::Complete,
            missing => Front::Needs(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            steps in prop::collection::vec(1_usize..20, 1..20),
        ) {
            let mut stream = Vec::new();
            for message in &messages {
                stream.extend(length_of(message));
                stream.extend(message);
            }
            let mut rest = stream.as_slice();
            let mut step = steps.iter().cycle();
            let mut partial = Partial::default();
            let mut read = Vec::new();
            loop {
                match partial.front(50) {
                    Front::Complete => read.push(partial.take()),
                    Front::Needs(_) if rest.is_empty() => break,
                    Front::Needs(missing) => {
                        let len = missing.min(*step.next().unwrap()).min(rest.len());
                        let (next, after) = rest.split_at(len);
                        partial.extend(next);
                        rest = after;
                    }
                    Front::TooLong => prop_assert!(false, "none is"),
                }
            }
            prop_assert_eq!(read, messages);
        }
    }

    #[test]
    fn an_absurd_length_is_refused_before_anything_is_stored() {
        let mut partial = Partial::default();
        partial.extend(&u32::MAX.to_le_bytes());
        assert_eq!(partial.front(1 << 20), Front::TooLong);
    }
}
