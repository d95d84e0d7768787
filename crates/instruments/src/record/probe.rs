//! What is on the wire while a path is recorded.
//!
//! ```text
//! "LR", kind (1 byte), train or 0 (1 byte), number (4), sent at (8), filling
//! ```
//!
//! Numbers are big-endian; the instant is of the sender's clock, in
//! nanoseconds. A probe stands alone; packets of a train are numbered within
//! the train.

/// The least a probe has.
pub(crate) const LEAST_BYTES: usize = 16;
/// The bytes of a packet of a train: as large as every path takes.
pub(crate) const TRAIN_BYTES: usize = 1200;
/// Packets in a train.
pub(crate) const TRAIN_LENGTH: u8 = 24;

const MAGIC: [u8; 2] = *b"LR";

/// A packet's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// One of many at an even cadence.
    Lone { number: u32, sent_at: u64 },
    /// One of a few back to back.
    OfTrain { train: u32, place: u8 },
}

impl Probe {
    /// Writes it into the first bytes of `packet`, which has at least
    /// [`LEAST_BYTES`].
    pub(crate) fn write(self, packet: &mut [u8]) {
        let (kind, place, number, sent_at) = match self {
            Self::Lone { number, sent_at } => (0, 0, number, sent_at),
            Self::OfTrain { train, place } => (1, place, train, 0),
        };
        packet[..2].copy_from_slice(&MAGIC);
        packet[2] = kind;
        packet[3] = place;
        packet[4..8].copy_from_slice(&number.to_be_bytes());
        packet[8..16].copy_from_slice(&sent_at.to_be_bytes());
    }

    /// Reads one; `None` if it is none.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let (head, rest) = packet.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (sent_at, _) = rest.split_first_chunk::<8>()?;
        let number = u32::from_be_bytes(*number);
        match *head {
            [b'L', b'R', 0, 0] => Some(Self::Lone {
                number,
                sent_at: u64::from_be_bytes(*sent_at),
            }),
            [b'L', b'R', 1, place] if place < TRAIN_LENGTH => Some(Self::OfTrain {
                train: number,
                place,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u32, sent_at: u64, place in 0..TRAIN_LENGTH, lone: bool) {
            let probe = if lone {
                Probe::Lone { number, sent_at }
            } else {
                Probe::OfTrain { train: number, place }
            };
            let mut packet = [0xEE; 40];
            probe.write(&mut packet);
            prop_assert_eq!(Probe::read(&packet), Some(probe));
        }

        #[test]
        fn garbage_is_passed_over(packet in proptest::collection::vec(any::<u8>(), 0..60)) {
            let read = Probe::read(&packet);
            prop_assert!(read.is_none() || packet.starts_with(b"LR"));
        }
    }
}
