//! What lies between the ends.

use std::collections::VecDeque;
use std::hint::black_box;

use lagometer_kcp::{Command, HEADER_BYTES};

use crate::case::{FILLING, MESSAGE_BYTES};

/// One direction: datagrams in order, each with the time of its arrival.
pub(crate) struct Wire {
    flying: VecDeque<(u32, Kept)>,
    /// Where a datagram is copied to when it is sent, and put together again
    /// when it arrives.
    sent: Vec<u8>,
    arrived: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

/// A datagram on the wire.
enum Kept {
    /// A full one, of which all but the header and the message's number is
    /// the same in all.
    Full([u8; DIFFERENT_BYTES]),
    Other(Vec<u8>),
}

const FULL_BYTES: usize = HEADER_BYTES + MESSAGE_BYTES;
const DIFFERENT_BYTES: usize = HEADER_BYTES + 8;

impl Default for Wire {
    fn default() -> Self {
        Self {
            flying: VecDeque::new(),
            sent: Vec::with_capacity(FULL_BYTES),
            arrived: vec![FILLING; FULL_BYTES],
            spare: Vec::new(),
        }
    }
}

impl Wire {
    pub(crate) fn push(&mut self, arrival: u32, bytes: &[u8], arrives: bool) {
        self.sent.clear();
        self.sent.extend_from_slice(bytes);
        black_box(&self.sent);
        if !arrives {
            return;
        }
        let kept = if bytes.len() == FULL_BYTES && bytes[4] == Command::Push.byte() {
            Kept::Full(std::array::from_fn(|at| bytes[at]))
        } else {
            let mut whole = self.spare.pop().unwrap_or_default();
            whole.clear();
            whole.extend_from_slice(bytes);
            Kept::Other(whole)
        };
        self.flying.push_back((arrival, kept));
    }

    pub(crate) fn pop(&mut self, now: u32, input: impl FnOnce(&[u8])) -> bool {
        match self.flying.front() {
            Some(&(arrival, _)) if arrival <= now => {}
            _ => return false,
        }
        match self.flying.pop_front() {
            Some((_, Kept::Full(different))) => {
                self.arrived[..DIFFERENT_BYTES].copy_from_slice(&different);
                input(&self.arrived);
            }
            Some((_, Kept::Other(whole))) => {
                input(&whole);
                self.spare.push(whole);
            }
            None => {}
        }
        true
    }
}

/// Which datagrams are lost: the same for everyone who sends the same.
pub(crate) struct Fates {
    state: u64,
    lost_below: u64,
}

impl Fates {
    pub(crate) const fn new(loss_percent: u64) -> Self {
        Self {
            state: 1,
            lost_below: u64::MAX / 100 * loss_percent,
        }
    }

    /// The next datagram's fate, by xorshift (Marsaglia 2003).
    pub(crate) const fn arrives(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >= self.lost_below
    }
}
