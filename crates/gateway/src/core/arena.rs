//! Memory for short messages: many in one block, which is freed with the last of them.

use bytes::{Bytes, BytesMut};

/// The messages of so many bytes share one allocation.
const ARENA_BYTES: usize = 64 << 10;

/// A message as long as this has an allocation of its own: outboxes keep it as it is,
/// for as long as its reader is slow, and it would keep all that share with it.
pub(super) const OWN_FROM_BYTES: usize = 512;

/// A part of a packet is kept as one only where it is so much of it.
const SHARED_FROM_PART: usize = 4;

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
        if len >= OWN_FROM_BYTES {
            return Bytes::from(parts.concat());
        }
        if self.memory.capacity() < len {
            self.memory.reserve(ARENA_BYTES);
        }
        for part in parts {
            self.memory.extend_from_slice(part);
        }
        self.memory.split().freeze()
    }
}

/// A part of a packet from an [`Arena`], to be kept beyond the packet: a copy, where
/// it would keep much more than itself from being freed. Packets unpack to a MiB, and
/// those that are short share what all share.
pub(super) fn part_of(packet: &Bytes, part: &[u8]) -> Bytes {
    let is_little = part.len() < packet.len() / SHARED_FROM_PART;
    if packet.len() < OWN_FROM_BYTES || is_little {
        Bytes::copy_from_slice(part)
    } else {
        packet.slice_ref(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_no_more_than_four_times_its_bytes_from_being_freed() {
        let mut arena = Arena::default();
        for packet_bytes in [100, OWN_FROM_BYTES - 1, OWN_FROM_BYTES, 10_000, 1 << 20] {
            for part_bytes in [1, 8, packet_bytes / 5, packet_bytes / 4, packet_bytes] {
                let packet = arena.keep(&[&vec![7; packet_bytes]]);
                let part = part_of(&packet, &packet[..part_bytes]);
                assert_eq!(part, vec![7; part_bytes]);
                // Whose memory is its own when the packet has gone keeps nothing else.
                let is_shared = part.as_ptr() == packet.as_ptr();
                drop(packet);
                assert!(part.is_unique());
                assert!(
                    !is_shared || packet_bytes <= 4 * part_bytes + 3,
                    "{part_bytes} bytes keep {packet_bytes}"
                );
                assert!(!is_shared || packet_bytes >= OWN_FROM_BYTES);
            }
        }
    }

    #[test]
    fn a_message_that_outboxes_keep_as_it_is_keeps_no_other() {
        let mut arena = Arena::default();
        let long = arena.keep(&[&[1; 100], &[2; OWN_FROM_BYTES]]);
        let other = arena.keep(&[&[3; OWN_FROM_BYTES]]);
        assert!(long.is_unique() && other.is_unique());
        let (short, another) = (arena.keep(&[&[4; 100]]), arena.keep(&[&[5; 100]]));
        assert!(!short.is_unique() && !another.is_unique(), "these share");
    }

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
