//! Memory for short messages.

use bytes::{Bytes, BytesMut};

/// The messages of so many bytes share one allocation.
const ARENA_BYTES: usize = 64 << 10;

/// Where short-lived messages are copied to, many of them into one allocation.
/// It is freed with the last of them.
#[derive(Debug, Default)]
pub(super) struct Arena {
    memory: BytesMut,
}

impl Arena {
    /// Copies `parts`, one after the other.
    pub(super) fn keep(&mut self, parts: &[&[u8]]) -> Bytes {
        let len = parts.iter().map(|part| part.len()).sum();
        if self.memory.capacity() < len {
            self.memory.reserve(ARENA_BYTES.max(len));
        }
        for part in parts {
            self.memory.extend_from_slice(part);
        }
        self.memory.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_as_it_was() {
        let mut arena = Arena::default();
        let message = |n: u32| n.to_le_bytes().repeat(n as usize % 300);
        let kept: Vec<Bytes> = (0..2000)
            .map(|n| {
                let bytes = message(n);
                let (head, body) = bytes.split_at(bytes.len() / 3);
                arena.keep(&[head, body])
            })
            .collect();
        let long = vec![7; 3 * ARENA_BYTES];
        assert_eq!(arena.keep(&[&long]), long);
        for (n, kept) in (0..).zip(kept) {
            assert_eq!(kept, message(n));
        }
    }
}
