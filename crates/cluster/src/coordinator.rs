//! The coordinator: it has the scenario and the servers, and its clock is the
//! run's.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_remote::{Limits, Registry, Secret, Server, ServerSettings};
use lagometer_units::{Clock, Time};
use lagometer_world::real::{RunClock, Venue, play_together};
use lagometer_world::{
    Coordination, Moment, Note, Outcome, PlayError, ProcessStats, Report, Scenario,
    Server as GameServer, Shard, Share, Truth,
};

use crate::error::Error;
use crate::messages::FromCoordinator;
use crate::registry::{Event, JoinService, WorkerRegistry};

/// From the word to the start: a message's way to the farthest worker.
const LEAD: Duration = Duration::from_millis(500);

/// A worker that says nothing for so long is gone. It asks for the time twice
/// a second.
const SILENCE: Duration = Duration::from_secs(10);

/// How long the gateway may take to give game servers what they are to own,
/// and their workers to say so.
const OPEN_WITHIN: Duration = Duration::from_secs(15);

/// How long the workers may take to report what they found, once it is known
/// where everybody is.
const REPORTS_WITHIN: Duration = Duration::from_secs(30);

/// How a coordinator is set up.
#[derive(Debug)]
pub struct Settings<'a> {
    /// Where workers come to; port 0 is one that is free.
    pub bind: SocketAddr,
    /// What they must know.
    pub secret: &'a Secret,
    /// What is played.
    pub scenario: &'a Scenario,
    /// The gateway's address for players as workers are to find it.
    pub gateway: String,
    /// Its address for game servers, likewise.
    pub servers: String,
    /// How many workers share the players; where there is none, they are played
    /// here.
    pub workers: u32,
    /// How many share the game servers that simulate a part of the world each;
    /// where there is none, they are played here.
    pub server_workers: u32,
    /// How long workers may take to come, and to be replaced.
    pub timeout: Duration,
}

/// Waits for workers, and plays a world with them.
#[derive(Debug)]
pub struct Coordinator {
    server: Server,
    registry: Arc<WorkerRegistry>,
    scenario: Arc<Scenario>,
    /// What is played here.
    shard: Shard,
    /// How many there are to be.
    workers: u32,
    timeout: Duration,
}

impl Coordinator {
    /// Lets workers come.
    ///
    /// # Errors
    ///
    /// [`Error::Remote`] where it cannot listen, and [`Error::TooFewServers`] where
    /// workers would have none.
    pub fn start(settings: Settings<'_>) -> Result<Self, Error> {
        let scenario = as_received(settings.scenario)?;
        let (shard, shards) = shards(&scenario, settings.workers, settings.server_workers)?;
        let workers = shards.len() as u32;
        let addresses = [settings.gateway, settings.servers];
        let registry = Arc::new(WorkerRegistry::new(scenario.clone(), addresses, shards));
        let server = Server::start(ServerSettings {
            bind: settings.bind,
            secret: settings.secret.clone(),
            registry: Registry::new().with(JoinService(Arc::clone(&registry))),
            data_ports: None,
            limits: Limits {
                silence: SILENCE,
                ..Limits::default()
            },
            on_event: Box::new(|_| {}),
        })?;
        Ok(Self {
            server,
            registry,
            scenario: Arc::new(scenario),
            shard,
            workers,
            timeout: settings.timeout,
        })
    }

    /// Where workers come to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Waits until all workers are ready, at most for the timeout.
    /// `meanwhile` is called often with how many are, and may end the waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], or what `meanwhile` says.
    pub fn gather<E: From<Error>>(
        &self,
        mut meanwhile: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let (began, timeout) = (Instant::now(), self.timeout);
        let mut came = 0;
        loop {
            meanwhile(came)?;
            self.registry.check().map_err(Error::Play)?;
            if came == self.workers {
                return Ok(());
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(E::from(Error::Missing {
                    came,
                    asked: self.workers,
                    within_s: timeout.as_secs(),
                }));
            }
            came = self
                .registry
                .ready_within(left.min(Duration::from_millis(100)));
        }
    }

    /// Plays the world with the workers, who are all ready, on the gateway at
    /// `venue`: what they have not, here. What is found is as if one process
    /// had found it. `progress` is called every half second with the stats of all, and
    /// `on_event` of workers that are missed; when `stop` becomes true, all stop
    /// where they are.
    ///
    /// # Errors
    ///
    /// [`Error::Play`] where the gateway is not there or leaves, or a worker
    /// does and is not replaced.
    pub fn play(
        &self,
        venue: &Venue,
        progress: &mut dyn FnMut(&Moment),
        on_event: &mut dyn FnMut(Event),
        stop: &AtomicBool,
    ) -> Result<Outcome, Error> {
        let clock = self.registry.clock().ok_or(Error::NoClock)?;
        let shared = Rc::new(OwnTime {
            registry: Arc::clone(&self.registry),
            clock,
            start: Cell::new(Time::MAX),
        });
        let mut coordination = Workers {
            registry: &self.registry,
            timeout: self.timeout,
            progress,
            on_event,
            stop,
            has_sent_stop: false,
            notes: VecDeque::new(),
            timeline: Vec::new(),
            own: Truth::new(),
            waits_until: None,
        };
        let mut outcome =
            play_together(&self.scenario, self.shard, venue, shared, &mut coordination)?;
        outcome.timeline = coordination.timeline;
        outcome.processes = vec![ProcessStats {
            at: "here".to_owned(),
            servers: self.shard.servers.of(GameServer::count(&self.scenario)),
            players: self.shard.players.of(self.scenario.players),
            cpu: outcome.generator_cpu,
            clock_error: Duration::ZERO,
            lost: false,
        }];
        self.registry.add_found(&mut outcome);
        Ok(outcome)
    }

    /// What is played, as the workers are sent it.
    #[must_use]
    pub const fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }
}

/// What is played here, and what by each of the workers.
fn shards(
    scenario: &Scenario,
    workers: u32,
    server_workers: u32,
) -> Result<(Shard, Vec<Shard>), Error> {
    let all = GameServer::count(scenario);
    // Servers that share the world; who has it alone stays here, and so does a
    // master, which comes before them.
    let first =
        (0..all).find(|number| *number > 0 && GameServer::simulating(scenario, *number).is_some());
    let shared = first.map_or(0, |first| all - first);
    if server_workers > shared {
        return Err(Error::TooFewServers {
            asked: server_workers,
            shared,
        });
    }
    let own = Shard {
        servers: match server_workers {
            0 => Share::ALL,
            _ => Share::only(0),
        },
        players: match workers {
            0 => Share::ALL,
            _ => Share::NONE,
        },
    };
    let with_players = (0..workers).map(|nth| Shard {
        servers: Share::NONE,
        players: Share::even(nth, workers),
    });
    let with_servers = (0..server_workers).map(|nth| Shard {
        servers: Share::even_from(first.unwrap_or(all), nth, server_workers),
        players: Share::NONE,
    });
    Ok((own, with_players.chain(with_servers).collect()))
}

/// The scenario as whoever is sent it understands it: quantities are rounded
/// as they are written, and all are to play the very same.
fn as_received(scenario: &Scenario) -> Result<Scenario, Error> {
    let serialized = serde_json::to_value(scenario);
    serialized
        .and_then(serde_json::from_value)
        .map_err(|error| Error::NotUnderstood(error.to_string()))
}

/// The run's time where it is made.
struct OwnTime {
    registry: Arc<WorkerRegistry>,
    clock: Clock,
    start: Cell<Time>,
}

impl RunClock for OwnTime {
    fn start(&self) -> Result<(), PlayError> {
        self.registry.open(OPEN_WITHIN)?;
        let start = self.clock.now() + LEAD;
        self.registry.begin(start)?;
        self.start.set(start);
        thread::sleep(start.since(self.clock.now()));
        Ok(())
    }

    fn now(&self) -> Time {
        match self.start.get() {
            // Servers connect before there is a start.
            Time::MAX => self.clock.now(),
            start => Time::ZERO + self.clock.now().since(start),
        }
    }
}

/// The workers, as the coordinator's running world sees them.
struct Workers<'a> {
    registry: &'a WorkerRegistry,
    timeout: Duration,
    progress: &'a mut dyn FnMut(&Moment),
    on_event: &'a mut dyn FnMut(Event),
    stop: &'a AtomicBool,
    has_sent_stop: bool,
    /// Ours that lack a worker's.
    notes: VecDeque<Note>,
    timeline: Vec<Moment>,
    /// Where the characters of servers here are.
    own: Truth,
    /// For what the workers found.
    waits_until: Option<Instant>,
}

impl Workers<'_> {
    /// Whether all are still connected, or their loss was reported.
    fn attend(&mut self) -> Result<(), PlayError> {
        for event in self.registry.attend(self.timeout)? {
            (self.on_event)(event);
        }
        Ok(())
    }

    /// Puts together what all have noted.
    fn merge_notes(&mut self) {
        while let Some(own) = self.notes.front() {
            let Some(theirs) = self.registry.notes(own.nth) else {
                return;
            };
            let Some(mut note) = self.notes.pop_front() else {
                return;
            };
            for their in &theirs {
                note.absorb(their);
            }
            (self.progress)(&note.moment);
            self.timeline.push(note.moment);
        }
    }
}

impl Coordination for Workers<'_> {
    fn is_stopped(&mut self) -> Result<bool, PlayError> {
        self.attend()?;
        let is_stopped = self.stop.load(Ordering::Relaxed);
        if is_stopped && !self.has_sent_stop {
            self.has_sent_stop = true;
            self.registry.stop();
        }
        Ok(is_stopped)
    }

    fn note(&mut self, note: Note, _so_far: &dyn Fn() -> Outcome) -> Result<(), PlayError> {
        self.notes.push_back(note);
        self.merge_notes();
        Ok(())
    }

    fn report(&mut self, own: Report) -> Result<Report, PlayError> {
        Ok(self.registry.report(own))
    }

    fn stand(&mut self, own: Truth) -> Result<(), PlayError> {
        self.own = own;
        Ok(())
    }

    fn truth(&mut self) -> Result<Option<Truth>, PlayError> {
        Ok(self.registry.truth(&self.own))
    }

    fn found(&mut self, _outcome: &Outcome) -> Result<(), PlayError> {
        self.waits_until = Some(Instant::now() + REPORTS_WITHIN);
        Ok(())
    }

    fn is_over(&mut self) -> Result<bool, PlayError> {
        self.attend()?;
        self.merge_notes();
        if self.registry.all_found() {
            self.registry.send(&FromCoordinator::Over);
            return Ok(true);
        }
        let is_late = self.waits_until.is_some_and(|until| Instant::now() > until);
        match self.registry.still_out() {
            Some(worker) if is_late => Err(PlayError::Coordination(format!(
                "worker {worker} does not report what it found"
            ))),
            _ => Ok(false),
        }
    }
}
