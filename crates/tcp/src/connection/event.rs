//! What happened to a connection, as its application polls it.

use super::Connection;
use crate::state::CloseReason;

/// What the application may want to know; each is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over.
    Connected,
    /// There are bytes to read.
    Readable,
    /// A write that had no room may be tried again.
    Writable,
    /// The peer sends no more; what it sent may still be read.
    PeerFinished,
    /// It is over.
    Closed(CloseReason),
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one half"
)]
pub(super) struct Events {
    pub(super) connected: bool,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) peer_finished: bool,
    pub(super) closed: bool,
}

impl Connection {
    /// What happened since the last call, one event at a time.
    pub fn poll_event(&mut self) -> Option<Event> {
        let events = &mut self.events;
        if std::mem::take(&mut events.connected) {
            return Some(Event::Connected);
        }
        if std::mem::take(&mut events.readable) {
            return Some(Event::Readable);
        }
        if std::mem::take(&mut events.peer_finished) {
            return Some(Event::PeerFinished);
        }
        if std::mem::take(&mut events.writable) {
            return Some(Event::Writable);
        }
        if std::mem::take(&mut events.closed) {
            return self.reason.map(Event::Closed);
        }
        None
    }
}
