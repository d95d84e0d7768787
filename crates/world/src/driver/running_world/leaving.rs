//! The end of a world: everybody leaves, and takes along what was made.

use std::time::Duration;

use lagometer_client::Outbox;

use super::{POLL_TIME, Peer, RunningWorld};
use crate::driver::backend::ConnectionBackend;
use crate::server::Server;

/// How long each step of leaving may take. A gateway that is too busy for it is
/// left as it is: the next world removes what is still there.
const WITHIN: Duration = Duration::from_secs(1);

/// How long a gateway's channels are given to notice, each at its own tick,
/// that players are gone: several of the longest ticks in use.
const NOTICED_AFTER: Duration = Duration::from_millis(150);

impl<W: ConnectionBackend> RunningWorld<'_, W> {
    /// Players hang up; then servers remove the channels they have made; then
    /// they take their leave, so that nothing is kept for their return.
    ///
    /// In this order nobody speaks to a channel that is being removed.
    pub(super) fn leave(&mut self) {
        self.each_server(|server, _| server.begin_to_leave());
        for &id in self.players.values() {
            self.backend.hang_up(id);
        }
        self.linger(WITHIN, |server| !server.has_players());
        self.linger(NOTICED_AFTER, |_| false);
        self.each_server(Server::take_away);
        self.linger(WITHIN, Server::has_taken_away);
        self.each_server(|server, outbox| {
            if let Some(conn_id) = server.conn_id() {
                // Without room for it, it hangs up like anybody else.
                let _ = outbox.disconnect(conn_id);
            }
        });
        // Until the gateway has closed their connections.
        self.linger(WITHIN, |_| false);
    }

    /// Has each server that is still there do something, and say it.
    fn each_server(&mut self, mut act: impl FnMut(&mut Server, &mut Outbox)) {
        for &id in self.servers.values() {
            if let Some((Peer::Server(server), outbox)) = self.backend.peer(id) {
                act(server, outbox);
            }
            self.backend.flush(id);
        }
    }

    /// Serves the connections until `is_done` of all servers that are still
    /// there, but for no longer than `within`.
    fn linger(&mut self, within: Duration, is_done: impl Fn(&Server) -> bool) {
        let began = self.now();
        while !self.servers().all(&is_done) && self.now().since(began) < within {
            // Whoever cannot be served any more is gone already.
            if self.backend.poll(POLL_TIME).is_err() {
                return;
            }
            self.clock.set(self.now());
            while self.backend.take_ended().is_some() {}
        }
    }
}
