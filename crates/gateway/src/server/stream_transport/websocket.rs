//! A WebSocket over TCP or TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::stream_transport::WebSocketTransport;

use super::metered::Metered;
use super::stream::SecureStream;
use super::units::UnitCounter;

/// The gateway's side of a WebSocket over a socket.
pub(in crate::server) type WebSocketOverSocket = WebSocketTransport<Beneath>;

/// What the WebSocket runs over.
#[derive(Debug)]
pub(in crate::server) enum Beneath {
    /// TCP as it is.
    Plain(Metered),
    /// TLS, and the frames within it.
    Secure(Box<SecureStream>, UnitCounter),
}

impl Beneath {
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(..))
    }

    /// Over TCP.
    pub(in crate::server) fn plain(socket: TcpStream) -> Self {
        Self::Plain(Metered::new(socket, UnitCounter::websocket()))
    }

    /// Over TLS.
    pub(in crate::server) fn secure(stream: Box<SecureStream>) -> Self {
        Self::Secure(stream, UnitCounter::websocket())
    }

    /// So many bytes may be read of the connection from now on.
    pub(super) fn allow(&mut self, bytes: usize) {
        match self {
            Self::Plain(socket) => socket.allow(bytes),
            Self::Secure(stream, frames) => {
                stream.sock.allow(bytes);
                frames.reset();
            }
        }
    }

    /// Bytes of the connection that were read since, and how many frames, or
    /// records of TLS where those were more.
    pub(super) fn read_since(&self) -> (usize, usize) {
        match self {
            Self::Plain(socket) => socket.read_since(),
            Self::Secure(stream, frames) => {
                let (bytes, records) = stream.sock.read_since();
                (bytes, records.max(frames.count()))
            }
        }
    }

    pub(super) fn metered(&self) -> &Metered {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream, _) => &stream.sock,
        }
    }

    pub(super) fn metered_mut(&mut self) -> &mut Metered {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream, _) => &mut stream.sock,
        }
    }
}

impl Read for Beneath {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Secure(stream, frames) => {
                let read = stream.read(buffer)?;
                frames.take(&buffer[..read]);
                Ok(read)
            }
        }
    }
}

impl Write for Beneath {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secure(stream, _) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secure(stream, _) => stream.flush(),
        }
    }
}
