//! TCP as an [`Endpoint`]: messages on the stream of a [`Connection`].

use lagometer_units::Time;

use super::Settings;
use super::connection::Connection;
use super::packets::Segment;
use super::stream::{Front, LENGTH_BYTES, Partial, length_of};
use crate::arrivals::Arrivals;
use crate::{ByteStream as _, Closed, Endpoint, Message, Refused, State, Transport};

/// One side of a TCP connection.
pub(super) struct Tcp {
    settings: Settings,
    connection: Connection,
    /// The number of the first byte the peer sends, once known.
    first_sequence: Option<u32>,
    arrivals: Arrivals,
    partial: Partial,
    stream_is_damaged: bool,
}

impl Tcp {
    /// Messages on `connection`, which was made of the same settings.
    pub(super) fn over(connection: Connection, settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            connection,
            first_sequence: None,
            arrivals: Arrivals::default(),
            partial: Partial::default(),
            stream_is_damaged: false,
        }
    }

    /// Notes which bytes of the peer's stream came, if they are within the
    /// receive window, of which `unread` bytes are taken.
    fn note_arrival(&mut self, segment: Segment, unread: u64, now: Time) {
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
        let window_end =
            self.arrivals.delivered_until() + unread + self.settings.receive_buffer.bytes();
        if end <= window_end {
            self.arrivals.heard(start..end, now);
        }
    }

    /// Moves up to `len` bytes from the socket to the message that is being
    /// put together, and says whether there were any.
    fn read(&mut self, len: usize) -> bool {
        let partial = &mut self.partial;
        self.connection
            .socket_mut()
            .recv(|bytes| {
                let taken = bytes.len().min(len);
                partial.extend(&bytes[..taken]);
                (taken, taken != 0)
            })
            // Not open yet, or closed and read to the end.
            .unwrap_or(false)
    }
}

impl Endpoint for Tcp {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        if self.state() != State::Ready {
            return Err(Refused::NotOpen);
        }
        let limit_bytes = self.settings.largest_message_bytes();
        if message.len() > limit_bytes {
            return Err(Refused::TooLarge {
                size_bytes: message.len(),
                limit_bytes,
            });
        }
        let socket = self.connection.socket_mut();
        let free_bytes = socket.send_capacity() - socket.send_queue();
        if LENGTH_BYTES + message.len() > free_bytes {
            return Err(Refused::BufferFull);
        }
        for part in [&length_of(message), message] {
            let taken = socket.send_slice(part).map_err(|_| Refused::NotOpen)?;
            debug_assert_eq!(taken, part.len(), "there is room for it");
        }
        self.connection.poll(now);
        Ok(())
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        let limit_bytes = self.settings.largest_message_bytes();
        loop {
            match self.partial.front(limit_bytes) {
                Front::Needs(missing) => {
                    if !self.read(missing) {
                        return None;
                    }
                }
                Front::Complete => {
                    let bytes = self.partial.take();
                    let length = (LENGTH_BYTES + bytes.len()) as u64;
                    let blocked = Some(self.arrivals.delivered(length, now));
                    return Some(Message { bytes, blocked });
                }
                Front::TooLong => {
                    self.stream_is_damaged = true;
                    self.connection.socket_mut().abort();
                    return None;
                }
            }
        }
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        let unread = self.connection.socket().recv_queue() as u64;
        if let Some(segment) = self.connection.take_packet(now, datagram) {
            self.note_arrival(segment, unread, now);
        }
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        match self.connection.next_packet() {
            Some(packet) => {
                *buffer = packet;
                true
            }
            None => false,
        }
    }

    fn next_deadline(&mut self) -> Option<Time> {
        self.connection.poll_at()
    }

    fn handle_deadline(&mut self, now: Time) {
        self.connection.poll(now);
    }

    fn state(&self) -> State {
        match self.connection.state() {
            State::Closed(_) if self.stream_is_damaged => {
                State::Closed(Closed::Failed("the stream is damaged".to_owned()))
            }
            state => state,
        }
    }
}
