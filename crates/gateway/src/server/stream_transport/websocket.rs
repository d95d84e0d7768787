//! A WebSocket over TCP or TLS.

use crate::stream_transport::WebSocketTransport;
use std::io::{self, Read, Write};

use super::metered::Metered;
use super::stream::SecureStream;

/// The gateway's side of a WebSocket over a socket.
pub(in crate::server) type WebSocketOverSocket = WebSocketTransport<Beneath>;

/// What the WebSocket runs over.
#[derive(Debug)]
pub(in crate::server) enum Beneath {
    /// TCP as it is.
    Plain(Metered),
    /// TLS.
    Secure(Box<SecureStream>),
}

impl Beneath {
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(_))
    }

    pub(super) fn metered(&self) -> &Metered {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream) => &stream.sock,
        }
    }

    pub(super) fn metered_mut(&mut self) -> &mut Metered {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(stream) => &mut stream.sock,
        }
    }
}

impl Read for Beneath {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Secure(stream) => stream.read(buffer),
        }
    }
}

impl Write for Beneath {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}
