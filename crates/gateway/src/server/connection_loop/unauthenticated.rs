//! Those who have not logged in, and the share of a turn that they have together.
//!
//! Whoever connects and logs in without end keeps its loop as busy as it likes.
//! So that players do not wait for it, those who have logged in are read first,
//! and everybody else, with the accepting of connections and the handshakes of
//! TLS, has [`AT_MOST`] of each turn: who finds no time in it has the first turn
//! next time.

use std::time::Duration;

use lagometer_units::Time;

use crate::core::Peer;

use super::ConnectionLoop;

/// How long a turn serves those who have not logged in, all together. What it has
/// begun it ends, which may be a millisecond longer; of each kind it begins one.
const AT_MOST: Duration = Duration::from_millis(2);

impl ConnectionLoop {
    /// Reads those who have not logged in, and accepts those who wait at the
    /// listeners, game servers first. Neither keeps the other from its half.
    pub(super) fn serve_unauthenticated(&mut self, now: Time, listeners: &[usize]) {
        if listeners.is_empty() && self.unread_unauthenticated.is_empty() {
            return;
        }
        let begun = self.shared.clock.now();
        let until = begun + AT_MOST;
        self.read_unauthenticated(now, begun + AT_MOST / 2);
        for peer in [Peer::Server, Peer::Client] {
            for &index in listeners {
                if (self.listeners.get(index)).is_some_and(|listener| listener.peer == peer) {
                    self.accept(now, index, until);
                }
            }
        }
        if self.shared.clock.now() < until {
            self.read_unauthenticated(now, until);
        }
    }

    /// Reads those that were listed, in the order they were listed, at least one,
    /// until then.
    fn read_unauthenticated(&mut self, now: Time, until: Time) {
        for _ in 0..self.unread_unauthenticated.len() {
            if self.bus.is_full() {
                return;
            }
            let Some(key) = self.unread_unauthenticated.pop_front() else {
                return;
            };
            if let Some(socket) = self.sockets.get(key) {
                socket.is_listed = false;
                self.read(now, key.slot());
            }
            if self.shared.clock.now() >= until {
                return;
            }
        }
    }
}
