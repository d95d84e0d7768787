//! The send buffer: bytes from the first unacknowledged one on, and the pieces
//! in which the application wrote those not yet sent.

use std::collections::VecDeque;

use crate::Seq;

/// Consecutive bytes not yet sent that may leave in one burst (Linux's socket
/// buffers of the write queue).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece {
    pub(crate) length: u32,
    pub(crate) push: bool,
    pub(crate) fin: bool,
    /// How many segments of which size it was counted as; none since bytes were
    /// added (Linux 6.1 `tcp_init_tso_segs`).
    pub(crate) counted: Option<(u32, u32)>,
    /// Bytes that its buffer still costs although they have moved into a probe for the
    /// path's MTU (Linux 6.1 `tcp_mtu_probe`).
    pub(crate) held: u32,
}

impl Piece {
    /// Segments it leaves as. One stays one although segments have become shorter,
    /// and is cut when it leaves.
    pub(crate) const fn segments(&mut self, mss: u32) -> u32 {
        match self.counted {
            Some((1, _)) => 1,
            Some((count, of)) if of == mss => count,
            _ => self.count(mss),
        }
    }

    pub(crate) const fn count(&mut self, mss: u32) -> u32 {
        let count = if self.length > mss {
            self.length.div_ceil(mss)
        } else {
            1
        };
        self.counted = Some((count, mss));
        count
    }
}

/// Send buffer and write queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsent {
    bytes: VecDeque<u8>,
    /// Sequence number of the first byte kept.
    start: Seq,
    pieces: VecDeque<Piece>,
}

impl Unsent {
    pub(crate) fn new(start: Seq) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// Whether everything was sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut Piece> {
        self.pieces.front_mut()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Piece> {
        self.pieces.back_mut()
    }

    pub(crate) fn count(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        self.pieces.push_back(piece);
    }

    /// Appends bytes to the last piece.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if let Some(last) = self.pieces.back_mut() {
            last.length += bytes.len() as u32;
            last.counted = None;
            self.bytes.extend(bytes);
        }
    }

    /// Takes `length` bytes from the first piece; the rest stays at its place.
    pub(crate) fn take(&mut self, length: u32) -> Option<Piece> {
        let first = self.pieces.front_mut()?;
        if length >= first.length {
            return self.pieces.pop_front();
        }
        first.length -= length;
        Some(Piece {
            length,
            held: std::mem::take(&mut first.held),
            ..Piece::default()
        })
    }

    /// Bytes `seq..seq + length`, in up to two parts; less if they are not all
    /// there.
    pub(crate) fn slice(&self, seq: Seq, length: u32) -> (&[u8], &[u8]) {
        let begin = (seq - self.start) as usize;
        let end = begin.saturating_add(length as usize).min(self.bytes.len());
        if begin >= end {
            return (&[], &[]);
        }
        let (front, back) = self.bytes.as_slices();
        let split = front.len();
        (
            &front[begin.min(split)..end.min(split)],
            &back[begin.saturating_sub(split)..end.saturating_sub(split)],
        )
    }

    /// Forgets the bytes before `una`.
    pub(crate) fn acknowledge(&mut self, una: Seq) {
        if una.after(self.start) {
            let gone = ((una - self.start) as usize).min(self.bytes.len());
            self.bytes.drain(..gone);
            self.start += gone as u32;
        }
    }

    /// Bytes kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = VecDeque::new();
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Unsent};
    use crate::seq::Seq;

    #[test]
    fn the_first_part_of_a_piece_takes_all_that_the_piece_holds() {
        let mut unsent = Unsent::new(Seq(7));
        unsent.push(Piece {
            length: 3_000,
            held: 4_352,
            ..Piece::default()
        });
        let part = unsent.take(1_000).unwrap();
        assert_eq!((part.length, part.held), (1_000, 4_352));
        let rest = unsent.take(2_000).unwrap();
        assert_eq!((rest.length, rest.held), (2_000, 0));
    }

    #[test]
    fn a_piece_counted_as_one_segment_stays_one_when_segments_become_shorter() {
        // Linux 6.1 `tcp_init_tso_segs`.
        let mut piece = Piece {
            length: 1_448,
            ..Piece::default()
        };
        assert_eq!((piece.segments(1_448), piece.segments(1_436)), (1, 1));
        piece.length = 2_896;
        piece.counted = None;
        assert_eq!((piece.segments(1_448), piece.segments(1_436)), (2, 3));
    }
}
