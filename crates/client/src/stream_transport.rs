//! How a session's bytes go over what carries them, without sockets: TCP takes
//! them as they are, and so does KCP; WebSocket wants messages.

use std::io::{self, ErrorKind, Read, Write};

use lagometer_transport::ByteStream;
use lagometer_units::Time;
use thiserror::Error;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::handshake::MidHandshake;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{ClientHandshake, HandshakeError, Message, WebSocket};

use crate::outbox::Outbox;

/// The most bytes that go into one message; gateways take more.
const MESSAGE_BYTES: usize = 64 << 10;

/// The most that a gateway's message may have.
const MOST_MESSAGE_BYTES: usize = 1 << 20;

/// Kept small, for there may be thousands.
const READ_BUFFER_BYTES: usize = 4 << 10;

/// Why a transport carries nothing any more.
#[derive(Debug, Error)]
pub enum StreamTransportError {
    /// The stream beneath failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The gateway closed it.
    #[error("the gateway has closed the connection")]
    Closed,
    /// What came is no WebSocket.
    #[error("not a WebSocket: {0}")]
    NotWebSocket(String),
}

/// Moves what waits to be sent into `stream`, as far as there is room, and
/// says how many bytes that were. Sending them is the caller's.
pub fn fill(stream: &mut impl ByteStream, now: Time, outbox: &mut Outbox) -> usize {
    let taken = stream.write(now, outbox.pending());
    outbox.sent(taken);
    taken
}

/// The peer's side of a WebSocket over any stream that never waits.
#[derive(Debug)]
pub struct WebSocketTransport<S: Read + Write> {
    state: State<S>,
}

#[derive(Debug)]
enum State<S: Read + Write> {
    Opening(MidHandshake<ClientHandshake<S>>),
    Open(Box<WebSocket<S>>),
    /// The handshake failed, and has said how.
    Failed,
}

impl<S: Read + Write> WebSocketTransport<S> {
    /// Begins the handshake with the gateway at `host`, a name or an address
    /// with a port.
    ///
    /// # Errors
    ///
    /// [`StreamTransportError`] when the stream fails or `host` can be none.
    pub fn connect(beneath: S, host: &str) -> Result<Self, StreamTransportError> {
        let request = format!("ws://{host}/")
            .into_client_request()
            .map_err(|error| StreamTransportError::NotWebSocket(error.to_string()))?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(Some(MOST_MESSAGE_BYTES))
            .max_frame_size(Some(MOST_MESSAGE_BYTES));
        let begun = tungstenite::client::client_with_config(request, beneath, Some(config));
        Ok(Self {
            state: State::after(begun.map(|(socket, _)| socket))?,
        })
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

    /// Reads one message and hands it to `take`. Whether there may be more.
    ///
    /// # Errors
    ///
    /// [`StreamTransportError`].
    pub fn read(&mut self, take: impl FnOnce(&[u8])) -> Result<bool, StreamTransportError> {
        let Some(socket) = self.open()? else {
            return Ok(false);
        };
        match socket.read() {
            Ok(Message::Binary(bytes)) => take(&bytes),
            Ok(Message::Text(text)) => take(text.as_bytes()),
            // Pings are answered by the library; a close is followed by the
            // end of the stream.
            Ok(_) => {}
            Err(error) => return if_not_now(error).map(|()| false),
        }
        Ok(true)
    }

    /// Sends what waits; during the handshake it waits on, for that goes on
    /// with what arrives. Whether the stream had room for all there was to
    /// write.
    ///
    /// # Errors
    ///
    /// [`StreamTransportError`].
    pub fn write(&mut self, outbox: &mut Outbox) -> Result<bool, StreamTransportError> {
        let Some(socket) = self.open()? else {
            return Ok(true);
        };
        // What was taken before goes first: no more is taken than one outbox.
        if let Err(error) = socket.flush() {
            return if_not_now(error).map(|()| false);
        }
        let pending = outbox.pending();
        let bytes = pending.len();
        for message in pending.chunks(MESSAGE_BYTES) {
            // The library has taken the message even if the stream did not.
            if let Err(error) = socket.write(Message::binary(message.to_vec())) {
                if_not_now(error)?;
            }
        }
        outbox.sent(bytes);
        match socket.flush() {
            Ok(()) => Ok(true),
            Err(error) => if_not_now(error).map(|()| false),
        }
    }

    /// The socket, once the handshake is over.
    fn open(&mut self) -> Result<Option<&mut WebSocket<S>>, StreamTransportError> {
        if let State::Opening(_) = self.state
            && let State::Opening(opening) = std::mem::replace(&mut self.state, State::Failed)
        {
            self.state = State::after(opening.handshake().map(|(socket, _)| socket))?;
        }
        match &mut self.state {
            State::Opening(_) => Ok(None),
            State::Open(socket) => Ok(Some(socket)),
            State::Failed => Err(StreamTransportError::Closed),
        }
    }
}

impl<S: Read + Write> State<S> {
    fn after(
        result: Result<WebSocket<S>, HandshakeError<ClientHandshake<S>>>,
    ) -> Result<Self, StreamTransportError> {
        match result {
            Ok(socket) => Ok(Self::Open(Box::new(socket))),
            Err(HandshakeError::Interrupted(opening)) => Ok(Self::Opening(opening)),
            Err(HandshakeError::Failure(error)) => Err(transport_error(error)),
        }
    }
}

/// Passes over that a stream has nothing, or no room, just now.
fn if_not_now(error: tungstenite::Error) -> Result<(), StreamTransportError> {
    match error {
        tungstenite::Error::Io(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
        {
            Ok(())
        }
        error => Err(transport_error(error)),
    }
}

fn transport_error(error: tungstenite::Error) -> StreamTransportError {
    match error {
        tungstenite::Error::Io(error) => StreamTransportError::Io(error),
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => {
            StreamTransportError::Closed
        }
        error => StreamTransportError::NotWebSocket(error.to_string()),
    }
}
