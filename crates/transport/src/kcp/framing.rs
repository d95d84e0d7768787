//! Messages in a stream: a length of four bytes, little-endian, in front of
//! each. The stream mode of KCP keeps no boundaries.

use lagometer_kcp::Arrival;
use lagometer_units::Time;

/// Bytes of length in front of a message.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A message that says it is longer than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Messages being put together again from the pieces of a stream.
#[derive(Debug)]
pub(crate) struct Reassembly {
    bytes: Vec<u8>,
    /// How many of `bytes` have been taken out.
    taken: usize,
    limit: usize,
    /// When the last piece came that the message under way has bytes of.
    arrived: Time,
    /// The same of the last piece of all.
    last: Arrival,
}

impl Reassembly {
    /// No message may be longer than `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            taken: 0,
            limit,
            arrived: Time::ZERO,
            last: Arrival {
                arrived: Time::ZERO,
                in_order: Time::ZERO,
            },
        }
    }

    /// Appends the next piece of the stream, once all whole messages before it
    /// have been taken out.
    pub(crate) fn push(&mut self, piece: &[u8], arrival: Arrival) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            self.arrived = arrival.arrived;
        } else if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(piece);
        self.arrived = self.arrived.max(arrival.arrived);
        self.last = arrival;
    }

    /// Takes out the next message, if it is whole.
    pub(crate) fn pop(&mut self) -> Result<Option<(Vec<u8>, Arrival)>, TooLong> {
        let rest = &self.bytes[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.limit {
            return Err(TooLong);
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        let message = message.to_vec();
        let arrival = Arrival {
            arrived: self.arrived,
            in_order: self.last.in_order,
        };
        self.taken += LENGTH_BYTES + length;
        // What is left came with the last piece.
        self.arrived = self.last.arrived;
        Ok(Some((message, arrival)))
    }
}

/// Appends a message behind its length.
pub(crate) fn frame(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(message.len() as u32).to_le_bytes());
    out.extend_from_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(arrived: u64, in_order: u64) -> Arrival {
        Arrival {
            arrived: Time::from_millis(arrived),
            in_order: Time::from_millis(in_order),
        }
    }

    proptest! {
        #[test]
        fn however_the_stream_is_cut_the_messages_come_out(
            messages: Vec<Vec<u8>>,
            cuts in prop::collection::vec(1_usize..40, 1..50),
        ) {
            let mut stream = Vec::new();
            for message in &messages {
                frame(message, &mut stream);
            }
            let mut reassembly = Reassembly::new(1_000);
            let mut out = Vec::new();
            let mut rest = &stream[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, following) = rest.split_at(rest.len().min(*cut));
                reassembly.push(piece, at(0, 0));
                rest = following;
                while let Some((message, _)) = reassembly.pop().unwrap() {
                    out.push(message);
                }
            }
            prop_assert_eq!(out, messages);
        }
    }

    #[test]
    fn a_message_is_blocked_from_its_own_last_piece_on() {
        let mut stream = Vec::new();
        frame(&[1; 10], &mut stream);
        frame(&[2; 10], &mut stream);
        frame(&[3; 2], &mut stream);
        let mut reassembly = Reassembly::new(100);
        // The first piece came last.
        let mut blocked = Vec::new();
        for (piece, arrived) in [(&stream[..20], 90), (&stream[20..], 30)] {
            reassembly.push(piece, at(arrived, 90));
            while let Some((_, arrival)) = reassembly.pop().unwrap() {
                blocked.push(arrival.blocked().as_millis());
            }
        }
        assert_eq!(blocked, [0, 0, 60]);
    }

    #[test]
    fn an_absurd_length_is_refused() {
        let mut reassembly = Reassembly::new(100);
        reassembly.push(&[255; 8], at(0, 0));
        assert_eq!(reassembly.pop(), Err(TooLong));
    }
}
