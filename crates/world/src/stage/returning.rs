//! Connections that break off, and their return.
//!
//! A player that has lost its connection comes back as a new one of the same
//! number, as players do. A server comes back knowing nothing, as after a
//! crash: what it had, the gateway tells it, or it begins anew where the
//! gateway knows nothing either, and its players, whom it does not answer any
//! more, ask it to play again.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lagometer_client::Settings;
use lagometer_units::Time;

use super::agenda::Duty;
use super::{PATIENCE, Peer, Stage};
use crate::player::Player;
use crate::server::Server;
use crate::wires::{End, PeerId, PlayError, Wires};

/// From a connection's end to the attempt to open another.
const RETURN_AFTER: Duration = Duration::from_millis(500);

impl<W: Wires> Stage<'_, W> {
    /// Notes who has lost the connection, and lets them come back.
    pub(super) fn bury(&mut self) -> Result<(), PlayError> {
        while let Some((peer, reason)) = self.wires.take_ended() {
            let now = self.now();
            match peer {
                Peer::Player(player) => {
                    self.tally.lose(reason);
                    if self.wires.may_return() {
                        let again = Duty::Return(player.number());
                        self.agenda.add(now + RETURN_AFTER, again);
                    }
                }
                Peer::Server(server) if self.wires.may_return() => {
                    self.lose_server(server, reason, now);
                }
                Peer::Server(_) => return Err(PlayError::ServerLost(reason)),
            }
        }
        Ok(())
    }

    fn lose_server(&mut self, mut server: Server, reason: String, now: Time) {
        let Self {
            servers,
            wires,
            absent,
            ..
        } = self;
        let is_gone =
            |(nth, id): &(&u32, &PeerId)| wires.peer(**id).is_none() && !absent.contains_key(*nth);
        let Some(number) = servers.iter().find(is_gone).map(|(nth, _)| *nth) else {
            return;
        };
        self.retired += server.counts();
        self.tally.claims(server.take_claims());
        let simulating = Server::simulating(&self.scenario, number);
        self.tally.lose_server(simulating, now);
        self.absent.insert(number, (now, reason));
        self.agenda.add(now + RETURN_AFTER, Duty::Revive(number));
    }

    /// A server comes back, knowing nothing.
    pub(super) fn revive(&mut self, number: u32) -> Result<(), PlayError> {
        let Some((since, reason)) = self.absent.get(&number).cloned() else {
            return Ok(());
        };
        let now = self.now();
        let mut all = Server::all(&self.scenario, &self.clock).into_iter();
        let Some(mut server) = all.nth(number as usize) else {
            return Ok(());
        };
        if self.frozen {
            server.freeze();
        }
        let simulates = server.simulates();
        match self.connect_server(server) {
            Ok(id) => {
                self.servers.insert(number, id);
                self.absent.remove(&number);
                self.tally.return_server();
                if simulates {
                    let frame = self.scenario.server_frame();
                    self.agenda.add(now + frame, Duty::ServerFrame(number));
                }
            }
            Err(_) if now.since(since) < PATIENCE => {
                self.agenda.add(now + RETURN_AFTER, Duty::Revive(number));
            }
            Err(_) => return Err(PlayError::ServerLost(reason)),
        }
        Ok(())
    }

    /// A player comes back; it tries again as long as the servers do.
    pub(super) fn come_back(&mut self, number: u32) {
        let now = self.now();
        if let Ok(id) = self.connect_player(number) {
            self.players.insert(number, id);
            self.tally.return_player();
            let frame = self.scenario.player_frame();
            self.agenda.add(now + frame, Duty::PlayerFrame(number));
        } else {
            self.agenda.add(now + RETURN_AFTER, Duty::Return(number));
        }
    }

    /// Connects one server and lets it begin.
    pub(super) fn connect_server(&mut self, server: Server) -> Result<PeerId, PlayError> {
        // Its outbox takes what a second of a large world may need.
        let roomy = Settings {
            max_waiting_bytes: 64 << 20,
            ..Settings::default()
        };
        let id = self
            .wires
            .connect(End::Server, roomy, Peer::Server(server))?;
        if let Some((Peer::Server(server), outbox)) = self.wires.peer(id) {
            let begun = server.begin(outbox);
            begun.map_err(|error| PlayError::NoWorld(error.to_string()))?;
        }
        self.wires.flush(id);
        Ok(id)
    }

    /// Connects a player and lets it log in.
    pub(super) fn connect_player(&mut self, number: u32) -> Result<PeerId, PlayError> {
        let player = Player::new(number, Arc::clone(&self.scenario), Rc::clone(&self.clock));
        let peer = Peer::Player(Box::new(player));
        let id = self
            .wires
            .connect(End::Player(number), Settings::default(), peer)?;
        if let Some((Peer::Player(player), outbox)) = self.wires.peer(id) {
            // An empty outbox takes a login.
            let _ = player.begin(outbox);
        }
        self.wires.flush(id);
        Ok(id)
    }
}
