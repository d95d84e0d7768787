//! Segments packed into datagrams.
//!
//! A datagram that turns out to hold a single data segment is handed out from
//! where the segment lies, behind the room kept for its header; only
//! datagrams of several segments are copied together.

use crate::send_ring::SendRing;
use crate::wire::{HEADER_BYTES, Header};

/// The datagram under way during one flush.
pub(crate) struct Packer<'a, O> {
    staging: &'a mut Vec<u8>,
    /// A data segment that is the whole datagram so far.
    alone: Option<u32>,
    bytes: usize,
    mtu: usize,
    output: O,
}

impl<'a, O: FnMut(&[u8])> Packer<'a, O> {
    pub(crate) fn new(staging: &'a mut Vec<u8>, mtu: usize, output: O) -> Self {
        staging.clear();
        Self {
            staging,
            alone: None,
            bytes: 0,
            mtu,
            output,
        }
    }

    /// Appends a segment that is a header only. No data may have come before.
    pub(crate) fn control(&mut self, header: &Header) {
        if self.bytes + HEADER_BYTES > self.mtu {
            (self.output)(self.staging);
            self.staging.clear();
            self.bytes = 0;
        }
        self.staging.extend_from_slice(&header.to_bytes());
        self.bytes += HEADER_BYTES;
    }

    /// Appends a segment in flight, its header being written.
    pub(crate) fn data(&mut self, ring: &SendRing, sequence: u32) {
        let Some(segment) = ring.outstanding(sequence) else {
            return;
        };
        if self.bytes + segment.buffer.len() > self.mtu {
            self.finish(ring);
        }
        if self.bytes == 0 {
            self.alone = Some(sequence);
        } else {
            if let Some(first) = self.alone.take()
                && let Some(first) = ring.outstanding(first)
            {
                self.staging.extend_from_slice(&first.buffer);
            }
            self.staging.extend_from_slice(&segment.buffer);
        }
        self.bytes += segment.buffer.len();
    }

    /// Hands out what there is.
    pub(crate) fn finish(&mut self, ring: &SendRing) {
        if let Some(only) = self.alone.take() {
            if let Some(only) = ring.outstanding(only) {
                (self.output)(&only.buffer);
            }
        } else if self.bytes > 0 {
            (self.output)(self.staging);
            self.staging.clear();
        }
        self.bytes = 0;
    }
}
