//! HMAC-authenticated frames, after the handshake: the sequence number prevents
//! replay, loss and reordering.
//!
//! ```text
//! length of the rest (4 bytes, big-endian), tag (32 bytes), JSON
//! ```
//!
//! The tag is over the frame's number, counted from 0 in each direction with a
//! key for each, and the JSON. Frames are not encrypted: nothing in them is
//! secret.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::tag::{Key, TAG_BYTES};

/// The largest message, in bytes of JSON.
pub(crate) const LARGEST_MESSAGE_BYTES: usize = 4 << 20;

/// Why frames cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum BadFrame {
    #[error("a message of {0} bytes is too large")]
    TooLarge(usize),
    #[error("a frame of {0} bytes is too short")]
    TooShort(usize),
    #[error("a frame was forged, repeated or left out")]
    Forged,
    #[error("a message was not understood: {0}")]
    NotUnderstood(String),
}

/// Seals what one end says.
#[derive(Debug)]
pub(crate) struct Sealer {
    key: Key,
    next: u64,
}

/// Opens what the other end says.
#[derive(Debug)]
pub(crate) struct Opener {
    key: Key,
    next: u64,
    input: Vec<u8>,
}

impl Sealer {
    pub(crate) fn new(key: Key) -> Self {
        Self { key, next: 0 }
    }

    /// The frame of a message.
    pub(crate) fn seal(&mut self, message: &impl Serialize) -> Result<Vec<u8>, BadFrame> {
        let json = serde_json::to_vec(message)
            .map_err(|error| BadFrame::NotUnderstood(error.to_string()))?;
        if json.len() > LARGEST_MESSAGE_BYTES {
            return Err(BadFrame::TooLarge(json.len()));
        }
        let tag = self.key.tag("frame", &[&self.next.to_be_bytes(), &json]);
        self.next += 1;
        let length = (TAG_BYTES + json.len()) as u32;
        Ok([&length.to_be_bytes(), &tag[..], &json].concat())
    }
}

impl Opener {
    /// An opener whose first bytes have arrived already.
    pub(crate) fn new(key: Key, input: Vec<u8>) -> Self {
        Self {
            key,
            next: 0,
            input,
        }
    }

    /// Takes what has arrived. It keeps no more than the rest of one frame if
    /// [`next`](Self::next) is asked until it has nothing.
    pub(crate) fn handle(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The next message, once it is there whole.
    ///
    /// # Errors
    ///
    /// [`BadFrame`]; the control connection is then to be ended.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, BadFrame> {
        let Some((length, rest)) = self.input.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length < TAG_BYTES {
            return Err(BadFrame::TooShort(length));
        }
        if length > TAG_BYTES + LARGEST_MESSAGE_BYTES {
            return Err(BadFrame::TooLarge(length - TAG_BYTES));
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let (tag, json) = frame.split_at(TAG_BYTES);
        if !self
            .key
            .accepts("frame", &[&self.next.to_be_bytes(), json], tag)
        {
            return Err(BadFrame::Forged);
        }
        self.next += 1;
        let message = serde_json::from_slice(json)
            .map_err(|error| BadFrame::NotUnderstood(error.to_string()))?;
        self.input.drain(..4 + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn pair() -> (Sealer, Opener) {
        let key = Key::new(b"key");
        (Sealer::new(key.clone()), Opener::new(key, Vec::new()))
    }

    #[test]
    fn a_repeated_and_a_missing_frame_are_noticed() {
        let (mut sealer, mut opener) = pair();
        let first = sealer.seal(&json!(1)).unwrap();
        let second = sealer.seal(&json!(2)).unwrap();
        opener.handle(&first);
        assert_eq!(opener.next(), Ok(Some(json!(1))));
        opener.handle(&first);
        assert_eq!(opener.next::<Value>(), Err(BadFrame::Forged));

        let (_, mut opener) = pair();
        opener.handle(&second);
        assert_eq!(opener.next::<Value>(), Err(BadFrame::Forged));
    }

    #[test]
    fn a_frame_that_claims_to_be_huge_is_refused_at_once() {
        let (_, mut opener) = pair();
        opener.handle(&u32::MAX.to_be_bytes());
        assert!(matches!(opener.next::<Value>(), Err(BadFrame::TooLarge(_))));
        let (mut sealer, _) = pair();
        let large = "x".repeat(LARGEST_MESSAGE_BYTES);
        assert!(matches!(sealer.seal(&large), Err(BadFrame::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened_however_it_is_cut(
            texts in proptest::collection::vec(".{0,40}", 0..6),
            chunk in 1_usize..90,
        ) {
            let (mut sealer, mut opener) = pair();
            let bytes: Vec<u8> = texts
                .iter()
                .flat_map(|text| sealer.seal(text).unwrap())
                .collect();
            let mut opened = Vec::new();
            for piece in bytes.chunks(chunk) {
                opener.handle(piece);
                while let Some(text) = opener.next::<String>().unwrap() {
                    opened.push(text);
                }
            }
            prop_assert_eq!(opened, texts);
        }

        #[test]
        fn garbage_is_never_opened(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (_, mut opener) = pair();
            opener.handle(&bytes);
            prop_assert!(!matches!(opener.next::<Value>(), Ok(Some(_))));
        }

        #[test]
        fn a_flipped_bit_is_noticed(bit in 0_usize..8 * 40) {
            let (mut sealer, mut opener) = pair();
            let mut frame = sealer.seal(&json!("hello")).unwrap();
            let bits = frame.len() * 8;
            frame[bit % bits / 8] ^= 1 << (bit % 8);
            opener.handle(&frame);
            prop_assert!(!matches!(opener.next::<Value>(), Ok(Some(_))));
        }
    }
}
