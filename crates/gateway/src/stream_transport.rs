//! How a connection's bytes go over what carries them, without sockets: the
//! parts that a server and a gateway in virtual time share.

mod websocket;

use std::io::{self, ErrorKind};

use lagometer_transport::ByteStream;
use lagometer_units::Time;

use crate::core::{CloseReason, ConnKey, ConnectionManager};

pub use websocket::WebSocketTransport;

/// How a reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing more has arrived, or the poller will report the rest.
    Done,
    /// There may be more, of which the poller does not know.
    More,
    /// The peer has gone, or the connection is broken.
    Ended(CloseReason),
}

/// How a writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// All was taken.
    Done,
    /// There is no more room now.
    Blocked,
    /// The connection is broken.
    Broken,
}

/// Moves what waits for a connection into `stream`, as far as there is room,
/// and says how many bytes that were. Sending them is the caller's.
pub fn fill(
    stream: &mut impl ByteStream,
    now: Time,
    side: &mut ConnectionManager,
    key: ConnKey,
) -> (usize, Writing) {
    let mut taken = 0;
    let mut writing = Writing::Done;
    for slice in side.output(key) {
        let written = stream.write(now, slice);
        taken += written;
        if written < slice.len() {
            writing = Writing::Blocked;
            break;
        }
    }
    side.wrote(now, key, taken);
    (taken, writing)
}

/// What a failed reading means.
pub(crate) fn reading_failed(error: &io::Error) -> Reading {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Reading::Done,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
            Reading::Ended(CloseReason::PeerClosed)
        }
        _ => Reading::Ended(CloseReason::TransportFailed),
    }
}

/// What a failed writing means. The connection manager is notified that nothing went, so that
/// it knows since when nothing has.
pub(crate) fn writing_failed(
    now: Time,
    error: &io::Error,
    side: &mut ConnectionManager,
    key: ConnKey,
) -> Writing {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => {
            side.wrote(now, key, 0);
            Writing::Blocked
        }
        _ => Writing::Broken,
    }
}
