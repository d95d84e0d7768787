//! A socket of which a turn reads only so much, whatever reads from it: a
//! library that looks for the end of a message, or of a handshake, may be kept
//! looking for ever by a peer that never lets it come.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use super::units::UnitCounter;

/// A connection, and how much of it may still be read.
#[derive(Debug)]
pub(in crate::server) struct Metered<S = TcpStream> {
    socket: S,
    left_bytes: usize,
    /// The most that may be read in all.
    most_bytes: usize,
    received_bytes: usize,
    /// How many came since the last whole message.
    unfinished_bytes: usize,
    /// Bytes read since [`allow`](Self::allow).
    read_bytes: usize,
    units: UnitCounter,
}

impl<S> Metered<S> {
    /// Of which nothing may be read before [`allow`](Self::allow); `units` counts what
    /// its bytes are cut into.
    pub(in crate::server) fn new(socket: S, units: UnitCounter) -> Self {
        Self {
            socket,
            left_bytes: 0,
            most_bytes: usize::MAX,
            received_bytes: 0,
            unfinished_bytes: 0,
            read_bytes: 0,
            units,
        }
    }

    /// So many bytes may be read from now on.
    pub(in crate::server) fn allow(&mut self, bytes: usize) {
        self.left_bytes = bytes;
        self.read_bytes = 0;
        self.units.reset();
    }

    /// Bytes that were read since, and how many units they had.
    pub(in crate::server) fn read_since(&self) -> (usize, usize) {
        (self.read_bytes, self.units.count())
    }

    /// All that was allowed has been read: there may be more.
    pub(in crate::server) fn is_used_up(&self) -> bool {
        self.left_bytes == 0
    }

    /// So many bytes may be read in all, from the beginning on.
    pub(super) fn allow_in_all(&mut self, bytes: usize) {
        self.most_bytes = bytes;
    }

    /// How many bytes have been read in all.
    pub(super) fn received_bytes(&self) -> usize {
        self.received_bytes
    }

    /// A message has come whole and was handed on: what was read before is kept
    /// no more.
    pub(super) fn settle(&mut self) {
        self.unfinished_bytes = 0;
    }

    /// How many bytes have been read since: whoever reads from here keeps no more
    /// of them.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.unfinished_bytes
    }

    pub(in crate::server) fn socket(&self) -> &S {
        &self.socket
    }
}

impl<S: Read> Read for Metered<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self
            .left_bytes
            .min(self.most_bytes.saturating_sub(self.received_bytes));
        if most == 0 && !buffer.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let most = buffer.len().min(most);
        let read = self.socket.read(&mut buffer[..most])?;
        self.left_bytes -= read;
        self.received_bytes = self.received_bytes.saturating_add(read);
        self.unfinished_bytes = self.unfinished_bytes.saturating_add(read);
        self.read_bytes += read;
        self.units.take(&buffer[..read]);
        Ok(read)
    }
}

impl<S: Write> Write for Metered<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_transport::{Reading, WebSocketTransport};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    /// A client that begins a message and sends empty parts of it for ever, as
    /// fast as they are read.
    struct Endless {
        begin: Vec<u8>,
        read: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            // A continuation frame: not the last, masked, empty.
            let part = [0x00, 0x80, 0, 0, 0, 0];
            // The request alone first: nothing comes with it.
            let request = REQUEST.len().saturating_sub(self.read);
            let count = if request > 0 {
                request.min(buffer.len())
            } else {
                buffer.len()
            };
            let after = |at: usize| part[(at - self.begin.len()) % part.len()];
            for (at, byte) in (self.read..).zip(buffer[..count].iter_mut()) {
                *byte = self.begin.get(at).copied().unwrap_or_else(|| after(at));
            }
            self.read += count;
            Ok(count)
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_of_empty_parts_without_end_does_not_keep_its_reader() {
        // Behind the request the first part: binary, not the last, empty.
        let begin = [REQUEST, &[0x02, 0x80, 0, 0, 0, 0]].concat();
        let mut transport = WebSocketTransport::accept(Metered::new(
            Endless { begin, read: 0 },
            UnitCounter::websocket(),
        ));
        for _ in 0..10 {
            transport.stream_mut().unwrap().allow(64 << 10);
            let (reading, bytes) = transport.read_once(|_| panic!("there is no whole message"));
            assert_eq!((reading, bytes), (Reading::Done, 0));
            assert!(transport.stream().unwrap().is_used_up());
            // Each part counts, though there is no message.
            let (bytes, frames) = transport.stream().unwrap().read_since();
            assert_eq!(bytes, 64 << 10);
            assert!(frames > (60 << 10) / 6, "{frames}");
        }
    }
}
