//! Frames as WebSocket messages, over any stream that never waits.
//!
//! What comes in is bytes, whatever the messages they come in; what goes out is
//! one frame a message, for there are clients that read no further.

use std::io::{self, Read, Write};

use bytes::Bytes;
use lagometer_protocol::HEADER_LEN;
use lagometer_units::Time;
use tungstenite::error::ProtocolError;
use tungstenite::handshake::MidHandshake;
use tungstenite::handshake::server::NoCallback;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, HandshakeError, Message, ServerHandshake, WebSocket};

use crate::core::{CloseReason, ConnKey, ConnectionManager};

use super::{Reading, Writing, reading_failed, writing_failed};

/// The most bytes one message may have: a peer may put many frames into it.
const MESSAGE_BYTES: usize = 1 << 20;

/// Kept small, for most connections say little at a time.
const READ_BUFFER_BYTES: usize = 4 << 10;

/// Bytes are written to the stream once so many have been collected, or all
/// there are.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Answers to pings are kept for a peer that does not read them only while no more
/// than this waits; then the newest alone is.
const PONG_BYTES: usize = 2 * WRITE_BUFFER_BYTES;

/// The gateway's side of a WebSocket.
#[derive(Debug)]
pub struct WebSocketTransport<S: Read + Write> {
    state: State<S>,
}

#[derive(Debug)]
enum State<S: Read + Write> {
    Opening(Opening<S>),
    Open(WebSocket<S>),
    /// The handshake failed; the socket is closed already.
    Failed,
}

type Opening<S> = MidHandshake<ServerHandshake<S, NoCallback>>;

impl<S: Read + Write> WebSocketTransport<S> {
    /// Begins to be the server of a WebSocket.
    pub fn accept(beneath: S) -> Self {
        Self::accept_with(beneath, MESSAGE_BYTES)
    }

    /// Likewise, of one whose messages have at most so many bytes until
    /// [`allow_long_messages`](Self::allow_long_messages).
    pub fn accept_with(beneath: S, message_bytes: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_write_buffer_size(PONG_BYTES)
            .max_message_size(Some(message_bytes))
            .max_frame_size(Some(message_bytes));
        Self {
            state: State::after(tungstenite::accept_with_config(beneath, Some(config))),
        }
    }

    /// Messages may be as long as those of any peer that has logged in.
    pub fn allow_long_messages(&mut self) {
        if let State::Open(socket) = &mut self.state {
            socket.set_config(|config| {
                config.max_message_size = Some(MESSAGE_BYTES);
                config.max_frame_size = Some(MESSAGE_BYTES);
            });
        }
    }

    /// Whether the handshake is not over yet.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }

    /// The stream beneath, unless the handshake has failed.
    pub fn stream(&self) -> Option<&S> {
        match &self.state {
            State::Opening(opening) => Some(opening.get_ref().get_ref()),
            State::Open(socket) => Some(socket.get_ref()),
            State::Failed => None,
        }
    }

    /// The same, to be changed.
    pub fn stream_mut(&mut self) -> Option<&mut S> {
        match &mut self.state {
            State::Opening(opening) => Some(opening.get_mut().get_mut()),
            State::Open(socket) => Some(socket.get_mut()),
            State::Failed => None,
        }
    }

    /// Reads one message, and returns how many bytes it had.
    pub fn read_once(&mut self, take: impl FnOnce(&[u8])) -> (Reading, usize) {
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
            // A client that is killed, or of a library that only hangs up, has no
            // goodbye: it has gone all the same.
            Err(
                Error::ConnectionClosed
                | Error::AlreadyClosed
                | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
            ) => (Reading::Ended(CloseReason::PeerClosed), 0),
            Err(_) => (Reading::Ended(CloseReason::BadBytes), 0),
        }
    }

    /// Writes what waits, each frame a message of its own.
    pub fn write(
        &mut self,
        now: Time,
        side: &mut ConnectionManager,
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
        // An outbox is taken whole: what waits of it is limited elsewhere.
        socket.set_config(|config| config.max_write_buffer_size = usize::MAX);
        let written = write_frames(socket, &all);
        socket.set_config(|config| config.max_write_buffer_size = PONG_BYTES);
        match written.and_then(|()| socket.flush()) {
            Ok(()) => Writing::Done,
            Err(error) => failed(now, error, side, key),
        }
    }

    /// Says why the gateway closes, if the handshake is over.
    pub fn say_goodbye(&mut self, why: CloseReason) {
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
    }
}

impl<S: Read + Write> State<S> {
    fn after(result: Result<WebSocket<S>, HandshakeError<ServerHandshake<S, NoCallback>>>) -> Self {
        match result {
            Ok(socket) => Self::Open(socket),
            Err(HandshakeError::Interrupted(opening)) => Self::Opening(opening),
            Err(HandshakeError::Failure(_)) => Self::Failed,
        }
    }
}

/// Writes frames, each a message of its own.
fn write_frames<S: Read + Write>(socket: &mut WebSocket<S>, all: &Bytes) -> Result<(), Error> {
    let mut begin = 0;
    while let Some(len) = frame_len(&all[begin..]) {
        let end = (begin + len).min(all.len());
        match socket.write(Message::Binary(all.slice(begin..end))) {
            // The library has taken the message even if the stream did not.
            Ok(()) => {}
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        begin = end;
    }
    Ok(())
}

/// The length of the frame that begins `bytes`, header included.
fn frame_len(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_LEN)?;
    Some(HEADER_LEN + usize::from(u16::from_be_bytes([header[2], header[3]])))
}

fn failed(now: Time, error: Error, side: &mut ConnectionManager, key: ConnKey) -> Writing {
    match error {
        Error::Io(error) => writing_failed(now, &error, side, key),
        _ => Writing::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    /// A client that sends pings of a hundred bytes, and reads or does not.
    struct Pinging {
        request: &'static [u8],
        sent_bytes: usize,
        reads: bool,
        written_bytes: usize,
    }

    impl Read for Pinging {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if !self.request.is_empty() {
                return self.request.read(buffer);
            }
            // Masked with zeros.
            let ping = [&[0x89, 0x80 | 0x64, 0, 0, 0, 0][..], &[7; 100]].concat();
            let rest = &ping[self.sent_bytes % ping.len()..];
            let bytes = buffer.len().min(rest.len());
            buffer[..bytes].copy_from_slice(&rest[..bytes]);
            self.sent_bytes += bytes;
            Ok(bytes)
        }
    }

    impl Write for Pinging {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.reads {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.written_bytes += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pings_of_one_who_does_not_read_the_answers_are_not_all_answered() {
        let client = Pinging {
            request: REQUEST,
            sent_bytes: 0,
            reads: true,
            written_bytes: 0,
        };
        let mut transport = WebSocketTransport::accept(client);
        transport.read_once(|_| ());
        assert!(!transport.is_opening());
        transport.stream_mut().unwrap().reads = false;
        for _ in 0..100_000 {
            assert_eq!(transport.read_once(|_| ()).0, Reading::More);
        }
        let stream = transport.stream_mut().unwrap();
        (stream.reads, stream.written_bytes) = (true, 0);
        transport.read_once(|_| ());
        let kept = transport.stream().unwrap().written_bytes;
        assert!(kept > 100 && kept <= PONG_BYTES + 1000, "{kept} bytes");
    }
}
