//! Reading along in renet's packets, to know when each reliable message was
//! complete.

use std::ops::Range;

/// The share of the series that each message takes up. It is cut evenly among
/// the message's slices, of which renet allows a million.
pub(super) const MESSAGE_SPAN: u64 = 1 << 20;

/// The stretches of the series of messages that a packet brings; none for
/// packets of other kinds, and as many as are well-formed.
///
/// Layout (renet's `packet.rs`): the kind as a byte (0: whole reliable
/// messages, 2: a slice of one), the packet's number, the channel as a byte;
/// then a 16-bit count and, for each message, its number, its length and its
/// bytes; or, for a slice, the message's number, the slice's, how many there
/// are, its length and its bytes. Numbers and lengths are variable-length
/// integers as in QUIC (RFC 9000, 16).
pub(super) fn stretches(packet: &[u8]) -> Vec<Range<u64>> {
    let mut reader = Reader(packet);
    reader.stretches().unwrap_or_default()
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn stretches(&mut self) -> Option<Vec<Range<u64>>> {
        let kind = self.byte()?;
        let _packet_number = self.varint()?;
        let _channel = self.byte()?;
        match kind {
            0 => {
                let count = u16::from_be_bytes([self.byte()?, self.byte()?]);
                let mut stretches = Vec::new();
                for _ in 0..count {
                    let message = self.varint()?;
                    let length = self.varint()?;
                    self.0 = self.0.get(usize::try_from(length).ok()?..)?;
                    stretches.push(part_of(message, 0, 1)?);
                }
                Some(stretches)
            }
            2 => {
                let (message, index, count) = (self.varint()?, self.varint()?, self.varint()?);
                Some(vec![part_of(message, index, count)?])
            }
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let mut value = u64::from(first & 0x3f);
        for _ in 1..1 << (first >> 6) {
            value = value << 8 | u64::from(self.byte()?);
        }
        Some(value)
    }
}

/// Where slice `index` of `count` of a message lies in the series.
fn part_of(message: u64, index: u64, count: u64) -> Option<Range<u64>> {
    if index >= count || count > MESSAGE_SPAN {
        return None;
    }
    let start = message.checked_mul(MESSAGE_SPAN)?;
    let end = start.checked_add(MESSAGE_SPAN * (index + 1) / count)?;
    Some(start + MESSAGE_SPAN * index / count..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_and_slices_are_found() {
        let messages = [0, 5, 1, 0, 2, 7, 1, b'a', 0x40, 8, 2, b'b', b'c'];
        let expected = [
            7 * MESSAGE_SPAN..8 * MESSAGE_SPAN,
            8 * MESSAGE_SPAN..9 * MESSAGE_SPAN,
        ];
        assert_eq!(stretches(&messages), expected);
        let slice = [2, 5, 1, 3, 1, 4, 1, b'x'];
        let quarter = MESSAGE_SPAN / 4;
        let part = 13 * quarter..14 * quarter;
        assert!(stretches(&slice).into_iter().eq(std::iter::once(part)));
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(packet in prop::collection::vec(any::<u8>(), 0..100)) {
            for stretch in stretches(&packet) {
                prop_assert!(stretch.start < stretch.end);
            }
        }
    }
}
