//! Datagrams that have come in.

use std::net::SocketAddr;

use super::system::{Name, Reception};
use crate::mid_page_buffer::MidPageBuffer;

/// Bytes that the kernel may hand over in one piece.
pub(super) const PIECE_BYTES: usize = 1 << 16;

/// Room for what one call receives, and what it received.
#[derive(Debug)]
pub struct Incoming {
    memory: MidPageBuffer,
    pieces: Vec<Piece>,
    /// How many pieces the last call filled.
    filled: usize,
    reception: Reception,
}

/// One read: a datagram, or a run of them from one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Bytes in its part of the memory.
    pub(super) bytes: usize,
    /// The size of each datagram but the last.
    pub(super) segment: usize,
    pub(super) from: SocketAddr,
}

/// A datagram that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its payload.
    pub bytes: &'a [u8],
    /// Who sent it.
    pub from: SocketAddr,
}

impl Incoming {
    /// Room for so many reads in one call, 1 to 1024. Each takes 64 KiB of
    /// address space, of which only what datagrams fill costs memory.
    #[must_use]
    pub fn new(reads: usize) -> Self {
        let reads = reads.clamp(1, 1024);
        Self {
            memory: MidPageBuffer::new(reads * PIECE_BYTES),
            pieces: Vec::with_capacity(reads),
            filled: 0,
            reception: Reception::new(reads),
        }
    }

    /// The datagrams that the last call received, in order.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.pieces[..self.filled]
            .iter()
            .zip(self.memory.chunks(PIECE_BYTES))
            .flat_map(|(piece, memory)| datagrams(piece, memory))
    }

    /// How many datagrams the last call received.
    #[must_use]
    pub fn datagrams(&self) -> usize {
        self.pieces[..self.filled]
            .iter()
            .map(Piece::datagrams)
            .sum()
    }

    /// Whether the last call received none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Forgets what was received.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.filled = 0;
    }

    /// Memory for one read by itself.
    pub(super) fn first_memory(&mut self) -> &mut [u8] {
        &mut self.memory[..PIECE_BYTES]
    }

    /// One read has filled the first memory.
    pub(super) fn put_one(&mut self, bytes: usize, from: SocketAddr) {
        self.pieces.clear();
        self.pieces.push(Piece {
            bytes,
            segment: bytes,
            from,
        });
        self.filled = 1;
    }

    /// What a call with several reads needs.
    pub(super) fn parts(&mut self) -> (&mut Reception, &mut [u8]) {
        (&mut self.reception, &mut self.memory)
    }

    /// Takes over what such a call found. `peer` is the sender where the call
    /// did not ask for it.
    pub(super) fn take_over(&mut self, peer: Option<SocketAddr>) {
        self.clear();
        let found = self.reception.pieces();
        self.pieces
            .extend(found.map(|(bytes, segment, name)| Piece {
                bytes,
                segment,
                from: peer.or_else(|| name.address()).unwrap_or(Name::NOWHERE),
            }));
        self.filled = self.pieces.len();
    }

    /// Bytes of all datagrams.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}

impl Piece {
    fn datagrams(&self) -> usize {
        if self.bytes == 0 {
            return 1;
        }
        self.bytes.div_ceil(self.segment)
    }
}

/// The datagrams of one piece. An empty datagram is one too.
fn datagrams<'a>(piece: &Piece, memory: &'a [u8]) -> impl Iterator<Item = Datagram<'a>> {
    let from = piece.from;
    let empty = (piece.bytes == 0).then_some(Datagram { bytes: &[], from });
    memory[..piece.bytes]
        .chunks(piece.segment.max(1))
        .map(move |bytes| Datagram { bytes, from })
        .chain(empty)
}
