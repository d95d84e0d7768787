//! TCP as an [`Endpoint`]: messages on the stream of a connection.

use std::collections::VecDeque;

use lagometer_units::Time;

use super::Settings;
use super::host::{Host, instant};
use crate::arrivals::Arrivals;
use crate::framing::{Cutter, LENGTH_BYTES, write};
use crate::{Closed, Endpoint, Message, Refused, State};

/// Bytes read from the connection at once.
const READ_BYTES: usize = 16 << 10;

/// One side of a TCP connection.
pub(super) struct Tcp {
    host: Host,
    quick_ack: bool,
    most_bytes: usize,
    /// What the connection has had no room for yet: the rest of one message.
    outgoing: VecDeque<u8>,
    cutter: Cutter,
    buffer: Box<[u8]>,
    /// The number of the first byte the peer sends, once known.
    first_sequence: Option<u32>,
    arrivals: Arrivals,
    failed: Option<Closed>,
}

impl Tcp {
    /// Messages on the connection of `host`, which was made of the same
    /// settings.
    pub(super) fn over(host: Host, settings: &Settings) -> Self {
        let most_bytes = settings.max_message.bytes() as usize;
        Self {
            host,
            quick_ack: settings.quick_ack,
            most_bytes,
            outgoing: VecDeque::new(),
            cutter: Cutter::new(most_bytes),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            first_sequence: None,
            arrivals: Arrivals::default(),
            failed: None,
        }
    }

    /// Notes which bytes of the peer's stream a sound packet brought, if they
    /// are within the receive window that ends at `window_end`.
    fn note_arrival(&mut self, packet: &[u8], window_end: u64, now: Time) {
        let Some(segment) = Piece::of(packet) else {
            return;
        };
        if segment.is_syn {
            self.first_sequence
                .get_or_insert(segment.sequence.wrapping_add(1));
            return;
        }
        let Some(first_sequence) = self.first_sequence else {
            return;
        };
        let wrapped = segment.sequence.wrapping_sub(first_sequence);
        let start = self.arrivals.place_of(wrapped, 32);
        let end = start + segment.length as u64;
        if end <= window_end {
            self.arrivals.received(start..end, now);
        }
    }

    /// Where the receive window ends, as a place in the peer's stream.
    fn window_end(&self) -> u64 {
        let of_connection = self.host.connection().map_or(0, |connection| {
            connection.readable() as u64 + u64::from(connection.receive_window())
        });
        self.arrivals.delivered_until() + self.cutter.held_bytes() as u64 + of_connection
    }

    /// Moves what has arrived in order to the cutter, and says whether there
    /// was anything. A user who takes no messages out lets the window close.
    fn take_in(&mut self, now: Time) -> bool {
        let Self { host, buffer, .. } = self;
        let (cutter, quick_ack) = (&mut self.cutter, self.quick_ack);
        let limit = self.most_bytes + LENGTH_BYTES;
        let taken = host.with(|connection| {
            let mut any = false;
            while cutter.held_bytes() <= limit {
                let length = connection.read(instant(now), buffer);
                if length == 0 {
                    break;
                }
                cutter.push(&buffer[..length]);
                any = true;
            }
            if any && quick_ack {
                connection.acknowledge_quickly(instant(now));
            }
            any
        });
        taken.unwrap_or(false)
    }

    /// Moves what waits into the connection, as far as there is room.
    fn put_out(&mut self, now: Time) {
        while !self.outgoing.is_empty() {
            let (piece, _) = self.outgoing.as_slices();
            let written = self
                .host
                .with(|connection| connection.write(instant(now), piece))
                .unwrap_or(0);
            if written == 0 {
                return;
            }
            self.outgoing.drain(..written);
        }
    }
}

impl Endpoint for Tcp {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        Refused::if_larger(message, self.most_bytes)?;
        if self.state() != State::Ready {
            return Err(Refused::NotOpen);
        }
        if !self.outgoing.is_empty() {
            return Err(Refused::BufferFull);
        }
        write(message, &mut self.outgoing);
        self.put_out(now);
        Ok(())
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        loop {
            match self.cutter.next_message() {
                Ok(Some(bytes)) => {
                    let length = (LENGTH_BYTES + bytes.len()) as u64;
                    let blocked = Some(self.arrivals.delivered(length, now));
                    return Some(Message { bytes, blocked });
                }
                Ok(None) if self.take_in(now) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.failed = Some(Closed::Failed(error.to_string()));
                    self.host.with(|connection| connection.abort(instant(now)));
                    return None;
                }
            }
        }
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        let window_end = self.window_end();
        if self.host.receive(now, datagram) {
            self.note_arrival(datagram, window_end, now);
        }
        self.put_out(now);
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        match self.host.next_packet() {
            Some(packet) => {
                *buffer = packet;
                true
            }
            None => false,
        }
    }

    fn next_deadline(&mut self) -> Option<Time> {
        self.host.next_deadline()
    }

    fn handle_deadline(&mut self, now: Time) {
        self.host.handle_deadline(now);
        self.put_out(now);
    }

    fn state(&self) -> State {
        match &self.failed {
            Some(why) => State::Closed(why.clone()),
            None => self.host.state(),
        }
    }
}

/// What a TCP segment says of the stream it belongs to.
struct Piece {
    /// Whether it opens the stream; its data then begin one number later.
    is_syn: bool,
    /// The number of its first byte.
    sequence: u32,
    /// Bytes of data.
    length: usize,
}

impl Piece {
    /// Reads a packet that was found to be sound, if it is TCP over IPv4.
    fn of(packet: &[u8]) -> Option<Self> {
        const TCP: u8 = 6;
        const SYN: u8 = 0x02;
        let ip_bytes = usize::from(packet.first()? & 0x0f) * 4;
        let total = u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]);
        if *packet.get(9)? != TCP {
            return None;
        }
        let tcp = packet.get(ip_bytes..usize::from(total))?;
        let sequence = u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?);
        let tcp_bytes = usize::from(tcp.get(12)? >> 4) * 4;
        Some(Self {
            is_syn: tcp.get(13)? & SYN != 0,
            sequence,
            length: tcp.len().checked_sub(tcp_bytes)?,
        })
    }
}
