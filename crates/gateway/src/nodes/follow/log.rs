//! What the owner does with the channels, as it is sent to the node that follows: everything
//! that comes to them, in order, and now and then a digest of what they had to say to it.

use bytes::Bytes;
use crc32fast::Hasher;
use lagometer_units::Time;

use crate::core::{AuthVerdict, SideId, Ticket};

use super::super::bus::NodeId;
use super::super::frame::Data;
use super::super::sides::Joined;
use super::super::wire::{Malformed, Put as _, Reader};

/// What a message of the owner begins with.
const SNAPSHOT: u8 = 0;
const BATCH: u8 = 1;

/// Verdicts by their numbers.
const VERDICTS: [AuthVerdict; 4] = [
    AuthVerdict::Admit,
    AuthVerdict::WrongPlayer,
    AuthVerdict::WrongLogin,
    AuthVerdict::Failed,
];

/// A message of the owner to the node that follows it.
#[derive(Debug)]
pub(in crate::nodes) enum LogMessage {
    /// The channels and the routes, written down.
    Snapshot(Bytes),
    /// What was done at an instant of the channels' clock.
    Batch(Time, Entries),
}

/// What was done, in order, read as it is done again.
#[derive(Debug)]
pub(in crate::nodes) struct Entries(Reader);

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::nodes) enum Entry {
    /// This has come of an edge.
    Data { side: SideId, data: Data },
    /// A connection loop has a route.
    Joined { side: SideId, joined: Joined },
    /// A route was given up.
    Lost { side: SideId },
    /// The channel manager was to do what is due.
    Deadline,
    /// A login was decided.
    Verdict {
        ticket: Ticket,
        verdict: AuthVerdict,
    },
    /// How things stand after all that.
    Check(Check),
}

/// What has to be the same after the same was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::nodes) struct Check {
    pub(in crate::nodes) digest: u32,
    pub(in crate::nodes) has_global_owner: bool,
}

/// A running digest of what the channel manager has to say.
#[derive(Clone, Debug, Default)]
pub(in crate::nodes) struct Digest(Hasher);

impl Digest {
    pub(in crate::nodes) fn add(&mut self, side: SideId, message: &[u8]) {
        self.0.update(&side.0.to_le_bytes());
        self.0.update(&(message.len() as u64).to_le_bytes());
        self.0.update(message);
    }

    pub(in crate::nodes) fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

/// The message with which a node begins to follow.
pub(in crate::nodes) fn encode_snapshot(package: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(1 + package.len());
    out.put_u8(SNAPSHOT);
    out.extend_from_slice(package);
    out.into()
}

/// What is done at one instant, as it is written.
#[derive(Debug, Default)]
pub(in crate::nodes) struct Batch {
    at: Time,
    bytes: Vec<u8>,
}

impl Batch {
    pub(in crate::nodes) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether something of this instant may be added.
    pub(in crate::nodes) fn takes(&self, at: Time) -> bool {
        self.is_empty() || self.at == at
    }

    pub(in crate::nodes) fn add(&mut self, at: Time, entry: &Entry) {
        let out = &mut self.bytes;
        if out.is_empty() {
            self.at = at;
            out.put_u8(BATCH);
            out.put_u64(at.as_nanos());
        }
        entry.put(out);
    }

    /// The message, with how things stand at its end; what is added then is another's.
    pub(in crate::nodes) fn finish(&mut self, check: Check) -> Bytes {
        Entry::Check(check).put(&mut self.bytes);
        std::mem::take(&mut self.bytes).into()
    }

    /// Forgets what was added.
    pub(in crate::nodes) fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl LogMessage {
    pub(in crate::nodes) fn decode(bytes: Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        match reader.u8()? {
            SNAPSHOT => Ok(Self::Snapshot(reader.0)),
            BATCH => {
                let at = Time::from_nanos(reader.u64()?);
                Ok(Self::Batch(at, Entries(reader)))
            }
            _ => Err(Malformed),
        }
    }
}

impl Entries {
    /// The next, if there is one.
    pub(in crate::nodes) fn next(&mut self) -> Result<Option<Entry>, Malformed> {
        if self.0.0.is_empty() {
            return Ok(None);
        }
        Entry::read(&mut self.0).map(Some)
    }
}

impl Entry {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { side, data } => {
                out.put_u8(0);
                out.put_u16(side.0);
                data.put(out);
            }
            Self::Joined { side, joined } => {
                out.put_u8(1);
                out.put_u16(side.0);
                out.put_u64(joined.edge.0);
                out.put_u16(joined.number);
                out.put_u32(joined.incarnation);
                out.put_u32(joined.token);
            }
            Self::Lost { side } => {
                out.put_u8(2);
                out.put_u16(side.0);
            }
            Self::Deadline => out.put_u8(3),
            Self::Verdict { ticket, verdict } => {
                out.put_u8(4);
                out.put_u64(ticket.number());
                let number = VERDICTS.iter().position(|it| it == verdict);
                out.put_u8(number.unwrap_or_default() as u8);
            }
            Self::Check(check) => {
                out.put_u8(5);
                out.put_u32(check.digest);
                out.put_u8(u8::from(check.has_global_owner));
            }
        }
    }

    fn read(reader: &mut Reader) -> Result<Self, Malformed> {
        let side = |reader: &mut Reader| reader.u16().map(SideId);
        Ok(match reader.u8()? {
            0 => Self::Data {
                side: side(reader)?,
                data: Data::read(reader)?,
            },
            1 => Self::Joined {
                side: side(reader)?,
                joined: Joined {
                    edge: NodeId(reader.u64()?),
                    number: reader.u16()?,
                    incarnation: reader.u32()?,
                    token: reader.u32()?,
                },
            },
            2 => Self::Lost {
                side: side(reader)?,
            },
            3 => Self::Deadline,
            4 => Self::Verdict {
                ticket: Ticket::from_number(reader.u64()?),
                verdict: *VERDICTS.get(usize::from(reader.u8()?)).ok_or(Malformed)?,
            },
            5 => Self::Check(Check {
                digest: reader.u32()?,
                has_global_owner: reader.flag()?,
            }),
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::frame::Piece;

    fn entries() -> Vec<Entry> {
        let side = SideId(7);
        vec![
            Entry::Data {
                side,
                data: Data {
                    received: 9,
                    has_gap: false,
                    first: 3,
                    pieces: vec![Piece {
                        goes_on: false,
                        bytes: Bytes::from_static(b"said"),
                    }],
                },
            },
            Entry::Joined {
                side,
                joined: Joined {
                    edge: NodeId(0xabc),
                    number: 2,
                    incarnation: 4,
                    token: 8,
                },
            },
            Entry::Lost { side },
            Entry::Deadline,
            Entry::Verdict {
                ticket: Ticket::from_number(5),
                verdict: AuthVerdict::WrongLogin,
            },
        ]
    }

    /// All of a batch.
    fn read(bytes: Bytes) -> Result<(Time, Vec<Entry>), Malformed> {
        let LogMessage::Batch(at, mut rest) = LogMessage::decode(bytes)? else {
            return Err(Malformed);
        };
        let mut entries = Vec::new();
        while let Some(entry) = rest.next()? {
            entries.push(entry);
        }
        Ok((at, entries))
    }

    #[test]
    fn what_is_logged_is_read_again_and_nothing_cut_short_is_but_where_an_entry_ends() {
        let check = Check {
            digest: 0xdead_beef,
            has_global_owner: true,
        };
        let (at, mut batch, mut ends) = (Time::from_millis(70), Batch::default(), Vec::new());
        for entry in entries() {
            assert!(batch.takes(at));
            batch.add(at, &entry);
            ends.push(batch.bytes.len());
        }
        assert!(!batch.takes(Time::ZERO));
        let bytes = batch.finish(check);
        let mut wanted = entries();
        wanted.push(Entry::Check(check));
        assert_eq!(read(bytes.clone()), Ok((at, wanted)));
        for end in 0..bytes.len() {
            let is_whole = read(bytes.slice(..end)).is_ok();
            assert_eq!(is_whole, end == 9 || ends.contains(&end), "{end}");
        }
        assert!(batch.is_empty() && batch.takes(Time::ZERO));
        let snapshot = encode_snapshot(b"all");
        assert!(
            matches!(LogMessage::decode(snapshot), Ok(LogMessage::Snapshot(all)) if all == "all")
        );
    }

    #[test]
    fn a_digest_shows_what_is_said_to_whom_and_in_how_many_messages() {
        let of = |said: &[(u16, &str)]| {
            let mut digest = Digest::default();
            for (side, message) in said {
                digest.add(SideId(*side), message.as_bytes());
            }
            digest.value()
        };
        let all = [
            of(&[]),
            of(&[(1, "ab")]),
            of(&[(2, "ab")]),
            of(&[(1, "a"), (1, "b")]),
            of(&[(1, "b"), (1, "a")]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one));
        }
    }
}
