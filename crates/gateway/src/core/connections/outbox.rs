//! What waits to be written to one connection.
//!
//! Messages are collected into frames as they come. Short ones are copied into
//! a buffer of the connection's own; long ones, which go to many, lie between
//! them as shared slices. A writer hands the slices to one vectored write.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes};
use lagometer_protocol::{Compression, Compressor, HEADER_LEN, MAX_PAYLOAD, frame_header};

use crate::core::arena::OWN_FROM_BYTES;

use super::spare_buffers::SpareBuffers;

/// A stretch shorter than this is copied: a copy costs less than a slice of
/// its own in every vectored write. What is not keeps its allocation, which is then
/// its own.
pub(super) const SHARED_FROM_BYTES: usize = OWN_FROM_BYTES;

/// How much of the buffer may have been written before the rest is moved to
/// its front.
const COMPACT_AT_BYTES: usize = 64 << 10;

/// Room for so many segments is kept where nothing waits: a server's, at most some
/// hundred kilobytes.
const KEPT_SEGMENTS: usize = 4096;

/// The stretches of shared bytes that belong to one message; either may be
/// empty.
pub(super) type Parts = [Range<usize>; 2];

/// All of so many bytes.
pub(super) fn whole(len: usize) -> Parts {
    [0..len, len..len]
}

/// Frames on their way to one peer.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Own bytes. Ranges count from the beginning of the connection's life, so
    /// that they stay right when the front is cut off.
    buffer: Vec<u8>,
    /// The most bytes that it has had since it was lent.
    used_bytes: usize,
    /// How many own bytes were cut off the front.
    cut: usize,
    segments: VecDeque<Segment>,
    /// The frame that still takes messages: always the last of the segments.
    open: Option<OpenFrame>,
    /// Bytes waiting, the open frame's included.
    waiting: usize,
    /// The peer is sent snappy.
    compress: bool,
}

#[derive(Debug)]
enum Segment {
    Own(Range<usize>),
    Shared(Bytes),
}

#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    /// Where its header is to be written.
    header_at: usize,
    payload_len: usize,
}

impl Outbox {
    /// Bytes waiting to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Sends snappy from the next frame on.
    pub(super) fn compress(&mut self, compressor: &mut Compressor) {
        if !self.compress {
            self.seal(compressor);
            self.compress = true;
        }
    }

    /// Takes a buffer to write into, if it has none.
    pub(super) fn lend(&mut self, spare: &mut SpareBuffers) {
        if self.buffer.capacity() == 0
            && let Some(buffer) = spare.take()
        {
            self.buffer = buffer;
        }
    }

    /// Gives the buffer back once nothing waits, with the most bytes that it has
    /// had in it: an idle connection holds none, nor room for many segments.
    pub(super) fn give_back(&mut self) -> Option<(Vec<u8>, usize)> {
        if self.waiting > 0 || self.buffer.capacity() == 0 {
            return None;
        }
        if self.segments.capacity() > KEPT_SEGMENTS {
            self.segments = VecDeque::new();
        }
        self.cut += self.buffer.len();
        self.buffer.clear();
        let used_bytes = std::mem::take(&mut self.used_bytes);
        Some((std::mem::take(&mut self.buffer), used_bytes))
    }

    /// Appends one message, encoded as one of a packet's: `head`, then the
    /// `parts` of `shared`. It must fit a frame. Returns whether a frame was
    /// begun.
    pub(super) fn push(
        &mut self,
        head: &[u8],
        shared: &Bytes,
        parts: &Parts,
        compressor: &mut Compressor,
    ) -> bool {
        let len = head.len() + parts.iter().map(ExactSizeIterator::len).sum::<usize>();
        debug_assert!(len <= MAX_PAYLOAD, "the senders keep to the limit");
        if self
            .open
            .is_some_and(|open| open.payload_len + len > MAX_PAYLOAD)
        {
            self.seal(compressor);
        }
        let begun = self.open.is_none();
        let mut open = self.open.take().unwrap_or_else(|| {
            let header_at = self.end();
            self.copy(&[0; HEADER_LEN]);
            OpenFrame {
                header_at,
                payload_len: 0,
            }
        });
        self.copy(head);
        for part in parts.iter().filter(|part| !part.is_empty()) {
            if self.compress || part.len() < SHARED_FROM_BYTES {
                self.copy(&shared[part.clone()]);
            } else {
                self.waiting += part.len();
                let part = shared.slice(part.clone());
                self.segments.push_back(Segment::Shared(part));
            }
        }
        open.payload_len += len;
        self.open = Some(open);
        begun
    }

    /// Closes the open frame: it takes no more messages and can be written.
    pub(super) fn seal(&mut self, compressor: &mut Compressor) {
        let Some(open) = self.open.take() else {
            return;
        };
        let header_at = open.header_at - self.cut;
        let mut header = frame_header(open.payload_len as u16, Compression::None);
        if self.compress
            && let Some(packed) = compressor.compress(&self.buffer[header_at + HEADER_LEN..])
            && let Ok(packed_len) = u16::try_from(packed.len())
        {
            let saved = open.payload_len - packed.len();
            self.buffer.truncate(header_at + HEADER_LEN);
            self.buffer.extend_from_slice(packed);
            self.waiting -= saved;
            if let Some(Segment::Own(range)) = self.segments.back_mut() {
                range.end -= saved;
            }
            header = frame_header(packed_len, Compression::Snappy);
        }
        self.buffer[header_at..header_at + HEADER_LEN].copy_from_slice(&header);
    }

    /// The bytes to write, in order. The open frame is not among them: seal it
    /// first.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        debug_assert!(self.open.is_none(), "an open frame has no header yet");
        self.segments.iter().map(|segment| match segment {
            Segment::Own(range) => &self.buffer[range.start - self.cut..range.end - self.cut],
            Segment::Shared(bytes) => &bytes[..],
        })
    }

    /// Forgets what was written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        let mut bytes = bytes.min(self.waiting);
        self.waiting -= bytes;
        while let Some(first) = self.segments.front_mut() {
            let len = match first {
                Segment::Own(range) => range.len(),
                Segment::Shared(bytes) => bytes.len(),
            };
            if bytes < len {
                match first {
                    Segment::Own(range) => range.start += bytes,
                    Segment::Shared(shared) => shared.advance(bytes),
                }
                break;
            }
            bytes -= len;
            self.segments.pop_front();
        }
        if self.segments.is_empty() {
            self.cut += self.buffer.len();
            self.buffer.clear();
        } else if let Some(Segment::Own(range)) = self.segments.front() {
            let done = range.start - self.cut;
            if done >= COMPACT_AT_BYTES && done * 2 >= self.buffer.len() {
                self.buffer.drain(..done);
                self.cut += done;
            }
        }
    }

    fn end(&self) -> usize {
        self.cut + self.buffer.len()
    }

    fn copy(&mut self, bytes: &[u8]) {
        let start = self.end();
        self.buffer.extend_from_slice(bytes);
        self.used_bytes = self.used_bytes.max(self.buffer.len());
        self.waiting += bytes.len();
        match self.segments.back_mut() {
            Some(Segment::Own(range)) if range.end == start => range.end += bytes.len(),
            _ => self
                .segments
                .push_back(Segment::Own(start..start + bytes.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lagometer_protocol::{FrameDecoder, FrameLimits, MessagePack, Packet};

    fn encoded(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        MessagePack {
            msg_type: 100,
            body,
            ..MessagePack::default()
        }
        .encode_in_packet(&mut out);
        out
    }

    fn bodies(stream: &[u8]) -> Vec<Vec<u8>> {
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let (mut rest, mut scratch, mut bodies) = (stream, Vec::new(), Vec::new());
        while let Some(frame) = decoder.next(&mut rest).unwrap() {
            let bytes = frame.packet_bytes(1 << 20, &mut scratch).unwrap();
            let packet = Packet::new_checked(bytes).unwrap();
            bodies.extend(packet.messages().map(|message| message.body.to_vec()));
        }
        assert!(decoder.is_between_frames());
        bodies
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read_however_it_is_written(
            lens in proptest::collection::vec((0usize..9000, 0usize..9000), 1..40),
            writes in proptest::collection::vec(1usize..40_000, 1..12),
            compress: bool,
        ) {
            let mut outbox = Outbox { compress, ..Outbox::default() };
            let mut compressor = Compressor::new();
            let (mut stream, mut sent) = (Vec::new(), Vec::new());
            let mut write = writes.iter().cycle();
            for (index, (len, cut)) in lens.into_iter().enumerate() {
                let body = vec![index as u8; len];
                let message = Bytes::from(encoded(&body));
                let cut = cut.min(message.len());
                outbox.push(&message[..cut], &message, &[cut..message.len(), 0..0], &mut compressor);
                sent.push(body);
                if index % 3 == 0 {
                    outbox.seal(&mut compressor);
                    let all: Vec<u8> = outbox.slices().flatten().copied().collect();
                    prop_assert_eq!(all.len(), outbox.waiting());
                    let some = (*write.next().unwrap()).min(all.len());
                    stream.extend_from_slice(&all[..some]);
                    outbox.wrote(some);
                }
            }
            outbox.seal(&mut compressor);
            let all: Vec<u8> = outbox.slices().flatten().copied().collect();
            outbox.wrote(all.len());
            stream.extend_from_slice(&all);
            prop_assert!(outbox.is_empty());
            prop_assert!(outbox.give_back().is_some());
            prop_assert_eq!(bodies(&stream), sent);
        }
    }

    #[test]
    fn a_reader_that_is_always_behind_does_not_grow_the_buffer() {
        let mut outbox = Outbox::default();
        let mut compressor = Compressor::new();
        let message = encoded(&[7; 300]);
        outbox.push(&message, &Bytes::new(), &whole(0), &mut compressor);
        for _ in 0..10_000 {
            outbox.push(&message, &Bytes::new(), &whole(0), &mut compressor);
            outbox.seal(&mut compressor);
            outbox.wrote(message.len() + HEADER_LEN);
        }
        assert!(outbox.buffer.capacity() < 8 * COMPACT_AT_BYTES);
        assert!(outbox.waiting() <= 2 * (message.len() + HEADER_LEN));
    }
}
