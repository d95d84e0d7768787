//! A game's messages: a header that both sides read, and bytes up to the size.

use lagometer_units::mix;

use super::super::payload::Damaged;

/// Bytes in front of what a message carries: check, kind and four numbers. Games have as
/// much: which message it is, what was received of the peer's, and what it builds upon.
pub(in crate::workload) const HEADER_BYTES: usize = 4 + 1 + 4 * 4;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workload) enum Kind {
    Inputs = 1,
    Snapshot = 2,
    Event = 3,
    Voice = 4,
}

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workload) struct Header {
    pub(in crate::workload) kind: Kind,
    /// Its number among those of its kind; of inputs, the newest one's.
    pub(in crate::workload) number: u32,
    /// How many inputs of the client, or snapshots of the server, the sender is done
    /// with: the number of the newest, plus one.
    pub(in crate::workload) ack: u32,
    /// Of inputs: how many the message has. Of a snapshot: how many snapshots before it
    /// the one is that it builds upon; 0 where it is whole.
    pub(in crate::workload) span: u32,
    /// How many events of the peer have come, in order.
    pub(in crate::workload) events: u32,
}

/// Writes and reads the messages of one lane.
#[derive(Clone, Copy, Debug)]
pub(in crate::workload) struct Codec {
    key: u64,
}

impl Codec {
    pub(in crate::workload) const fn new(seed: u64) -> Self {
        Self { key: mix(seed) }
    }

    /// Writes a message that carries `body` bytes into `buffer`, replacing what it held.
    pub(in crate::workload) fn write(self, header: &Header, body: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&[0; 4]);
        buffer.push(header.kind as u8);
        for number in [header.number, header.ack, header.span, header.events] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        let size = HEADER_BYTES + body;
        let mut word = self.key ^ u64::from(header.number);
        while buffer.len() < size {
            word = mix(word.wrapping_add(1));
            let rest = (size - buffer.len()).min(8);
            buffer.extend_from_slice(&word.to_le_bytes()[..rest]);
        }
        let check = self.check(&buffer[4..]);
        buffer[..4].copy_from_slice(&check.to_le_bytes());
    }

    /// The header of a message that is exactly what was sent.
    pub(in crate::workload) fn read(self, message: &[u8]) -> Result<Header, Damaged> {
        let (check, rest) = message.split_first_chunk::<4>().ok_or(Damaged)?;
        if u32::from_le_bytes(*check) != self.check(rest) {
            return Err(Damaged);
        }
        let (&kind, rest) = rest.split_first().ok_or(Damaged)?;
        let numbers = rest.first_chunk::<16>().ok_or(Damaged)?;
        let number = |at: usize| {
            u32::from_le_bytes([
                numbers[at],
                numbers[at + 1],
                numbers[at + 2],
                numbers[at + 3],
            ])
        };
        Ok(Header {
            kind: match kind {
                1 => Kind::Inputs,
                2 => Kind::Snapshot,
                3 => Kind::Event,
                4 => Kind::Voice,
                _ => return Err(Damaged),
            },
            number: number(0),
            ack: number(4),
            span: number(8),
            events: number(12),
        })
    }

    /// A keyed check over all bytes behind it, and how many they are.
    fn check(self, bytes: &[u8]) -> u32 {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let words = words.iter().chain([&last]);
        let folded = words.fold(self.key ^ bytes.len() as u64, |sum, word| {
            mix(sum ^ u64::from_le_bytes(*word))
        });
        (folded >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Header = Header {
        kind: Kind::Snapshot,
        number: 7,
        ack: 5,
        span: 2,
        events: 1,
    };

    proptest! {
        #[test]
        fn what_is_written_is_read(seed: u64, number: u32, body in 0_usize..1200) {
            let (codec, header) = (Codec::new(seed), Header { number, ..HEADER });
            let mut message = Vec::new();
            codec.write(&header, body, &mut message);
            prop_assert_eq!(message.len(), HEADER_BYTES + body);
            prop_assert_eq!(codec.read(&message), Ok(header));
        }

        #[test]
        fn every_flipped_bit_and_every_cut_is_noticed(body in 0_usize..60, at: prop::sample::Index) {
            let codec = Codec::new(3);
            let mut message = Vec::new();
            codec.write(&HEADER, body, &mut message);
            let place = at.index(message.len());
            prop_assert_eq!(codec.read(&message[..place]), Err(Damaged));
            message[place] ^= 1 << (body % 8);
            prop_assert_eq!(codec.read(&message), Err(Damaged));
        }

        #[test]
        fn other_bytes_are_damaged(bytes: Vec<u8>) {
            prop_assert_eq!(Codec::new(3).read(&bytes), Err(Damaged));
        }
    }
}
