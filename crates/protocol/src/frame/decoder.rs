//! From chunks of a stream to frames.

use crate::compression::{Compression, DecompressError, decompress};

use super::form::Examined;
use super::{FrameError, FrameForm, FrameLimits, HEADER_LEN};

/// A buffer that has grown past this is given back once its frame is used, so
/// that an idle connection holds next to nothing.
const KEPT_CAPACITY_BYTES: usize = 4096;

/// Finds the frames in a stream that arrives in chunks of any size.
///
/// Frames that lie whole in a chunk are handed out where they lie; only one
/// that is split is put together in a buffer of the decoder's own, which never
/// holds more than one frame.
///
/// ```
/// use lagometer_protocol::{FrameDecoder, FrameLimits};
///
/// let mut decoder = FrameDecoder::new(FrameLimits::default());
/// for chunk in [&b"CH\0\x02"[..], b"\0\x0a", b"\0CH\0\x02\0\x0a\0"] {
///     let mut chunk = chunk;
///     while let Some(frame) = decoder.next(&mut chunk)? {
///         assert_eq!(frame.payload, b"\x0a\0");
///     }
/// }
/// # Ok::<_, lagometer_protocol::FrameError>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    limits: FrameLimits,
    form: FrameForm,
    /// The beginning of a frame that has not come whole, or the frame handed
    /// out last.
    partial: Vec<u8>,
    partial_is_used: bool,
}

/// One whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// How the payload is packed.
    pub compression: Compression,
    /// The payload as it lies on the wire.
    pub payload: &'a [u8],
}

impl FrameDecoder {
    /// A decoder at the beginning of a stream. Limits above
    /// [`MAX_PAYLOAD`](super::MAX_PAYLOAD) have no effect.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            form: FrameForm::default(),
            partial: Vec::new(),
            partial_is_used: false,
        }
    }

    /// Takes the next frame, shortening `chunk` by what was read of it. `None`
    /// once `chunk` is used up; a frame it began is kept for the next chunk.
    ///
    /// # Errors
    ///
    /// [`FrameError`] when the stream is not frames. It is then past mending,
    /// and further calls have no meaning.
    pub fn next<'s, 'c: 's>(
        &'s mut self,
        chunk: &mut &'c [u8],
    ) -> Result<Option<Frame<'s>>, FrameError> {
        if self.partial_is_used {
            self.partial_is_used = false;
            self.partial.clear();
            self.partial.shrink_to(KEPT_CAPACITY_BYTES);
        }
        if self.partial.is_empty() {
            if chunk.is_empty() {
                return Ok(None);
            }
            if let Examined::Whole { len } = self.form.examine(chunk, &self.limits)? {
                let (frame, rest) = chunk.split_at(len);
                *chunk = rest;
                return Ok(Some(Frame::split(frame)));
            }
            self.partial.extend_from_slice(chunk);
            *chunk = &[];
            return Ok(None);
        }
        loop {
            let wanted = match self.form.examine(&self.partial, &self.limits)? {
                Examined::Whole { .. } => {
                    self.partial_is_used = true;
                    return Ok(Some(Frame::split(&self.partial)));
                }
                Examined::Needs { len } => len - self.partial.len(),
            };
            let (taken, rest) = chunk.split_at(wanted.min(chunk.len()));
            *chunk = rest;
            if taken.is_empty() {
                return Ok(None);
            }
            self.partial.extend_from_slice(taken);
        }
    }

    /// Whether the stream stands between two frames.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.partial.is_empty() || self.partial_is_used
    }

    /// Bytes kept of a frame that has not come whole.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        if self.partial_is_used {
            0
        } else {
            self.partial.len()
        }
    }

    /// Bytes of memory kept for frames that do not come whole.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// The form of header the peer writes, as far as it is known.
    #[must_use]
    pub fn form(&self) -> FrameForm {
        self.form
    }

    /// The limits it was made with.
    #[must_use]
    pub fn limits(&self) -> FrameLimits {
        self.limits
    }
}

impl<'a> Frame<'a> {
    /// The bytes of the packet: the payload itself, or unpacked into
    /// `scratch`.
    ///
    /// # Errors
    ///
    /// [`DecompressError`] when more than `limit_bytes` would come out or the
    /// payload is corrupt; the connection is to be closed.
    pub fn packet_bytes<'s>(
        &self,
        limit_bytes: usize,
        scratch: &'s mut Vec<u8>,
    ) -> Result<&'s [u8], DecompressError>
    where
        'a: 's,
    {
        match self.compression {
            Compression::None => Ok(self.payload),
            Compression::Snappy => {
                decompress(self.payload, limit_bytes, scratch)?;
                Ok(scratch)
            }
        }
    }

    /// Bytes the frame took on the wire, header included.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.payload.len()
    }

    fn split(frame: &'a [u8]) -> Self {
        let (header, payload) = frame.split_at(HEADER_LEN);
        Self {
            compression: Compression::from_byte(header[4]),
            payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::frame_header;

    fn decode(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), FrameError>, FrameDecoder) {
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let mut payloads = Vec::new();
        for mut chunk in chunks.iter().copied() {
            loop {
                match decoder.next(&mut chunk) {
                    Ok(Some(frame)) => payloads.push(frame.payload.to_vec()),
                    Ok(None) => break,
                    Err(error) => return (payloads, Err(error), decoder),
                }
            }
            assert!(chunk.is_empty(), "a chunk is always used up");
        }
        (payloads, Ok(()), decoder)
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let header = frame_header(payload.len().try_into().unwrap(), Compression::None);
        [&header[..], payload].concat()
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_the_frames_are_the_same(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..700), 1..6),
            mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(payload)).collect();
            let mut at: Vec<usize> = cuts.drain(..).map(|cut| cut.index(stream.len())).collect();
            at.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for to in at {
                chunks.push(&stream[from..to]);
                from = to;
            }
            chunks.push(&stream[from..]);
            let (decoded, result, decoder) = decode(&chunks);
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(decoded, payloads);
            prop_assert!(decoder.is_between_frames());
        }

        #[test]
        fn noise_neither_panics_nor_grows(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 0..20),
            lead in proptest::bool::ANY,
        ) {
            let mut chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            if lead {
                chunks.insert(0, b"CHNL");
            }
            let (_, _, decoder) = decode(&chunks);
            prop_assert!(decoder.partial.len() <= HEADER_LEN + super::super::MAX_PAYLOAD);
        }
    }

    #[test]
    fn a_bad_tag_is_known_at_the_first_wrong_byte() {
        assert_eq!(decode(&[b"X"]).1, Err(FrameError::BadTag(b'X', 0)));
        assert_eq!(decode(&[b"C", b"X"]).1, Err(FrameError::BadTag(b'C', b'X')));
    }

    #[test]
    fn a_frame_longer_than_allowed_is_refused_at_its_header() {
        let mut decoder = FrameDecoder::new(FrameLimits {
            max_payload_bytes: 1000,
            ..FrameLimits::default()
        });
        let mut chunk = &b"CH\x03\xe9\0"[..];
        assert_eq!(
            decoder.next(&mut chunk),
            Err(FrameError::TooLarge {
                size_bytes: 1001,
                limit_bytes: 1000
            })
        );
    }

    #[test]
    fn a_large_frame_in_pieces_leaves_no_large_buffer_behind() {
        let large = frame(&vec![7; 60_000]);
        let (first, second) = large.split_at(30_000);
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let mut chunk = first;
        assert_eq!(decoder.next(&mut chunk), Ok(None));
        let mut chunk = second;
        let whole = decoder.next(&mut chunk).unwrap().unwrap();
        assert_eq!(whole.wire_len(), 60_005);
        assert_eq!(decoder.next(&mut chunk), Ok(None));
        assert!(decoder.partial.capacity() <= KEPT_CAPACITY_BYTES);
    }
}
