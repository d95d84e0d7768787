//! Reading from connections, writing to them, and letting them go.

use std::sync::atomic::Ordering;

use lagometer_units::Time;

use crate::core::{CloseReason, ConnKey, Peer};
use crate::server::carrier::{Carrier, Reading, Writing};
use crate::server::poller::{Interest, Ready};
use crate::server::sockets::Socket;

use super::ConnectionLoop;

impl ConnectionLoop {
    /// Does what the poller says can be done for a connection.
    pub(super) fn take_event(&mut self, now: Time, slot: usize, event: Ready, may_read: bool) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let told_once = socket.interest == Interest::Edges;
        if event.writable && socket.blocked {
            self.write(now, slot);
        }
        if !event.readable {
            return;
        }
        if may_read {
            self.read(now, slot);
        }
        // What was left, and the end behind it, nobody tells of again.
        if told_once && (event.ended || !may_read) && self.sockets.at(slot).is_some() {
            self.unread.push(slot);
        }
    }

    /// Reads what has arrived for a connection.
    pub(super) fn read(&mut self, now: Time, slot: usize) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let key = socket.key;
        // Counting costs; it is done only where it matters.
        let before = socket
            .pass
            .is_metered()
            .then(|| taken_in(self.side.counters().of(socket.peer)));
        let reading = socket
            .carrier
            .read(now, &mut self.side, key, &mut self.buffer);
        let too_many = before.is_some_and(|before| {
            let after = taken_in(self.side.counters().of(socket.peer));
            socket.pass.sent(now, after - before)
        });
        match reading {
            Reading::Ended(why) => self.end(now, key, why),
            _ if too_many => self.end(now, key, CloseReason::TooFast),
            Reading::More => self.unread.push(slot),
            Reading::Done => {}
        }
    }

    /// Writes what waits for a connection that has room again.
    pub(super) fn write(&mut self, now: Time, slot: usize) {
        let Some(socket) = self.sockets.at(slot) else {
            return;
        };
        let key = socket.key;
        let writing = socket
            .carrier
            .write(now, &mut self.side, key, &mut self.scratch);
        socket.blocked = writing == Writing::Blocked;
        if writing == Writing::Broken {
            self.end(now, key, CloseReason::TransportFailed);
            return;
        }
        let interest = match socket.interest {
            Interest::Edges => Interest::Edges,
            _ if socket.blocked => Interest::ReadWrite,
            _ => Interest::Read,
        };
        let note_kcp = matches!(socket.carrier, Carrier::Kcp(_));
        if let Some(watched) = socket.carrier.socket()
            && socket.interest != interest
            && self.poller.change(watched, slot as u64, interest).is_ok()
        {
            socket.interest = interest;
        }
        if note_kcp {
            self.note_kcp(now, slot);
        }
    }

    /// Writes to all that there is something new for, save those that have no
    /// room: the poller tells when they have.
    pub(super) fn flush(&mut self, now: Time) {
        while let Some(key) = self.side.poll_writable() {
            if let Some(socket) = self.sockets.get(key)
                && !socket.blocked
            {
                self.write(now, key.slot());
            }
        }
    }

    /// Lets those go that the core wants to be rid of.
    pub(super) fn close_those_to_go(&mut self, now: Time) {
        while let Some((key, why)) = self.side.poll_close() {
            self.end(now, key, why);
        }
    }

    /// Writes once more, closes, and tells the core.
    pub(super) fn end(&mut self, now: Time, key: ConnKey, why: CloseReason) {
        let Some(socket) = self.sockets.remove(key) else {
            return;
        };
        let Socket {
            mut carrier, peer, ..
        } = *socket;
        if why != CloseReason::PeerClosed && why != CloseReason::TransportFailed {
            carrier.write(now, &mut self.side, key, &mut self.scratch);
        }
        self.forget_kcp(&carrier, key);
        if let Some(watched) = carrier.socket() {
            // Closing does the same if this fails.
            let _ = self.poller.remove(watched);
        }
        carrier.close(why);
        self.side.close(key, why);
        self.shared.loads[self.number].fetch_sub(1, Ordering::Relaxed);
        if peer == Peer::Client {
            self.shared.clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Messages that have come, whether or not they were allowed.
fn taken_in(counters: &crate::core::PeerCounters) -> u64 {
    counters.messages_in + counters.refused
}
