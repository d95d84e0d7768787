//! A stream of bytes as a socket that never waits, for libraries that want one.

use std::io::{self, ErrorKind, Read, Write};

use lagometer_transport::{ByteStream, State};
use lagometer_units::Time;

/// A [`ByteStream`] that can be read from and written to.
#[derive(Debug)]
pub struct StreamSocket<B> {
    /// The stream beneath.
    pub stream: B,
    /// When what is written now is written.
    pub now: Time,
    arrived: Vec<u8>,
    /// Where in `arrived` the unread begins.
    read_bytes: usize,
}

impl<B: ByteStream> StreamSocket<B> {
    /// Reads from and writes to `stream`, at first at `now`.
    pub const fn new(stream: B, now: Time) -> Self {
        Self {
            stream,
            now,
            arrived: Vec::new(),
            read_bytes: 0,
        }
    }
}

impl<B: ByteStream> Read for StreamSocket<B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read_bytes == self.arrived.len() {
            self.arrived.clear();
            self.read_bytes = 0;
            let arrived = &mut self.arrived;
            self.stream
                .read(&mut |bytes| arrived.extend_from_slice(bytes));
        }
        let unread = &self.arrived[self.read_bytes..];
        if unread.is_empty() {
            return match self.stream.state() {
                State::Closed(_) => Ok(0),
                _ => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let bytes = unread.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&unread[..bytes]);
        self.read_bytes += bytes;
        Ok(bytes)
    }
}

impl<B: ByteStream> Write for StreamSocket<B> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stream.write(self.now, bytes) {
            0 if !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
