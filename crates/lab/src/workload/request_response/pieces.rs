//! Requests and answers in pieces that every transport carries.

use std::collections::{BTreeMap, VecDeque};

use lagometer_transport::{Delivery, Messenger, Refused, State};
use lagometer_units::Time;

use crate::workload::game::{Codec, HEADER_BYTES, Header, Kind};
use crate::workload::payload::Damaged;
use crate::workload::{Misdeliveries, Received};

/// The largest piece: what fits a datagram of every transport, as a game's snapshots.
const PIECE_BYTES: usize = 1150;

/// What lies incomplete at most: who sends more has no use for the oldest.
const MOST_OPEN: usize = 1 << 16;

/// How many pieces so many bytes are, all as large as each other but for a byte.
fn pieces_of(bytes: usize) -> u32 {
    bytes.div_ceil(PIECE_BYTES).max(1) as u32
}

/// Sends requests or answers, piece by piece.
#[derive(Debug)]
pub(super) struct Outgoing {
    codec: Codec,
    kind: Kind,
    delivery: Delivery,
    /// Each with its bytes, and how many of its pieces the transport has taken.
    waiting: VecDeque<(u32, usize, u32)>,
    payload_bytes: u64,
    buffer: Vec<u8>,
}

/// What became of one that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The transport has taken all of it.
    Whole,
    /// It has refused a piece for now.
    Refused,
    /// It will never take a piece, and so not the rest.
    Never,
}

impl Outgoing {
    pub(super) const fn new(codec: Codec, kind: Kind, delivery: Delivery) -> Self {
        Self {
            codec,
            kind,
            delivery,
            waiting: VecDeque::new(),
            payload_bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// Has number `number` of so many bytes wait to be sent.
    pub(super) fn push(&mut self, number: u32, bytes: usize) {
        self.waiting.push_back((number, bytes, 0));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends nothing of what waits.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Offers what waits to the transport; calls `of_each` with what became of a number, and
    /// returns whether anything was taken.
    pub(super) fn send(
        &mut self,
        now: Time,
        side: &mut dyn Messenger,
        mut of_each: impl FnMut(u32, Sent),
    ) -> bool {
        if side.state() != State::Ready {
            return false;
        }
        let before = self.payload_bytes;
        while let Some((number, bytes, taken)) = self.waiting.front_mut() {
            let (pieces, number) = (pieces_of(*bytes), *number);
            let of_piece = (*bytes + (pieces - 1 - *taken) as usize) / pieces as usize;
            let header = Header {
                kind: self.kind,
                number,
                ack: *taken,
                span: pieces,
                events: 0,
            };
            let body = of_piece.saturating_sub(HEADER_BYTES);
            self.codec.write(&header, body, &mut self.buffer);
            match side.send_as(now, self.delivery, &self.buffer) {
                Ok(()) => {
                    self.payload_bytes += self.buffer.len() as u64;
                    *taken += 1;
                    if *taken < pieces {
                        continue;
                    }
                    of_each(number, Sent::Whole);
                }
                Err(Refused::BufferFull | Refused::NotOpen) => {
                    of_each(number, Sent::Refused);
                    break;
                }
                Err(Refused::TooLarge { .. }) => of_each(number, Sent::Never),
            }
            self.waiting.pop_front();
        }
        self.payload_bytes > before
    }

    /// Bytes of all pieces that the transport took.
    pub(super) const fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }
}

/// Puts pieces together.
#[derive(Debug)]
pub(super) struct Incoming {
    codec: Codec,
    kind: Kind,
    /// Those of which some pieces have come, each as a bit.
    open: BTreeMap<u32, Vec<u64>>,
    whole: Received,
    misdeliveries: Misdeliveries,
}

impl Incoming {
    pub(super) const fn new(codec: Codec, kind: Kind) -> Self {
        Self {
            codec,
            kind,
            open: BTreeMap::new(),
            whole: Received::new(),
            misdeliveries: Misdeliveries {
                damaged: 0,
                duplicated: 0,
                out_of_order: 0,
            },
        }
    }

    /// Takes a piece in; returns the number of what has come whole by it. `bytes_of` has
    /// the bytes of a number, none of one that cannot be.
    pub(super) fn take(
        &mut self,
        message: &[u8],
        bytes_of: impl Fn(u32) -> Option<usize>,
    ) -> Option<u32> {
        let Ok((number, piece, pieces)) = self.read(message, bytes_of) else {
            self.misdeliveries.damaged += 1;
            return None;
        };
        if self.whole.has(number) {
            self.misdeliveries.duplicated += 1;
            return None;
        }
        let open = self.open.entry(number).or_default();
        open.resize(pieces.div_ceil(64) as usize, 0);
        let (word, bit) = (piece as usize / 64, 1_u64 << (piece % 64));
        if open[word] & bit != 0 {
            self.misdeliveries.duplicated += 1;
            return None;
        }
        open[word] |= bit;
        let have: u32 = open.iter().map(|word| word.count_ones()).sum();
        if have < pieces {
            if self.open.len() > MOST_OPEN {
                self.open.pop_first();
            }
            return None;
        }
        self.open.remove(&number);
        self.whole.note(Some(number))
    }

    /// The number of a piece that is exactly what was sent, which piece it is, of how many.
    fn read(
        &self,
        message: &[u8],
        bytes_of: impl Fn(u32) -> Option<usize>,
    ) -> Result<(u32, u32, u32), Damaged> {
        let header = self.codec.read(message)?;
        let bytes = bytes_of(header.number).ok_or(Damaged)?;
        let (piece, pieces) = (header.ack, pieces_of(bytes));
        let is_right = header.kind == self.kind && header.span == pieces && piece < pieces;
        is_right
            .then_some((header.number, piece, pieces))
            .ok_or(Damaged)
    }

    pub(super) fn misdeliveries(&self) -> Misdeliveries {
        let mut all = self.misdeliveries;
        all += self.whole.misdeliveries();
        all
    }
}
