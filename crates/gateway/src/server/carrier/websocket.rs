//! Frames as WebSocket messages, over TCP or TLS.
//!
//! What comes in is bytes, whatever the messages they come in; what goes out is
//! one frame a message, for there are clients that read no further.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use bytes::Bytes;
use lagometer_protocol::HEADER_LEN;
use lagometer_units::Time;
use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::server::NoCallback;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, HandshakeError, Message, ServerHandshake, WebSocket};

use crate::core::{CloseReason, ConnKey, ConnectionSide};

use super::stream::{SecureStream, hang_up, reading_failed, writing_failed};
use super::{Reading, Writing};

/// The most bytes one message may have: a peer may put many frames into it.
const MESSAGE_BYTES: usize = 1 << 20;

/// Kept small, for most connections say little at a time.
const READ_BUFFER_BYTES: usize = 4 << 10;

/// Bytes are written to the stream once so many have been collected, or all
/// there are.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// The gateway's side of a WebSocket.
#[derive(Debug)]
pub(in crate::server) struct WebSocketCarrier {
    state: State,
}

#[derive(Debug)]
enum State {
    Opening(Opening),
    Open(WebSocket<Beneath>),
    /// The handshake failed; the socket is closed already.
    Failed,
}

type Opening = MidHandshake<ServerHandshake<Beneath, NoCallback>>;

/// What the WebSocket runs over.
#[derive(Debug)]
pub(in crate::server) enum Beneath {
    /// TCP as it is.
    Plain(TcpStream),
    /// TLS.
    Secure(Box<SecureStream>),
}

impl WebSocketCarrier {
    /// Begins to be the server of a WebSocket.
    pub(in crate::server) fn accept(beneath: Beneath) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        Self {
            state: State::after(tungstenite::accept_with_config(beneath, Some(config))),
        }
    }

    /// The socket, unless the handshake has failed.
    pub(in crate::server) fn socket(&self) -> Option<&TcpStream> {
        match &self.state {
            State::Opening(opening) => Some(opening.get_ref().get_ref().socket()),
            State::Open(socket) => Some(socket.get_ref().socket()),
            State::Failed => None,
        }
    }

    /// Reads one message, and tells how many bytes it had.
    pub(super) fn read_once(&mut self, take: impl FnOnce(&[u8])) -> (Reading, usize) {
        if let State::Opening(_) = self.state
            && let State::Opening(opening) = std::mem::replace(&mut self.state, State::Failed)
        {
            self.state = State::after(opening.handshake());
        }
        let socket = match &mut self.state {
            State::Opening(_) => return (Reading::Done, 0),
            State::Failed => return (Reading::Ended(CloseReason::TransportFailed), 0),
            State::Open(socket) => socket,
        };
        match socket.read() {
            Ok(Message::Binary(bytes)) => {
                take(&bytes);
                (Reading::More, bytes.len())
            }
            Ok(Message::Text(text)) => {
                take(text.as_bytes());
                (Reading::More, text.len())
            }
            // Pings are answered by the library; a close is followed by the
            // end of the stream.
            Ok(_) => (Reading::More, 0),
            Err(Error::Io(error)) => (reading_failed(&error), 0),
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                (Reading::Ended(CloseReason::PeerClosed), 0)
            }
            Err(_) => (Reading::Ended(CloseReason::BadBytes), 0),
        }
    }

    /// Writes what waits, each frame a message of its own.
    pub(super) fn write(
        &mut self,
        now: Time,
        side: &mut ConnectionSide,
        key: ConnKey,
        scratch: &mut Vec<u8>,
    ) -> Writing {
        let State::Open(socket) = &mut self.state else {
            // The handshake goes on when the peer's part of it arrives.
            return Writing::Done;
        };
        // What was taken before goes first: no more is taken than one outbox.
        if let Err(error) = socket.flush() {
            return failed(now, error, side, key);
        }
        scratch.clear();
        for slice in side.output(key) {
            scratch.extend_from_slice(slice);
        }
        if scratch.is_empty() {
            return Writing::Done;
        }
        side.wrote(now, key, scratch.len());
        let all = Bytes::copy_from_slice(scratch);
        let mut begin = 0;
        while let Some(len) = frame_len(&all[begin..]) {
            let end = (begin + len).min(all.len());
            match socket.write(Message::Binary(all.slice(begin..end))) {
                // The library has taken the message even if the stream did not.
                Ok(()) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return failed(now, error, side, key),
            }
            begin = end;
        }
        match socket.flush() {
            Ok(()) => Writing::Done,
            Err(error) => failed(now, error, side, key),
        }
    }

    pub(super) fn close(mut self, why: CloseReason) {
        if let State::Open(socket) = &mut self.state {
            let code = match why {
                CloseReason::Shutdown => CloseCode::Away,
                CloseReason::BadBytes | CloseReason::BadAuth => CloseCode::Protocol,
                CloseReason::PeerClosed => CloseCode::Normal,
                _ => CloseCode::Policy,
            };
            let _ = socket.close(Some(CloseFrame {
                code,
                reason: why.to_string().into(),
            }));
            let _ = socket.flush();
        }
        if let Some(socket) = self.socket() {
            hang_up(socket);
        }
    }
}

impl State {
    fn after(
        result: Result<WebSocket<Beneath>, HandshakeError<ServerHandshake<Beneath, NoCallback>>>,
    ) -> Self {
        match result {
            Ok(socket) => Self::Open(socket),
            Err(HandshakeError::Interrupted(opening)) => Self::Opening(opening),
            Err(HandshakeError::Failure(_)) => Self::Failed,
        }
    }
}

/// The length of the frame that begins `bytes`, header included.
fn frame_len(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_LEN)?;
    Some(HEADER_LEN + usize::from(u16::from_be_bytes([header[2], header[3]])))
}

fn failed(now: Time, error: Error, side: &mut ConnectionSide, key: ConnKey) -> Writing {
    match error {
        Error::Io(error) => writing_failed(now, &error, side, key),
        _ => Writing::Broken,
    }
}

impl Beneath {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(stream) => &stream.sock,
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
