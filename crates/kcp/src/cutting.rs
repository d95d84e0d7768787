//! Messages cut into segments.

use thiserror::Error;

use crate::pool::Pool;
use crate::send_ring::{Segment, SendRing};
use crate::wire::HEADER_BYTES;

/// A message that would need too many segments; nothing of it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the message needs {segments} segments, and {limit} is one too many")]
pub struct TooManySegments {
    /// Segments the message would need.
    pub segments: usize,
    /// The first number of segments that is not taken.
    pub limit: usize,
}

/// How messages are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cutting {
    pub(crate) stream: bool,
    /// The first number of segments that is too many.
    pub(crate) limit: usize,
}

impl Cutting {
    /// Cuts `bytes` into segments of at most `segment_bytes`, in stream mode
    /// after filling up the last one that waits, and appends them to `ring`.
    /// Returns how many bytes were taken: in stream mode only those that
    /// filled the last segment where the others are too many at once.
    pub(crate) fn push(
        self,
        bytes: &[u8],
        segment_bytes: usize,
        ring: &mut SendRing,
        pool: &mut Pool,
    ) -> Result<usize, TooManySegments> {
        let mut rest = bytes;
        if self.stream {
            let filled = fill_last(bytes, segment_bytes, ring);
            rest = &bytes[filled..];
            if rest.is_empty() {
                return Ok(filled);
            }
        }
        let segments = if rest.len() <= segment_bytes {
            1
        } else {
            rest.len().div_ceil(segment_bytes)
        };
        if segments >= self.limit {
            let filled = bytes.len() - rest.len();
            let too_many = TooManySegments {
                segments,
                limit: self.limit,
            };
            return if filled > 0 {
                Ok(filled)
            } else {
                Err(too_many)
            };
        }
        for following in (0..segments).rev() {
            let (piece, later) = rest.split_at(rest.len().min(segment_bytes));
            rest = later;
            let mut buffer = pool.take(HEADER_BYTES + piece.len());
            buffer.extend_from_slice(&[0; HEADER_BYTES]);
            buffer.extend_from_slice(piece);
            let fragment = if self.stream { 0 } else { following as u8 };
            ring.enqueue(Segment::new(buffer, fragment));
        }
        Ok(bytes.len())
    }
}

/// Appends as much of `bytes` to the last segment that waits as it has room
/// for, and returns how much that was.
fn fill_last(bytes: &[u8], segment_bytes: usize, ring: &mut SendRing) -> usize {
    let Some(last) = ring.last_waiting() else {
        return 0;
    };
    let room = (segment_bytes + HEADER_BYTES).saturating_sub(last.buffer.len());
    let filled = room.min(bytes.len());
    last.buffer.extend_from_slice(&bytes[..filled]);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payload bytes and fragment number of what waits.
    fn shape(mut ring: SendRing) -> Vec<(usize, u8)> {
        std::iter::from_fn(|| {
            let segment = ring.admit()?;
            Some((segment.buffer.len() - HEADER_BYTES, segment.fragment))
        })
        .collect()
    }

    #[test]
    fn a_message_is_cut_and_its_pieces_count_down() {
        let cutting = Cutting {
            stream: false,
            limit: 128,
        };
        let (ring, pool) = (&mut SendRing::new(0, false), &mut Pool::new(8));
        assert_eq!(cutting.push(&[1; 250], 100, ring, pool), Ok(250));
        assert_eq!(cutting.push(&[], 100, ring, pool), Ok(0));
        let refused = cutting.push(&vec![1; 12_701], 100, ring, pool);
        let too_many = TooManySegments {
            segments: 128,
            limit: 128,
        };
        assert_eq!(refused, Err(too_many));
        let ring = std::mem::replace(ring, SendRing::new(0, false));
        assert_eq!(shape(ring), [(100, 2), (100, 1), (50, 0), (0, 0)]);
    }

    #[test]
    fn a_stream_fills_the_last_segment() {
        let cutting = Cutting {
            stream: true,
            limit: 128,
        };
        let (ring, pool) = (&mut SendRing::new(0, false), &mut Pool::new(8));
        assert_eq!(cutting.push(&[], 100, ring, pool), Ok(0));
        assert_eq!(cutting.push(&[1; 30], 100, ring, pool), Ok(30));
        assert_eq!(cutting.push(&[2; 90], 100, ring, pool), Ok(90));
        let taken = cutting.push(&vec![3; 20_000], 100, ring, pool);
        assert_eq!(taken, Ok(80), "only the filling");
        assert_eq!(cutting.push(&[4; 1], 100, ring, pool), Ok(1));
        let ring = std::mem::replace(ring, SendRing::new(0, false));
        assert_eq!(shape(ring), [(100, 0), (100, 0), (1, 0)]);
    }
}
