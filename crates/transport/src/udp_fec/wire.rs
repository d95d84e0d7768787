//! The datagrams. All numbers are little-endian.
//!
//! | bytes | of a message | of parity | of a report |
//! | --- | --- | --- | --- |
//! | 4 | CRC-32 | CRC-32 | CRC-32 |
//! | 1 | 0; of a copy 1 | 2 | 3 |
//! | 4 | number | number of the group's first message | newest number seen |
//! | | the message | 1: messages of the group | 2: messages that should have come |
//! | | | 1: which parity | 2: messages that came |
//! | | | the shard | |
//!
//! A shard is computed from the messages of the group, each behind its length in
//! two bytes.

use super::loss::Report;
use crate::integrity::{CHECK_BYTES, Integrity};

/// Bytes in front of a message.
pub(super) const MESSAGE_HEADER_BYTES: usize = CHECK_BYTES + 1 + 4;

/// Bytes of a parity datagram beyond the longest message of its group.
pub(super) const PARITY_HEADER_BYTES: usize = MESSAGE_HEADER_BYTES + 2 + LENGTH_BYTES;

/// Bytes of length in front of a message in a shard.
pub(super) const LENGTH_BYTES: usize = 2;

const MESSAGE: u8 = 0;
const COPY: u8 = 1;
const PARITY: u8 = 2;
const REPORT: u8 = 3;

/// What a datagram holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A message.
    Message {
        /// Counts from 0 on.
        number: u32,
        /// Whether it is the parity of a group of one.
        is_copy: bool,
        /// What the application handed over.
        message: &'a [u8],
    },
    /// A shard of parity.
    Parity(Parity<'a>),
    /// How many messages were lost.
    Report(Report),
}

/// A shard of parity and what it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parity<'a> {
    /// Number of the group's first message.
    pub(super) first: u32,
    /// Messages of the group.
    pub(super) count: u8,
    /// Which of the group's parity shards, from 0.
    pub(super) index: u8,
    /// The shard.
    pub(super) shard: &'a [u8],
}

impl Body<'_> {
    /// The datagram, sealed.
    pub(super) fn to_datagram(self, seal: Integrity) -> Vec<u8> {
        let mut datagram = vec![0; CHECK_BYTES];
        match self {
            Body::Message {
                number,
                is_copy,
                message,
            } => {
                datagram.push(if is_copy { COPY } else { MESSAGE });
                datagram.extend_from_slice(&number.to_le_bytes());
                datagram.extend_from_slice(message);
            }
            Body::Parity(parity) => {
                datagram.push(PARITY);
                datagram.extend_from_slice(&parity.first.to_le_bytes());
                datagram.extend_from_slice(&[parity.count, parity.index]);
                datagram.extend_from_slice(parity.shard);
            }
            Body::Report(report) => {
                datagram.push(REPORT);
                datagram.extend_from_slice(&report.newest.to_le_bytes());
                datagram.extend_from_slice(&report.expected.to_le_bytes());
                datagram.extend_from_slice(&report.received.to_le_bytes());
            }
        }
        seal.seal(&mut datagram);
        datagram
    }
}

impl<'a> Body<'a> {
    /// What a datagram holds, its checksum being taken off. `None` where no
    /// sender of ours made it.
    pub(super) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = datagram.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        let number = u32::from_le_bytes(*number);
        match kind {
            MESSAGE | COPY => Some(Self::Message {
                number,
                is_copy: kind == COPY,
                message: rest,
            }),
            PARITY => {
                let (&[count, index], shard) = rest.split_first_chunk()?;
                Some(Self::Parity(Parity {
                    first: number,
                    count,
                    index,
                    shard,
                }))
            }
            REPORT => {
                let &[e0, e1, r0, r1] = rest else {
                    return None;
                };
                Some(Self::Report(Report {
                    newest: number,
                    expected: u16::from_le_bytes([e0, e1]),
                    received: u16::from_le_bytes([r0, r1]),
                }))
            }
            _ => None,
        }
    }
}

/// A message as it is a shard: behind its length.
pub(super) fn shard_of(message: &[u8]) -> Vec<u8> {
    // No message is longer than a UDP datagram.
    let mut shard = (message.len() as u16).to_le_bytes().to_vec();
    shard.extend_from_slice(message);
    shard
}

/// The message that a shard is.
pub(super) fn message_of(shard: &[u8]) -> Option<&[u8]> {
    let (length, rest) = shard.split_first_chunk()?;
    rest.get(..usize::from(u16::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_body() -> impl Strategy<Value = (u8, u32, u16, u16, Vec<u8>)> {
        (
            0_u8..4,
            any::<u32>(),
            any::<u16>(),
            any::<u16>(),
            any::<Vec<u8>>(),
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back((kind, number, two, more, bytes) in any_body()) {
            let body = match kind {
                0 | 1 => Body::Message { number, is_copy: kind == 1, message: &bytes },
                2 => Body::Parity(Parity { first: number, count: two as u8, index: more as u8, shard: &bytes }),
                _ => Body::Report(Report { newest: number, expected: two, received: more }),
            };
            let (seal, _) = Integrity::both_directions(1);
            let datagram = body.to_datagram(seal);
            prop_assert_eq!(seal.open(&datagram).and_then(Body::parse), Some(body));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = Body::parse(&bytes);
            let _ = message_of(&bytes);
        }

        #[test]
        fn a_message_survives_being_a_shard(message: Vec<u8>, zeros in 0_usize..20) {
            let mut shard = shard_of(&message);
            shard.resize(shard.len() + zeros, 0);
            prop_assert_eq!(message_of(&shard), Some(&message[..]));
        }
    }
}
