//! How a gateway ends: nobody new, then the clients, then the servers, who are notified
//! of each client that it has gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lagometer_units::Time;
use tracing::info;

use crate::core::{CloseReason, ConnKey, Peer};

use super::ConnectionLoop;

/// How long servers are still sent that clients have gone after the last has: it
/// passes through two threads.
const LAST_NEWS: Duration = Duration::from_millis(100);

/// How often it is looked whether all have gone.
const LOOK: Duration = Duration::from_millis(5);

/// How far the end has come.
#[derive(Debug)]
pub(super) struct Drain {
    /// Until then clients may go by themselves.
    grace_until: Time,
    /// Then it ends, whoever is left.
    give_up_at: Time,
    clients_asked: bool,
    /// When no client was left.
    empty_since: Option<Time>,
    servers_asked: bool,
    look_at: Time,
}

impl Drain {
    pub(super) fn next_deadline(&self) -> Time {
        self.look_at
    }
}

impl ConnectionLoop {
    /// Nobody is accepted any more, and those inside are asked to go.
    pub(super) fn begin_to_drain(&mut self, now: Time) {
        if self.drain.is_some() {
            return;
        }
        info!(connections = self.sockets.len(), "draining");
        self.listeners.clear();
        self.accept_again_at = None;
        let grace_until = now + self.config.grace;
        self.drain = Some(Drain {
            grace_until,
            give_up_at: grace_until + self.config.drain_within,
            clients_asked: false,
            empty_since: None,
            servers_asked: false,
            look_at: now,
        });
    }

    /// Goes on with the end. Returns whether it has come.
    pub(super) fn drained(&mut self, now: Time) -> bool {
        let Some(drain) = &mut self.drain else {
            return false;
        };
        drain.look_at = now + LOOK;
        let all_clients_gone = self.shared.clients.load(Ordering::SeqCst) == 0;
        if now < drain.grace_until && !all_clients_gone {
            return false;
        }
        if now >= drain.give_up_at {
            return true;
        }
        if !drain.clients_asked {
            drain.clients_asked = true;
            for key in self.keys(Some(Peer::Client)) {
                self.end(now, key, CloseReason::Shutdown);
            }
            return false;
        }
        if !all_clients_gone {
            return false;
        }
        let since = *drain.empty_since.get_or_insert(now);
        if now.since(since) < LAST_NEWS {
            return false;
        }
        let all_written = self
            .sockets
            .iter()
            .all(|socket| self.side.waiting(socket.key) == 0);
        if all_written && !drain.servers_asked {
            drain.servers_asked = true;
            for key in self.keys(Some(Peer::Server)) {
                self.end(now, key, CloseReason::Shutdown);
            }
        }
        self.sockets.len() == 0
    }

    /// Ends all connections that are left.
    pub(super) fn end_all(&mut self, now: Time) {
        for key in self.keys(None) {
            self.end(now, key, CloseReason::Shutdown);
        }
    }

    fn keys(&self, peer: Option<Peer>) -> Vec<ConnKey> {
        self.sockets
            .iter()
            .filter(|socket| peer.is_none_or(|peer| socket.peer == peer))
            .map(|socket| socket.key)
            .collect()
    }
}
