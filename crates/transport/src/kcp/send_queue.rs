//! Messages cut into segments that wait for room in the send window.

use std::collections::VecDeque;

use thiserror::Error;

use super::pool::Pool;
use super::wire::HEADER_BYTES;

/// A message that would need too many segments; nothing of it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the message needs {segments} segments, and {limit} is one too many")]
pub struct TooManySegments {
    /// Segments the message would need.
    pub segments: usize,
    /// The first number of segments that is not taken.
    pub limit: usize,
}

/// A segment that has no sequence number yet.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Room for the header, then the payload.
    pub(crate) buffer: Vec<u8>,
    pub(crate) fragment: u8,
}

/// Segments in the order in which they will be sent.
#[derive(Debug)]
pub(crate) struct SendQueue {
    waiting: VecDeque<Queued>,
    stream: bool,
    fragment_limit: usize,
}

impl SendQueue {
    pub(crate) const fn new(stream: bool, fragment_limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            stream,
            fragment_limit,
        }
    }

    /// Cuts `bytes` into segments of at most `segment_bytes`, in stream mode
    /// after filling up the last one that waits. Returns how many bytes were
    /// taken: in stream mode only those that filled the last segment where
    /// the others are too many at once.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        segment_bytes: usize,
        pool: &mut Pool,
    ) -> Result<usize, TooManySegments> {
        let filled = if self.stream {
            let filled = self.fill_last(bytes, segment_bytes);
            if filled == bytes.len() {
                return Ok(filled);
            }
            filled
        } else {
            0
        };
        let rest = &bytes[filled..];
        let segments = rest.len().div_ceil(segment_bytes).max(1);
        if segments >= self.fragment_limit {
            return if filled > 0 {
                Ok(filled)
            } else {
                Err(TooManySegments {
                    segments,
                    limit: self.fragment_limit,
                })
            };
        }
        for index in 0..segments {
            let from = index * segment_bytes;
            let piece = &rest[from..rest.len().min(from + segment_bytes)];
            let mut buffer = pool.take(HEADER_BYTES + piece.len());
            buffer.extend_from_slice(&[0; HEADER_BYTES]);
            buffer.extend_from_slice(piece);
            let following = if self.stream { 0 } else { segments - index - 1 };
            self.waiting.push_back(Queued {
                buffer,
                fragment: following as u8,
            });
        }
        Ok(bytes.len())
    }

    pub(crate) fn pop(&mut self) -> Option<Queued> {
        self.waiting.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn fill_last(&mut self, bytes: &[u8], segment_bytes: usize) -> usize {
        let Some(last) = self.waiting.back_mut() else {
            return 0;
        };
        let room = (segment_bytes + HEADER_BYTES).saturating_sub(last.buffer.len());
        let filled = room.min(bytes.len());
        last.buffer.extend_from_slice(&bytes[..filled]);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(queue: &SendQueue) -> Vec<(usize, u8)> {
        let piece = |queued: &Queued| (queued.buffer.len() - HEADER_BYTES, queued.fragment);
        queue.waiting.iter().map(piece).collect()
    }

    #[test]
    fn a_message_is_cut_and_its_pieces_count_down() {
        let mut queue = SendQueue::new(false, 128);
        let pool = &mut Pool::new(8);
        assert_eq!(queue.push(&[1; 250], 100, pool), Ok(250));
        assert_eq!(queue.push(&[], 100, pool), Ok(0));
        assert_eq!(shape(&queue), [(100, 2), (100, 1), (50, 0), (0, 0)]);
        let refused = queue.push(&vec![1; 12_701], 100, pool);
        assert_eq!(
            refused,
            Err(TooManySegments {
                segments: 128,
                limit: 128
            })
        );
        assert_eq!(queue.push(&vec![1; 12_700], 100, pool), Ok(12_700));
    }

    #[test]
    fn a_stream_fills_the_last_segment() {
        let mut queue = SendQueue::new(true, 128);
        let pool = &mut Pool::new(8);
        assert_eq!(queue.push(&[], 100, pool), Ok(0));
        assert_eq!(queue.push(&[1; 30], 100, pool), Ok(30));
        assert_eq!(queue.push(&[2; 90], 100, pool), Ok(90));
        assert_eq!(shape(&queue), [(100, 0), (20, 0)]);
        assert_eq!(
            queue.push(&vec![3; 20_000], 100, pool),
            Ok(80),
            "only the filling"
        );
        assert_eq!(shape(&queue), [(100, 0), (100, 0)]);
    }
}
