//! Both ends of a player's transport.

use lagometer_client::stream_transport::{self as peers, StreamTransportError};
use lagometer_client::{Outbox, ReceiveError, Session};
use lagometer_gateway::core::{CloseReason, ConnKey, ConnectionManager};
use lagometer_gateway::stream_transport::{self as gateways, Reading, Writing};
use lagometer_testbed::StreamSocket;
use lagometer_transport::kcp;
use lagometer_transport::tcp::{Stream as Tcp, StreamOptions};
use lagometer_transport::{ByteStream, Closed, State};
use lagometer_units::Time;
use thiserror::Error;

use crate::driver::player_transport::PlayerStream;
use crate::{Peer, PlayerTransport};

/// What the gateway's server lets its kernel hold unsent, as its settings file has
/// it where nothing is set (`tcp.unsent_at_most`).
const UNSENT_AT_MOST: u32 = 128 << 10;

/// One end of a player's transport.
pub(super) enum End<W> {
    /// The frames as they are.
    Stream(Box<dyn ByteStream>),
    /// The frames in the messages of a WebSocket.
    WebSocket(Box<W>),
}

/// The player's end.
pub(super) type Local = End<peers::WebSocketTransport<StreamSocket<Tcp>>>;

/// The gateway's end.
pub(super) type Remote = End<gateways::WebSocketTransport<StreamSocket<Tcp>>>;

/// Either side of a WebSocket over a simulated socket.
pub(super) trait WebSocketEnd {
    /// The socket beneath; none once the handshake has failed.
    fn socket(&mut self) -> Option<&mut StreamSocket<Tcp>>;
}

impl WebSocketEnd for peers::WebSocketTransport<StreamSocket<Tcp>> {
    fn socket(&mut self) -> Option<&mut StreamSocket<Tcp>> {
        self.stream_mut()
    }
}

impl WebSocketEnd for gateways::WebSocketTransport<StreamSocket<Tcp>> {
    fn socket(&mut self) -> Option<&mut StreamSocket<Tcp>> {
        self.stream_mut()
    }
}

/// Why nothing more passes between a player and its end of the transport.
#[derive(Debug, Error)]
pub(super) enum PlayerEndError {
    /// The WebSocket failed.
    #[error(transparent)]
    WebSocket(#[from] StreamTransportError),
    /// The player's session does not take what arrived.
    #[error(transparent)]
    Session(#[from] ReceiveError),
    /// The transport beneath is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The WebSocket's handshake failed.
    #[error("the handshake failed")]
    Handshake,
}

/// Both ends of a connection that begins at `now`. `number` is the
/// conversation's where there are any, and follows no other connection's.
///
/// # Errors
///
/// [`StreamTransportError`] where a handshake cannot begin.
pub(super) fn pair(
    transport: PlayerTransport,
    seed: u64,
    number: u32,
    now: Time,
) -> Result<(Local, Remote), StreamTransportError> {
    let options = |congestion_control| StreamOptions {
        congestion_control,
        no_delay: true,
        not_sent_low_water: None,
    };
    let client = |control| Tcp::client(options(control), seed, now);
    let server = |control| {
        let not_sent_low_water = Some(UNSENT_AT_MOST);
        let options = StreamOptions {
            not_sent_low_water,
            ..options(control)
        };
        Tcp::server(options, seed, now)
    };
    Ok(match transport.stream {
        PlayerStream::Tcp(control) => (
            Local::Stream(Box::new(client(control))),
            Remote::Stream(Box::new(server(control))),
        ),
        PlayerStream::Kcp(profile) => {
            let side = || Box::new(kcp::Stream::new(number, profile, now));
            (Local::Stream(side()), Remote::Stream(side()))
        }
        PlayerStream::WebSocket(control) => {
            let [client, server] = [client(control), server(control)];
            let client = StreamSocket::new(client, now);
            let local = peers::WebSocketTransport::connect(client, "gateway")?;
            let remote = gateways::WebSocketTransport::accept(StreamSocket::new(server, now));
            (
                Local::WebSocket(Box::new(local)),
                Remote::WebSocket(Box::new(remote)),
            )
        }
    })
}

impl<W: WebSocketEnd> End<W> {
    /// The stream beneath; none once a handshake has failed.
    pub(super) fn stream(&mut self) -> Option<&mut dyn ByteStream> {
        Some(match self {
            Self::Stream(stream) => &mut **stream,
            Self::WebSocket(web_socket) => &mut web_socket.socket()?.stream,
        })
    }

    /// Lets a WebSocket know what time it is: reading may make it write.
    fn note_time(&mut self, now: Time) {
        if let Self::WebSocket(web_socket) = self
            && let Some(socket) = web_socket.socket()
        {
            socket.now = now;
        }
    }

    /// Whether reading may have made it write: a handshake, an answer to a
    /// ping.
    pub(super) const fn speaks_by_itself(&self) -> bool {
        matches!(self, Self::WebSocket(_))
    }
}

impl Local {
    /// Hands what has arrived to the player, and says how many bytes that were.
    ///
    /// # Errors
    ///
    /// [`PlayerEndError`] where there will be no more.
    pub(super) fn read(
        &mut self,
        now: Time,
        session: &mut Session,
        peer: &mut Peer,
    ) -> Result<u64, PlayerEndError> {
        let mut bytes_read = 0;
        let mut received = Ok(());
        let mut take = |bytes: &[u8]| {
            bytes_read += bytes.len() as u64;
            if received.is_ok() {
                received = session.receive(bytes, peer);
            }
        };
        self.note_time(now);
        match self {
            Self::Stream(stream) => stream.read(&mut take),
            Self::WebSocket(web_socket) => while web_socket.read(&mut take)? {},
        }
        received?;
        match self.stream().map(|stream| stream.state()) {
            Some(State::Closed(why)) => Err(why.into()),
            None => Err(PlayerEndError::Handshake),
            _ => Ok(bytes_read),
        }
    }

    /// Moves what the player has to say into the stream, and says how many bytes that
    /// were.
    ///
    /// # Errors
    ///
    /// [`PlayerEndError`] where a WebSocket failed.
    pub(super) fn write(&mut self, now: Time, outbox: &mut Outbox) -> Result<u64, PlayerEndError> {
        self.note_time(now);
        let taken = match self {
            Self::Stream(stream) => peers::fill(stream, now, outbox),
            Self::WebSocket(web_socket) => {
                let before = outbox.pending().len();
                web_socket.write(outbox)?;
                before - outbox.pending().len()
            }
        };
        Ok(taken as u64)
    }
}

impl Remote {
    /// Hands what has arrived to the gateway. Why there will be no more, if
    /// there will not.
    pub(super) fn read(
        &mut self,
        now: Time,
        side: &mut ConnectionManager,
        key: ConnKey,
    ) -> Option<CloseReason> {
        self.note_time(now);
        match self {
            Self::Stream(stream) => stream.read(&mut |bytes| side.receive(now, key, bytes)),
            Self::WebSocket(web_socket) => loop {
                match web_socket
                    .read_once(|bytes| side.receive(now, key, bytes))
                    .0
                {
                    Reading::More => {}
                    Reading::Done => break,
                    Reading::Ended(why) => return Some(why),
                }
            },
        }
        match self.stream().map(|stream| stream.state()) {
            Some(State::Closed(_)) | None => Some(CloseReason::TransportFailed),
            _ => None,
        }
    }

    /// Moves what waits for the player into the stream. Whether anything has
    /// to be sent now.
    pub(super) fn write(
        &mut self,
        now: Time,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
    ) -> (bool, Writing) {
        self.note_time(now);
        let (bytes, writing) = match self {
            Self::Stream(stream) => gateways::fill(stream, now, side, key),
            Self::WebSocket(web_socket) => {
                return (true, web_socket.write(now, side, key, scratch));
            }
        };
        (bytes > 0, writing)
    }
}
