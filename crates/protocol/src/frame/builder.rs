//! Puts messages into frames: packets of at most the size that the header has room for.

use thiserror::Error;

use crate::compression::{Compression, Compressor};
use crate::packet::{MAX_MESSAGE_LEN, MessagePack};

use super::{HEADER_LEN, MAX_PAYLOAD, frame_header};

/// Collects messages into one frame.
///
/// A builder is meant to be used again: [`clear`](Self::clear) keeps its
/// memory.
#[derive(Debug)]
pub struct FrameBuilder {
    /// Room for the header, then the packet.
    bytes: Vec<u8>,
}

/// Why a message was not put into a frame; the frame is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PushError {
    /// The frame has no room for it; the next one will.
    #[error("the frame is full")]
    Full,
    /// No frame has room for it.
    #[error("a message of {size_bytes} bytes is longer than the {MAX_MESSAGE_LEN} a frame takes")]
    TooLarge {
        /// The encoded size of the message.
        size_bytes: usize,
    },
}

impl Default for FrameBuilder {
    fn default() -> Self {
        Self {
            bytes: vec![0; HEADER_LEN],
        }
    }
}

impl FrameBuilder {
    /// An empty frame.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    ///
    /// # Errors
    ///
    /// [`PushError`] when it does not fit.
    pub fn push(&mut self, message: &MessagePack<'_>) -> Result<(), PushError> {
        let size_bytes = message.encoded_len();
        if size_bytes > MAX_MESSAGE_LEN {
            return Err(PushError::TooLarge { size_bytes });
        }
        if self.packet_len() + message.encoded_len_in_packet() > MAX_PAYLOAD {
            return Err(PushError::Full);
        }
        message.encode_in_packet(&mut self.bytes);
        Ok(())
    }

    /// Appends messages that
    /// [`encode_in_packet`](MessagePack::encode_in_packet) wrote before, as
    /// when one update goes to many.
    ///
    /// # Errors
    ///
    /// [`PushError`] when they do not fit.
    pub fn push_encoded(&mut self, encoded: &[u8]) -> Result<(), PushError> {
        let size_bytes = encoded.len();
        if size_bytes > MAX_PAYLOAD {
            return Err(PushError::TooLarge { size_bytes });
        }
        if self.packet_len() + size_bytes > MAX_PAYLOAD {
            return Err(PushError::Full);
        }
        self.bytes.extend_from_slice(encoded);
        Ok(())
    }

    /// Fills in the header and returns the frame, uncompressed. `None` when no
    /// message was put in: there is no empty frame.
    pub fn finish(&mut self) -> Option<&[u8]> {
        let payload_len = u16::try_from(self.packet_len())
            .ok()
            .filter(|&len| len > 0)?;
        self.bytes[..HEADER_LEN].copy_from_slice(&frame_header(payload_len, Compression::None));
        Some(&self.bytes)
    }

    /// As [`finish`](Self::finish), but with the payload compressed where that
    /// makes it smaller. The packet is then gone: clear the builder before the
    /// next message.
    pub fn finish_compressed(&mut self, compressor: &mut Compressor) -> Option<&[u8]> {
        if let Some(packed) = compressor.compress(&self.bytes[HEADER_LEN..])
            && let Ok(payload_len) = u16::try_from(packed.len())
        {
            self.bytes.truncate(HEADER_LEN);
            self.bytes.extend_from_slice(packed);
            self.bytes[..HEADER_LEN]
                .copy_from_slice(&frame_header(payload_len, Compression::Snappy));
            return Some(&self.bytes);
        }
        self.finish()
    }

    /// Empties the frame for the next messages.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_LEN);
    }

    /// Bytes of the packet so far.
    #[must_use]
    pub fn packet_len(&self) -> usize {
        self.bytes.len() - HEADER_LEN
    }

    /// Whether no message has been put in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packet_len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameDecoder, FrameLimits};
    use crate::packet::Packet;

    fn message(body: &[u8]) -> MessagePack<'_> {
        MessagePack {
            channel_id: 7,
            msg_type: 8,
            body,
            ..MessagePack::default()
        }
    }

    #[test]
    fn messages_put_in_come_out() {
        let mut builder = FrameBuilder::new();
        assert_eq!(builder.finish(), None);
        builder.push(&message(b"one")).unwrap();
        builder.push(&message(b"two")).unwrap();
        let mut stream = builder.finish().unwrap();
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let frame = decoder.next(&mut stream).unwrap().unwrap();
        let packet = Packet::new_checked(frame.payload).unwrap();
        let bodies: Vec<_> = packet.messages().map(|message| message.body).collect();
        assert_eq!(bodies, [b"one", b"two"]);
    }

    #[test]
    fn a_full_frame_stays_as_it_was() {
        let body = vec![0; 40_000];
        let mut builder = FrameBuilder::new();
        builder.push(&message(&body)).unwrap();
        let len = builder.packet_len();
        assert_eq!(builder.push(&message(&body)), Err(PushError::Full));
        assert_eq!(builder.packet_len(), len);
        builder.clear();
        assert!(builder.is_empty());
        builder.push(&message(&body)).unwrap();
    }

    #[test]
    fn the_longest_message_fits_and_one_byte_more_does_not() {
        let envelope = message(&vec![0; 20_000]).encoded_len() - 20_000;
        let longest = vec![0; MAX_MESSAGE_LEN - envelope];
        let mut builder = FrameBuilder::new();
        builder.push(&message(&longest)).unwrap();
        assert!(builder.finish().is_some());
        builder.clear();
        let longer = vec![0; longest.len() + 1];
        assert_eq!(
            builder.push(&message(&longer)),
            Err(PushError::TooLarge {
                size_bytes: MAX_MESSAGE_LEN + 1
            })
        );
    }

    #[test]
    fn compression_is_used_where_it_pays() {
        let mut compressor = Compressor::new();
        let mut builder = FrameBuilder::new();
        builder.push(&message(&[5; 4000])).unwrap();
        let mut stream = builder.finish_compressed(&mut compressor).unwrap();
        assert!(stream.len() < 400);
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let frame = decoder.next(&mut stream).unwrap().unwrap();
        assert_eq!(frame.compression, Compression::Snappy);
        let mut scratch = Vec::new();
        let bytes = frame.packet_bytes(10_000, &mut scratch).unwrap();
        let packet = Packet::new_checked(bytes).unwrap();
        assert_eq!(packet.messages().next().unwrap().body, [5; 4000]);

        builder.clear();
        builder.push(&message(b"short")).unwrap();
        let plain = builder.finish_compressed(&mut compressor).unwrap();
        assert_eq!(plain[4], Compression::None as u8);
    }
}
