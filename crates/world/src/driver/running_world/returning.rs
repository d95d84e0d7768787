//! Connections that break off, and their return.
//!
//! A player that has lost its connection comes back as a new one of the same
//! number, as players do; until it is sent an update it goes on seeing what it saw
//! last. A server comes back knowing nothing, as after a
//! crash: what it had, the gateway sends it, or it begins anew where the
//! gateway knows nothing either, and its players, whom it does not answer any
//! more, ask it to play again.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lagometer_client::Settings;
use lagometer_units::Time;

use super::agenda::Duty;
use super::{Peer, RunningWorld, TIMEOUT};
use crate::driver::backend::{ConnectionBackend, End, PeerId, PlayError};
use crate::player::{ASK_AGAIN_AFTER, Player};
use crate::server::Server;

/// From a connection's end to the attempt to open another.
const RETURN_AFTER: Duration = Duration::from_millis(500);

/// How long the game may take to have somebody again who has connected: one
/// asking may be lost.
const BACK_WITHIN: Duration = ASK_AGAIN_AFTER.saturating_mul(2);

impl<W: ConnectionBackend> RunningWorld<'_, W> {
    /// Removes whose connection has closed, and schedules their return.
    pub(super) fn reap_closed(&mut self) {
        while let Some((peer, reason)) = self.backend.take_ended() {
            let now = self.now();
            self.unsettle(now + RETURN_AFTER);
            match peer {
                Peer::Player(player) => {
                    self.measurements.lose(&player, reason);
                    let again = Duty::Return(player.number());
                    self.agenda.add(now + RETURN_AFTER, again);
                    self.cut_off.insert(player.number(), player);
                }
                Peer::Server(server) => self.lose_server(server, reason, now),
            }
        }
    }

    fn lose_server(&mut self, mut server: Server, reason: String, now: Time) {
        let Self {
            servers,
            backend,
            absent,
            ..
        } = self;
        let is_gone = |(nth, id): &(&u32, &PeerId)| {
            backend.peer(**id).is_none() && !absent.contains_key(*nth)
        };
        let Some(number) = servers.iter().find(is_gone).map(|(nth, _)| *nth) else {
            return;
        };
        self.retired += server.counts();
        self.measurements.claims(server.take_claims());
        let simulating = Server::simulating(&self.scenario, number);
        self.measurements.lose_server(simulating, now);
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
                self.unsettle(now);
                self.absent.remove(&number);
                self.measurements.return_server();
                if simulates {
                    let frame = self.scenario.server_frame();
                    self.agenda.add(now + frame, Duty::ServerFrame(number));
                }
            }
            Err(_) if now.since(since) < TIMEOUT => {
                self.agenda.add(now + RETURN_AFTER, Duty::Revive(number));
            }
            Err(_) => return Err(PlayError::ServerLost(reason)),
        }
        Ok(())
    }

    /// Somebody connects anew at `at`: until everybody has been sent all that
    /// follows from it, views are not what they will be.
    pub(super) fn unsettle(&mut self, at: Time) {
        let scenario = &self.scenario;
        let settled = at + BACK_WITHIN + scenario.fan_out_delay.0 + scenario.settles_within();
        self.settled_at = self.settled_at.max(settled);
    }

    /// A player comes back; it tries again as long as the servers do.
    pub(super) fn come_back(&mut self, number: u32) {
        if self.connect_player(number).is_ok() {
            self.unsettle(self.now());
            self.measurements.return_player();
        } else {
            let again = self.now() + RETURN_AFTER;
            self.agenda.add(again, Duty::Return(number));
        }
    }

    /// A player comes for the first time in this process, perhaps back from one
    /// that is lost. Whether it has: a gateway that was there before may be
    /// killed and start again, and is tried again then.
    pub(super) fn let_in(&mut self, number: u32) -> Result<bool, PlayError> {
        let came_before = self.coordination.came_before();
        let was_there = came_before > 0 || !self.players.is_empty();
        match self.connect_player(number) {
            Ok(()) => {}
            Err(error) if was_there && refuses(&error) => {
                let again = self.now() + RETURN_AFTER;
                self.agenda.add(again, Duty::Join(number));
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        if self.shard.players.of(number) < came_before {
            self.unsettle(self.now());
            self.measurements.return_player();
        }
        Ok(true)
    }

    /// Connects one server and lets it begin.
    pub(super) fn connect_server(&mut self, server: Server) -> Result<PeerId, PlayError> {
        // Its outbox takes what a second of a large world may need.
        let roomy = Settings {
            max_waiting_bytes: 64 << 20,
            ..Settings::default()
        };
        let id = self
            .backend
            .connect(End::Server, roomy, Peer::Server(server))?;
        if let Some((Peer::Server(server), outbox)) = self.backend.peer(id) {
            let begun = server.begin(outbox);
            begun.map_err(|error| PlayError::NoWorld(error.to_string()))?;
        }
        self.backend.flush(id);
        Ok(id)
    }

    /// Connects a player and lets it log in and play.
    fn connect_player(&mut self, number: u32) -> Result<(), PlayError> {
        let player = Player::new(number, Arc::clone(&self.scenario), Rc::clone(&self.clock));
        let peer = Peer::Player(Box::new(player));
        let id = self
            .backend
            .connect(End::Player(number), Settings::default(), peer)?;
        if let Some((Peer::Player(player), outbox)) = self.backend.peer(id) {
            match self.cut_off.remove(&number) {
                Some(earlier) => player.goes_on_as(*earlier),
                None => player.waits_since(self.measurements.began()),
            }
            // An empty outbox takes a login.
            let _ = player.begin(outbox);
        }
        self.backend.flush(id);
        self.players.insert(number, id);
        let first_frame = self.now() + self.scenario.player_frame();
        self.agenda.add(first_frame, Duty::PlayerFrame(number));
        Ok(())
    }
}

/// Whether there is nobody at the gateway's address.
fn refuses(error: &PlayError) -> bool {
    let kind = match error {
        PlayError::Connect { source, .. } => source.kind(),
        _ => return false,
    };
    matches!(
        kind,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}
