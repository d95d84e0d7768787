//! Frames between nodes: a head that says who sends it, in which epoch, and one of a few
//! kinds of content.

use bytes::Bytes;

use super::bus::NodeId;
use super::wire::{Malformed, Put as _, Reader};

/// The version of what nodes say to each other. A node refuses frames of another one.
pub const PROTOCOL: u16 = 6;

/// What every frame begins with.
const MAGIC: [u8; 2] = *b"LG";

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Who sends it.
    pub(super) from: NodeId,
    /// The owner's epoch; of an edge, that of the owner it means.
    pub(super) epoch: u64,
    pub(super) content: Content,
}

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The owner, to all: it owns the channels.
    Announce {
        /// A game server owns GLOBAL.
        has_global_owner: bool,
        /// The channels are those of all owners since this epoch: whoever has a route of
        /// one of them has it still.
        since: u64,
    },
    /// An edge to the owner: a connection loop wants a route.
    Hello { number: u16, incarnation: u32 },
    /// The owner: the route stands.
    Welcome {
        number: u16,
        incarnation: u32,
        token: u32,
    },
    /// Either: messages, and what was received.
    Data { token: u32, data: Data },
    /// The owner: there is no such route.
    Reset { token: u32 },
    /// The edge: the route ends in order.
    Bye { token: u32 },
    /// An edge to an owner that announced itself in an epoch that is past: the newest it
    /// has seen.
    Stale { newest: u64 },
    /// A node that stands by, to the owner.
    StandsBy {
        /// How many shards its process owns.
        load: u16,
    },
    /// A node that stood by and ends, to the owner.
    Leaves,
    /// An owner that ends to the node that goes on, and back: the channels, and whether
    /// they were taken.
    Handover { data: Data },
    /// An owner to the node that follows it, and back: the channels, what is done with them,
    /// and whether they are the same there.
    Follow(Follow),
}

/// What is said between an owner and the node that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Follow {
    /// Counts how often nodes began to follow the owner.
    pub(super) session: u32,
    /// Of the lease's entry when the owner renewed it last; 0 on the way back.
    pub(super) revision: u64,
    pub(super) data: Data,
}

/// Numbered pieces of messages, and what was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Data {
    /// All pieces before this one have come.
    pub(super) received: u64,
    /// One after it has come: it is to be sent again.
    pub(super) has_gap: bool,
    /// The number of the first piece here.
    pub(super) first: u64,
    pub(super) pieces: Vec<Piece>,
}

/// A message, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The message goes on in the next piece.
    pub(super) goes_on: bool,
    /// Empty for a message that was left out.
    pub(super) bytes: Bytes,
}

/// Why a frame was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is none.
    Malformed,
    /// It is of another version.
    OtherProtocol(u16),
}

impl From<Malformed> for Unread {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl Frame {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(64 + self.content.len());
        out.extend_from_slice(&MAGIC);
        out.put_u16(PROTOCOL);
        out.put_u64(self.from.0);
        out.put_u64(self.epoch);
        match &self.content {
            Content::Announce {
                has_global_owner,
                since,
            } => {
                out.put_u8(0);
                out.put_u8(u8::from(*has_global_owner));
                out.put_u64(*since);
            }
            Content::Hello {
                number,
                incarnation,
            } => {
                out.put_u8(1);
                out.put_u16(*number);
                out.put_u32(*incarnation);
            }
            Content::Welcome {
                number,
                incarnation,
                token,
            } => {
                out.put_u8(2);
                out.put_u16(*number);
                out.put_u32(*incarnation);
                out.put_u32(*token);
            }
            Content::Data { token, data } => {
                out.put_u8(3);
                out.put_u32(*token);
                data.put(&mut out);
            }
            Content::Reset { token } => {
                out.put_u8(4);
                out.put_u32(*token);
            }
            Content::Bye { token } => {
                out.put_u8(5);
                out.put_u32(*token);
            }
            Content::Stale { newest } => {
                out.put_u8(6);
                out.put_u64(*newest);
            }
            Content::StandsBy { load } => {
                out.put_u8(7);
                out.put_u16(*load);
            }
            Content::Leaves => out.put_u8(9),
            Content::Handover { data } => {
                out.put_u8(8);
                data.put(&mut out);
            }
            Content::Follow(follow) => {
                out.put_u8(10);
                out.put_u32(follow.session);
                out.put_u64(follow.revision);
                follow.data.put(&mut out);
            }
        }
        out.into()
    }

    pub(super) fn decode(bytes: Bytes) -> Result<Self, Unread> {
        let mut reader = Reader(bytes);
        if [reader.u8()?, reader.u8()?] != MAGIC {
            return Err(Unread::Malformed);
        }
        let protocol = reader.u16()?;
        if protocol != PROTOCOL {
            return Err(Unread::OtherProtocol(protocol));
        }
        let from = NodeId(reader.u64()?);
        let epoch = reader.u64()?;
        let content = match reader.u8()? {
            0 => Content::Announce {
                has_global_owner: reader.flag()?,
                since: reader.u64()?,
            },
            1 => Content::Hello {
                number: reader.u16()?,
                incarnation: reader.u32()?,
            },
            2 => Content::Welcome {
                number: reader.u16()?,
                incarnation: reader.u32()?,
                token: reader.u32()?,
            },
            3 => Content::Data {
                token: reader.u32()?,
                data: Data::read(&mut reader)?,
            },
            4 => Content::Reset {
                token: reader.u32()?,
            },
            5 => Content::Bye {
                token: reader.u32()?,
            },
            6 => Content::Stale {
                newest: reader.u64()?,
            },
            7 => Content::StandsBy {
                load: reader.u16()?,
            },
            9 => Content::Leaves,
            8 => Content::Handover {
                data: Data::read(&mut reader)?,
            },
            10 => Content::Follow(Follow {
                session: reader.u32()?,
                revision: reader.u64()?,
                data: Data::read(&mut reader)?,
            }),
            _ => return Err(Unread::Malformed),
        };
        reader.end()?;
        Ok(Self {
            from,
            epoch,
            content,
        })
    }
}

impl Data {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(self.received);
        out.put_u8(u8::from(self.has_gap));
        out.put_u64(self.first);
        out.put_len(self.pieces.len());
        for piece in &self.pieces {
            out.put_u8(u8::from(piece.goes_on));
            out.put_bytes(&piece.bytes);
        }
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(Self {
            received: reader.u64()?,
            has_gap: reader.flag()?,
            first: reader.u64()?,
            pieces: reader.list(5, |reader| {
                Ok(Piece {
                    goes_on: reader.flag()?,
                    bytes: reader.bytes()?,
                })
            })?,
        })
    }
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Data { data, .. }
            | Self::Handover { data }
            | Self::Follow(Follow { data, .. }) => {
                data.pieces.iter().map(|piece| piece.bytes.len() + 5).sum()
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let data = Data {
            received: u64::MAX,
            has_gap: true,
            first: 7,
            pieces: vec![
                Piece {
                    goes_on: true,
                    bytes: Bytes::from_static(b"one"),
                },
                Piece {
                    goes_on: false,
                    bytes: Bytes::new(),
                },
            ],
        };
        let contents = [
            Content::Announce {
                has_global_owner: true,
                since: 3,
            },
            Content::StandsBy { load: 3 },
            Content::Leaves,
            Content::Handover { data: data.clone() },
            Content::Follow(Follow {
                session: 5,
                revision: 77,
                data: data.clone(),
            }),
            Content::Hello {
                number: 3,
                incarnation: 9,
            },
            Content::Welcome {
                number: 3,
                incarnation: 9,
                token: 4,
            },
            Content::Data { token: 4, data },
            Content::Reset { token: 4 },
            Content::Bye { token: 4 },
            Content::Stale { newest: 12 },
        ];
        let frame = |content| Frame {
            from: NodeId(0xabc),
            epoch: 11,
            content,
        };
        contents.into_iter().map(frame).collect()
    }

    #[test]
    fn what_is_encoded_is_read_again_and_nothing_cut_short_or_longer_is() {
        for frame in frames() {
            let bytes = frame.encode();
            assert_eq!(Frame::decode(bytes.clone()), Ok(frame));
            for end in 0..bytes.len() {
                assert_eq!(Frame::decode(bytes.slice(..end)), Err(Unread::Malformed));
            }
            let longer = [&bytes[..], b"x"].concat();
            assert_eq!(Frame::decode(longer.into()), Err(Unread::Malformed));
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = frames()[0].encode().to_vec();
        bytes[2] = 9;
        assert_eq!(Frame::decode(bytes.into()), Err(Unread::OtherProtocol(9)));
    }

    #[test]
    fn a_length_that_nothing_could_have_takes_no_memory() {
        let frame = &frames()[7];
        let mut bytes = frame.encode().to_vec();
        // The number of pieces, behind head, kind, token, both numbers and the flag.
        bytes[42..46].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Frame::decode(bytes.into()), Err(Unread::Malformed));
    }
}
