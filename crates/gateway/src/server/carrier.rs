//! What carries one connection's bytes: TCP, TLS over it, WebSocket over
//! either, or a KCP conversation.
//!
//! All of them are asked in the same two ways, and none ever waits: hand over
//! what has arrived, and take as much of the outbox as there is room for.

mod kcp;
mod stream;
mod tls;
mod websocket;

pub(super) use kcp::{KcpCounters, KcpEvent, KcpPort, KcpSession, Unproven};
pub(super) use stream::{SecureStream, TcpOptions, tcp_options, try_congestion_control};
pub use tls::TlsError;
pub(super) use tls::TlsIdentity;
pub(super) use websocket::{Beneath, WebSocketOverSocket};

use std::io;
use std::net::TcpStream;

use lagometer_units::Time;

use crate::carrier::fill;
pub(super) use crate::carrier::{Reading, Writing};
use crate::core::{CloseReason, ConnKey, ConnectionSide};

/// How much one reading takes at most before others have their turn.
const FAIR_SHARE_BYTES: usize = 256 << 10;

/// One connection's carrier.
#[derive(Debug)]
pub(super) enum Carrier {
    /// The frames as they are.
    Tcp(TcpStream),
    /// The frames in TLS.
    Tls(Box<SecureStream>),
    /// A frame a message.
    WebSocket(Box<WebSocketOverSocket>),
    /// Over a UDP socket that many share.
    Kcp(Box<KcpSession>),
}

impl Carrier {
    /// The socket to watch, if it has one of its own.
    pub(super) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(&stream.sock),
            Self::WebSocket(stream) => stream.stream().map(Beneath::socket),
            Self::Kcp(_) => None,
        }
    }

    /// Hands what has arrived to the connection side, through `buffer`.
    pub(super) fn read(
        &mut self,
        now: Time,
        side: &mut ConnectionSide,
        key: ConnKey,
        buffer: &mut [u8],
    ) -> Reading {
        match self {
            Self::Tcp(stream) => stream::read_socket(stream, buffer, |bytes| {
                side.receive(now, key, bytes);
            }),
            Self::Tls(stream) => read_fair_share(|| {
                stream::read_once(stream.as_mut(), buffer, |bytes| {
                    side.receive(now, key, bytes);
                })
            }),
            Self::WebSocket(stream) => {
                read_fair_share(|| stream.read_once(|bytes| side.receive(now, key, bytes)))
            }
            Self::Kcp(session) => session.read(|bytes| side.receive(now, key, bytes)),
        }
    }

    /// Writes what waits for the connection, as far as there is room.
    pub(super) fn write(
        &mut self,
        now: Time,
        side: &mut ConnectionSide,
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

    /// Says goodbye where the carrier has a word for it, and closes.
    pub(super) fn close(self, why: CloseReason) {
        match self {
            Self::Tcp(stream) => stream::hang_up(&stream),
            Self::Tls(mut stream) => {
                stream.conn.send_close_notify();
                let _ = io::Write::flush(&mut *stream);
                stream::hang_up(&stream.sock);
            }
            Self::WebSocket(mut stream) => {
                stream.say_goodbye(why);
                if let Some(socket) = stream.stream().map(Beneath::socket) {
                    stream::hang_up(socket);
                }
            }
            // KCP has no goodbye.
            Self::Kcp(_) => {}
        }
    }
}

/// Reads until nothing more has arrived or others have waited long enough.
fn read_fair_share(mut read: impl FnMut() -> (Reading, usize)) -> Reading {
    let mut total = 0;
    loop {
        match read() {
            (Reading::More, bytes) => total += bytes,
            (ended, _) => return ended,
        }
        if total >= FAIR_SHARE_BYTES {
            return Reading::More;
        }
    }
}
