//! What carries one connection's bytes: TCP, TLS over it, WebSocket over
//! either, or a KCP conversation.
//!
//! All of them are asked in the same two ways, and none ever waits: hand over
//! what has arrived, and take as much of the outbox as there is room for.

mod holding;
mod kcp;
mod metered;
mod stream;
mod tls;
mod units;
mod websocket;

pub(super) use kcp::{KcpCounters, KcpEvent, KcpPort, KcpSession, Unproven};
pub(super) use metered::Metered;
pub(super) use stream::{SecureStream, TcpOptions, tcp_options, try_congestion_control};
pub use tls::TlsError;
pub(super) use tls::TlsIdentity;
pub(super) use units::UnitCounter;
pub(super) use websocket::{Beneath, WebSocketOverSocket};

use std::io;
use std::net::TcpStream;

use lagometer_units::Time;

use crate::core::{CloseReason, ConnKey, ConnectionManager};
use crate::stream_transport::fill;
pub(super) use crate::stream_transport::{Reading, Writing};

use super::intake::Intake;

/// One connection's transport.
#[derive(Debug)]
pub(super) enum StreamTransport {
    /// The frames as they are.
    Tcp(TcpStream),
    /// The frames in TLS.
    Tls(Box<SecureStream>),
    /// A frame a message.
    WebSocket(Box<WebSocketOverSocket>),
    /// Over a UDP socket that many share.
    Kcp(Box<KcpSession>),
}

impl StreamTransport {
    /// The socket to watch, if it has one of its own.
    pub(super) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.sock.socket()),
            Self::WebSocket(stream) => Some(stream.stream()?.metered().socket()),
            Self::Kcp(_) => None,
        }
    }

    /// The server's side of a WebSocket, whose messages have at most so many
    /// bytes until [`authenticated`](Self::authenticated).
    pub(super) fn websocket(beneath: Beneath, message_bytes: usize) -> Self {
        let stream = WebSocketOverSocket::accept_with(beneath, message_bytes);
        Self::WebSocket(Box::new(stream))
    }

    /// The peer has logged in: it may send what others may.
    pub(super) fn authenticated(&mut self) {
        self.allow_in_all(usize::MAX);
        match self {
            Self::WebSocket(stream) => stream.allow_long_messages(),
            Self::Kcp(session) => session.authenticated(),
            Self::Tcp(_) | Self::Tls(_) => {}
        }
    }

    /// Takes in what has arrived, through `buffer`, as far as the connection's
    /// share of the turn goes.
    pub(super) fn read(&mut self, intake: &mut Intake<'_>, buffer: &mut [u8]) -> Reading {
        let share = intake.bytes_left();
        match self {
            Self::Tcp(stream) => {
                let most = share.min(buffer.len());
                stream::read_socket(stream, &mut buffer[..most], |bytes| intake.take(bytes))
            }
            Self::Tls(stream) => {
                stream.sock.allow(share);
                let reading = read_share(intake, |intake| {
                    let take = |bytes: &[u8]| intake.take(bytes);
                    let (reading, bytes) = stream::read_once(stream.as_mut(), buffer, take);
                    if bytes > 0 {
                        stream.sock.settle();
                    }
                    intake.note_transport(stream.sock.read_since());
                    reading
                });
                more_if_used_up(reading, &stream.sock)
            }
            Self::WebSocket(stream) => {
                if let Some(beneath) = stream.stream_mut() {
                    beneath.allow(share);
                }
                let reading = read_share(intake, |intake| {
                    let (reading, bytes) = stream.read_once(|bytes| intake.take(bytes));
                    if let Some(beneath) = stream.stream_mut() {
                        if bytes > 0 {
                            beneath.metered_mut().settle();
                        }
                        intake.note_transport(beneath.read_since());
                    }
                    reading
                });
                match stream.stream() {
                    Some(beneath) => more_if_used_up(reading, beneath.metered()),
                    None => reading,
                }
            }
            Self::Kcp(session) => session.read(|bytes| intake.take(bytes)),
        }
    }

    /// Writes what waits for the connection, as far as there is room.
    pub(super) fn write(
        &mut self,
        now: Time,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
    ) -> Writing {
        match self {
            Self::Tcp(stream) => stream::write_shared(now, stream, side, key),
            Self::Tls(stream) => stream::write_secure(now, stream, side, key),
            Self::WebSocket(stream) => stream.write(now, side, key, scratch),
            Self::Kcp(session) => session.write(now, side, key),
        }
    }

    /// Says goodbye where the transport has a word for it, and closes.
    pub(super) fn close(self, why: CloseReason) {
        match self {
            Self::Tcp(stream) => stream::hang_up(&stream),
            Self::Tls(mut stream) => {
                stream.conn.send_close_notify();
                let _ = io::Write::flush(&mut *stream);
                stream::hang_up(stream.sock.socket());
            }
            Self::WebSocket(mut stream) => {
                stream.say_goodbye(why);
                if let Some(beneath) = stream.stream() {
                    stream::hang_up(beneath.metered().socket());
                }
            }
            // KCP has no goodbye.
            Self::Kcp(_) => {}
        }
    }
}

/// Reads until nothing more has arrived or the connection has had its share.
fn read_share(
    intake: &mut Intake<'_>,
    mut read: impl FnMut(&mut Intake<'_>) -> Reading,
) -> Reading {
    loop {
        match read(intake) {
            Reading::More if !intake.is_full() => {}
            other => return other,
        }
    }
}

/// Where nothing more came because no more was allowed, there may be more.
fn more_if_used_up(reading: Reading, socket: &Metered) -> Reading {
    match reading {
        Reading::Done if socket.is_used_up() => Reading::More,
        other => other,
    }
}
