//! A world in real time, over real sockets, on one thread.

mod agenda;
mod metrics;
mod peer;
mod tally;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lagometer_client::Settings;
use lagometer_client::swarm::{MemberId, Swarm};
use lagometer_units::Time;
use thiserror::Error;

use crate::outcome::{Moment, Outcome};
use crate::player::Player;
use crate::scenario::Scenario;
use crate::server::GameServer;
use agenda::{Agenda, Duty};
use metrics::Watch;
use peer::Peer;
use tally::Tally;

/// How long the gateway may take to give the world to the server.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the world settles after the last player's first window, and after
/// everything has stood still.
const SETTLE: Duration = Duration::from_secs(1);

/// How often progress is told.
const NOTE_EVERY: Duration = Duration::from_millis(500);

/// The longest that nothing is looked after, so that a stop is heard.
const NAP: Duration = Duration::from_millis(100);

/// Where a gateway listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Venue {
    /// For players.
    pub clients: SocketAddr,
    /// For game servers.
    pub servers: SocketAddr,
    /// For whoever asks for metrics, where it is to be asked.
    pub metrics: Option<SocketAddr>,
}

/// Why a world could not be played.
#[derive(Debug, Error)]
pub enum PlayError {
    /// No connection, or no more of them.
    #[error("cannot connect to the gateway at {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The gateway does not answer, or not as one.
    #[error("the gateway at {address} did not give its world to the game server: {why}")]
    NoWorld {
        /// The address.
        address: SocketAddr,
        /// What happened.
        why: String,
    },
    /// The server's connection ended in the middle.
    #[error("the gateway closed the game server's connection: {0}")]
    ServerLost(String),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Plays `scenario` on the gateway at `venue`: players come one by one, then
/// everything is measured for the scenario's time, then all stand still and
/// every view is compared with the truth. `progress` hears of every half
/// second; when `stop` becomes true, what was found so far is returned.
///
/// # Errors
///
/// [`PlayError`] where the gateway is not there or leaves; players that lose
/// their connections are counted instead.
pub fn play(
    scenario: &Arc<Scenario>,
    venue: &Venue,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<Outcome, PlayError> {
    let mut stage = Stage::open(scenario, venue)?;
    stage.fill(progress, stop)?;
    stage.measure(progress, stop)?;
    stage.compare(progress, stop)?;
    Ok(stage.close(stop.load(Ordering::Relaxed)))
}

/// The world while it is played.
struct Stage {
    scenario: Arc<Scenario>,
    venue: Venue,
    swarm: Swarm<Peer>,
    server: MemberId,
    players: Vec<MemberId>,
    agenda: Agenda,
    origin: Instant,
    clock: Rc<Cell<Time>>,
    tally: Tally,
    watch: Option<Watch>,
}

impl Stage {
    /// Connects the server and waits until it has the world.
    fn open(scenario: &Arc<Scenario>, venue: &Venue) -> Result<Self, PlayError> {
        let clock = Rc::new(Cell::new(Time::ZERO));
        let mut swarm = Swarm::new()?;
        let server = GameServer::new(Arc::clone(scenario), Rc::clone(&clock));
        // Its outbox takes what a second of a large world may need.
        let roomy = Settings {
            max_waiting_bytes: 64 << 20,
            ..Settings::default()
        };
        let address = venue.servers;
        let server = swarm
            .connect(address, roomy, Peer::Server(Box::new(server)))
            .map_err(|source| PlayError::Connect { address, source })?;
        let no_world = |why: &str| PlayError::NoWorld {
            address,
            why: why.into(),
        };
        if let Some((Peer::Server(peer), outbox)) = swarm.member(server) {
            let begun = peer.begin(outbox);
            begun.map_err(|error| no_world(&error.to_string()))?;
        }
        swarm.flush(server);
        let origin = Instant::now();
        loop {
            if let Some((_, _, reason)) = swarm.take_ended() {
                return Err(no_world(&reason.to_string()));
            }
            let owns = |peer: &mut Peer| peer.server_mut().is_some_and(|peer| peer.owns_world());
            if swarm.member(server).is_some_and(|(peer, _)| owns(peer)) {
                break;
            }
            if origin.elapsed() > PATIENCE {
                return Err(no_world("no answer; another server may own it"));
            }
            swarm.poll(NAP)?;
        }
        Ok(Self {
            scenario: Arc::clone(scenario),
            venue: *venue,
            swarm,
            server,
            players: Vec::new(),
            agenda: Agenda::default(),
            origin: Instant::now(),
            clock,
            tally: Tally::new(scenario),
            watch: None,
        })
    }

    /// Lets the players in, one by one.
    fn fill(
        &mut self,
        progress: &mut dyn FnMut(&Moment),
        stop: &AtomicBool,
    ) -> Result<(), PlayError> {
        let mut at = self.now();
        self.agenda.add(at, Duty::ServerFrame);
        self.agenda.add(at + NOTE_EVERY, Duty::Note);
        for player in 0..self.scenario.players {
            self.agenda.add(at, Duty::Join(player));
            at += self.scenario.join_every.0;
        }
        let slowest = self.scenario.tiers.iter().map(|tier| tier.every.0).max();
        at += self.scenario.fan_out_delay.0 + slowest.unwrap_or_default() + SETTLE;
        self.run_until(at, progress, stop)
    }

    fn measure(
        &mut self,
        progress: &mut dyn FnMut(&Moment),
        stop: &AtomicBool,
    ) -> Result<(), PlayError> {
        for &id in &self.players {
            if let Some((Peer::Player(player), _)) = self.swarm.member(id) {
                player.begin_measuring();
            }
        }
        self.watch = match self.venue.metrics {
            Some(metrics) => Some(Watch::start(metrics)?),
            None => None,
        };
        let now = self.now();
        let (counts, traffic) = (self.server_counts(), self.swarm.traffic());
        self.tally.begin(now, counts, traffic);
        self.run_until(now + self.scenario.duration.0, progress, stop)?;
        let players = self.swarm.members().filter_map(|(_, peer)| peer.player());
        self.tally.end(self.now(), players);
        let (counts, traffic) = (self.server_counts(), self.swarm.traffic());
        self.tally.end_counts(counts, traffic);
        self.tally.gateway = self.watch.take().and_then(Watch::finish);
        Ok(())
    }

    /// Lets everything stand still and compares every view with the truth.
    fn compare(
        &mut self,
        progress: &mut dyn FnMut(&Moment),
        stop: &AtomicBool,
    ) -> Result<(), PlayError> {
        if let Some((Peer::Server(server), _)) = self.swarm.member(self.server) {
            server.freeze();
        }
        let slowest = self.scenario.tiers.iter().map(|tier| tier.every.0).max();
        let until = self.now() + slowest.unwrap_or_default() + SETTLE;
        self.run_until(until, progress, stop)?;
        let Some((Peer::Server(server), _)) = self.swarm.member(self.server) else {
            return Ok(());
        };
        let truth = server.crowd().clone();
        let players = self.swarm.members().filter_map(|(_, peer)| peer.player());
        self.tally.compare(&truth, players);
        Ok(())
    }

    fn close(self, partial: bool) -> Outcome {
        self.tally.into_outcome(partial)
    }

    /// Does what is due and serves the connections until `end`.
    fn run_until(
        &mut self,
        end: Time,
        progress: &mut dyn FnMut(&Moment),
        stop: &AtomicBool,
    ) -> Result<(), PlayError> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.now();
            self.clock.set(now);
            if now >= end {
                break;
            }
            while let Some((due, duty)) = self.agenda.take(now) {
                self.perform(due, duty, progress)?;
            }
            let now = self.now();
            let next = self.agenda.next_at().map_or(end, |next| next.min(end));
            self.swarm.poll(next.since(now).min(NAP))?;
            self.clock.set(self.now());
            self.bury()?;
        }
        Ok(())
    }

    fn perform(
        &mut self,
        due: Time,
        duty: Duty,
        progress: &mut dyn FnMut(&Moment),
    ) -> Result<(), PlayError> {
        match duty {
            Duty::ServerFrame => self.server_frame(due),
            Duty::Join(number) => self.join(number)?,
            Duty::PlayerFrame(number) => self.player_frame(due, number),
            Duty::Look(number) => {
                let (now, id) = (self.now(), self.players[number as usize]);
                if let Some((Peer::Player(player), _)) = self.swarm.member(id) {
                    self.tally.look(player, now);
                }
                self.agenda
                    .add(due + self.tally.look_every(), Duty::Look(number));
            }
            Duty::Note => {
                let players = self.swarm.members().filter_map(|(_, peer)| peer.player());
                let moment = self.tally.note(self.now(), players, self.swarm.traffic());
                progress(&moment);
                self.agenda.add(due + NOTE_EVERY, Duty::Note);
            }
        }
        Ok(())
    }

    fn server_frame(&mut self, due: Time) {
        let began = self.now();
        if let Some((Peer::Server(server), outbox)) = self.swarm.member(self.server) {
            server.frame(began, outbox);
        }
        self.swarm.flush(self.server);
        let ended = self.now();
        let each = self.scenario.server_frame();
        self.tally.frame(began.since(due), ended.since(began));
        let mut next = due + each;
        // A frame whose time has gone by altogether is left out.
        while next + each <= ended {
            next += each;
            self.tally.miss_frame();
        }
        self.agenda.add(next, Duty::ServerFrame);
    }

    fn join(&mut self, number: u32) -> Result<(), PlayError> {
        let player = Player::new(number, Arc::clone(&self.scenario), Rc::clone(&self.clock));
        let address = self.venue.clients;
        let id = self
            .swarm
            .connect(address, Settings::default(), Peer::Player(Box::new(player)))
            .map_err(|source| PlayError::Connect { address, source })?;
        if let Some((Peer::Player(player), outbox)) = self.swarm.member(id) {
            // An empty outbox takes a login.
            let _ = player.begin(outbox);
        }
        self.swarm.flush(id);
        self.players.push(id);
        let now = self.now();
        self.agenda.add(
            now + self.scenario.player_frame(),
            Duty::PlayerFrame(number),
        );
        // Spread evenly, so that ages are sampled at all times alike.
        let observers = self.scenario.observers.clamp(1, self.scenario.players);
        let phase = f64::from(number % observers) / f64::from(observers);
        let first_look = now + self.tally.look_every().mul_f64(phase);
        self.agenda.add(first_look, Duty::Look(number));
        Ok(())
    }

    fn player_frame(&mut self, due: Time, number: u32) {
        let (now, id) = (self.now(), self.players[number as usize]);
        let Some((Peer::Player(player), outbox)) = self.swarm.member(id) else {
            return;
        };
        player.frame(now, outbox);
        self.swarm.flush(id);
        self.agenda.add(
            due + self.scenario.player_frame(),
            Duty::PlayerFrame(number),
        );
    }

    /// Notes who has lost the connection.
    fn bury(&mut self) -> Result<(), PlayError> {
        while let Some((_, mut peer, reason)) = self.swarm.take_ended() {
            if peer.player_mut().is_none() {
                return Err(PlayError::ServerLost(reason.to_string()));
            }
            self.tally.lose(reason.to_string());
        }
        Ok(())
    }

    fn server_counts(&mut self) -> crate::server::ServerCounts {
        match self.swarm.member(self.server) {
            Some((Peer::Server(server), _)) => server.counts(),
            _ => crate::server::ServerCounts::default(),
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}
