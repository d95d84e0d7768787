//! Counts what a stream of bytes is cut into beneath the gateway's own frames:
//! records of TLS, frames of a WebSocket.
//!
//! Each costs its reader something, though nothing be in it: a record is
//! decrypted, a ping answered, a part of a message put to those before it. The
//! libraries that read them do not say how many there were.

/// Counts the units of one stream as their bytes come, in pieces of any size.
#[derive(Debug)]
pub(in crate::server) struct UnitCounter {
    framing: Framing,
    /// The header of the unit that has begun.
    header: [u8; LONGEST_HEADER],
    header_len: usize,
    /// What is still to come of the payload of a unit that was counted.
    payload_left: u64,
    count: usize,
}

/// A WebSocket frame's: two bytes, a length of eight, a mask of four (RFC 6455,
/// section 5.2).
const LONGEST_HEADER: usize = 14;

/// A TLS record's: a type, a version of two bytes, a length of two (RFC 8446,
/// section 5.1).
const TLS_HEADER: usize = 5;

/// How units are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// TLS records.
    Tls,
    /// The request that opens a WebSocket; the empty lines before it are passed over.
    BeforeRequest,
    /// … up to its empty line. As the library reads it a line may end without a
    /// carriage return.
    Request { line: Line },
    /// WebSocket frames.
    WebSocket,
}

/// How far a line of a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Nothing of it was there yet.
    Begins,
    /// A carriage return, and nothing before it.
    BeginsWithReturn,
    /// Something else.
    Within,
}

impl UnitCounter {
    /// Of TLS records.
    pub(in crate::server) fn tls() -> Self {
        Self::of(Framing::Tls)
    }

    /// Of the frames of a WebSocket's client, from its request on.
    pub(in crate::server) fn websocket() -> Self {
        Self::of(Framing::BeforeRequest)
    }

    fn of(framing: Framing) -> Self {
        Self {
            framing,
            header: [0; LONGEST_HEADER],
            header_len: 0,
            payload_left: 0,
            count: 0,
        }
    }

    /// Counts from zero again.
    pub(in crate::server) fn reset(&mut self) {
        self.count = 0;
    }

    /// Units that have begun since.
    pub(in crate::server) fn count(&self) -> usize {
        self.count
    }

    /// These bytes have come.
    pub(in crate::server) fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            if self.payload_left > 0 {
                let skipped = rest
                    .len()
                    .min(self.payload_left.try_into().unwrap_or(usize::MAX));
                self.payload_left -= skipped as u64;
                rest = &rest[skipped..];
                continue;
            }
            self.step(byte);
            rest = &rest[1..];
        }
    }

    /// A byte that is of no payload.
    fn step(&mut self, byte: u8) {
        match self.framing {
            Framing::BeforeRequest => {
                if !matches!(byte, b'\r' | b'\n') {
                    self.framing = Framing::Request { line: Line::Within };
                }
            }
            Framing::Request { line } => {
                self.framing = match (byte, line) {
                    (b'\n', Line::Within) => Framing::Request { line: Line::Begins },
                    (b'\n', _) => Framing::WebSocket,
                    (b'\r', Line::Begins) => Framing::Request {
                        line: Line::BeginsWithReturn,
                    },
                    _ => Framing::Request { line: Line::Within },
                };
            }
            Framing::Tls | Framing::WebSocket => {
                self.header[self.header_len] = byte;
                self.header_len += 1;
                if let Some(payload) = self.payload_len() {
                    self.header_len = 0;
                    self.payload_left = payload;
                    self.count += 1;
                }
            }
        }
    }

    /// The length of the payload, once the header is whole.
    fn payload_len(&self) -> Option<u64> {
        let header = &self.header[..self.header_len];
        match self.framing {
            Framing::Tls => {
                let [.., high, low] = *header.first_chunk::<TLS_HEADER>()?;
                Some(u64::from(u16::from_be_bytes([high, low])))
            }
            Framing::WebSocket => {
                let [_, short] = *header.first_chunk()?;
                let length_len = match short & 0x7f {
                    126 => 2,
                    127 => 8,
                    _ => 0,
                };
                let mask_len = if short & 0x80 == 0 { 0 } else { 4 };
                if header.len() < 2 + length_len + mask_len {
                    return None;
                }
                let length = header[2..2 + length_len]
                    .iter()
                    .fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
                Some(if length_len == 0 {
                    u64::from(short & 0x7f)
                } else {
                    length
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tungstenite::protocol::Role;
    use tungstenite::{Message, WebSocket};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// What a client of the library writes for messages of so many bytes.
    fn frames(lengths: &[usize]) -> Vec<u8> {
        let wire = std::io::Cursor::new(Vec::new());
        let mut client = WebSocket::from_raw_socket(wire, Role::Client, None);
        for &len in lengths {
            client.write(Message::binary(vec![b'\n'; len])).unwrap();
        }
        client.flush().unwrap();
        client.into_inner().into_inner()
    }

    /// Counts in pieces, of so many bytes each in turn.
    fn count(mut counter: UnitCounter, wire: &[u8], pieces: &[usize]) -> usize {
        let mut rest = wire;
        for &piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            counter.take(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        counter.count()
    }

    proptest! {
        #[test]
        fn frames_and_records_are_counted_however_they_arrive(
            lengths in proptest::collection::vec(
                prop_oneof![Just(0), 1_usize..200, 60_000_usize..70_000], 0..12),
            pieces in proptest::collection::vec(1_usize..5000, 1..5),
        ) {
            let wire = [REQUEST, &frames(&lengths)].concat();
            prop_assert_eq!(count(UnitCounter::websocket(), &wire, &pieces), lengths.len());
            let records: Vec<u8> = lengths
                .iter()
                .map(|&len| (len % 16_384) as u16)
                .flat_map(|len| {
                    let header = [23, 3, 3, (len >> 8) as u8, len as u8];
                    header.into_iter().chain(std::iter::repeat_n(7, usize::from(len)))
                })
                .collect();
            prop_assert_eq!(count(UnitCounter::tls(), &records, &pieces), lengths.len());
        }
    }

    #[test]
    fn a_request_ends_where_the_library_has_it_end() {
        let lines = [
            &b"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
            b"\n\nGET / HTTP/1.1\nHost: x\n\n",
            b"GET / HTTP/1.1\nHost: x\r\n\n",
            b"GET / HTTP/1.1\r\nHost: x\n\r\n",
        ];
        for request in lines {
            let wire = [request, &frames(&[0, 5, 0])].concat();
            assert_eq!(count(UnitCounter::websocket(), &wire, &[1]), 3);
        }
    }

    #[test]
    fn counting_begins_anew_for_each_turn() {
        let mut counter = UnitCounter::tls();
        counter.take(&[23, 3, 3, 0, 0]);
        assert_eq!(counter.count(), 1);
        counter.reset();
        counter.take(&[23, 3, 3, 0]);
        assert_eq!(counter.count(), 0);
        counter.take(&[0]);
        assert_eq!(counter.count(), 1);
    }
}
