//! A connection as a stream of bytes.

use lagometer_units::Time;

use super::host::{Host, instant};
use super::settings::StreamOptions;
use crate::{ByteStream, Encapsulation, State};

/// Bytes read from the connection at once.
const READ_BYTES: usize = 4096;

/// One side of a TCP connection.
#[derive(Debug)]
pub struct Stream {
    host: Host,
    /// The latest instant that was handed in.
    now: Time,
}

impl Stream {
    /// The side that connects, with its SYN on the way. What is drawn at random
    /// follows from `seed`, the same for both sides.
    #[must_use]
    pub fn client(options: StreamOptions, seed: u64, start: Time) -> Self {
        Self {
            host: Host::client(options.config(), seed, start),
            now: start,
        }
    }

    /// The side that is connected to; see [`client`](Self::client).
    #[must_use]
    pub fn server(options: StreamOptions, seed: u64, start: Time) -> Self {
        Self {
            host: Host::server(options.config(), seed),
            now: start,
        }
    }

    fn drain(&mut self, output: &mut dyn FnMut(&[u8])) {
        while let Some(packet) = self.host.next_packet() {
            output(&packet);
        }
    }
}

impl ByteStream for Stream {
    fn write(&mut self, now: Time, bytes: &[u8]) -> usize {
        self.now = now;
        // A connection that is not open, or no more, takes nothing.
        self.host
            .with(|connection| connection.write(instant(now), bytes))
            .unwrap_or(0)
    }

    fn send(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        self.now = now;
        self.drain(output);
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) {
        let now = self.now;
        self.host.with(|connection| {
            let mut buffer = [0; READ_BYTES];
            loop {
                match connection.read(instant(now), &mut buffer) {
                    0 => return,
                    length => take(&buffer[..length]),
                }
            }
        });
    }

    fn input(&mut self, now: Time, datagram: &[u8], output: &mut dyn FnMut(&[u8])) {
        self.now = now;
        self.host.receive(now, datagram);
        self.drain(output);
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        // What a read or a write made ready leaves with the next call.
        if self.host.has_packets() {
            return Some(now);
        }
        self.host.next_deadline().map(|deadline| deadline.max(now))
    }

    fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        self.now = now;
        self.host.handle_deadline(now);
        self.drain(output);
    }

    fn state(&self) -> State {
        self.host.state()
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::Ip
    }
}
