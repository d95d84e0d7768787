//! The side that has the scenario and the servers, and tells the time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_far::{Clock, Limits, Registry, Secret, Server, ServerSettings};
use lagometer_units::Time;
use lagometer_world::real::{RunClock, Venue, play_together};
use lagometer_world::{
    Company, Fellow, Moment, Note, Outcome, Part, PlayError, Scenario, Server as GameServer, Slice,
    Truth,
};

use crate::error::Error;
use crate::roll::{Door, Roll};
use crate::words::{FromCoordinator, tell_truth};

/// From the word to the start: a message's way to the farthest worker.
const LEAD: Duration = Duration::from_millis(500);

/// A worker that says nothing for so long is gone. It asks for the time twice
/// a second.
const SILENCE: Duration = Duration::from_secs(10);

/// How long the workers may take to tell what they found, once it is known
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
    /// How many there are to be.
    pub workers: u32,
}

/// Waits for workers, and plays a world with them.
#[derive(Debug)]
pub struct Coordinator {
    server: Server,
    roll: Arc<Roll>,
    scenario: Arc<Scenario>,
    workers: u32,
}

impl Coordinator {
    /// Lets workers come.
    ///
    /// # Errors
    ///
    /// [`Error::Far`] where it cannot listen.
    pub fn start(settings: Settings<'_>) -> Result<Self, Error> {
        let scenario = as_told(settings.scenario)?;
        let roll = Arc::new(Roll::new(
            scenario.clone(),
            settings.gateway,
            settings.workers,
        ));
        let server = Server::start(ServerSettings {
            bind: settings.bind,
            secret: settings.secret.clone(),
            registry: Registry::new().with(Door(Arc::clone(&roll))),
            data_ports: None,
            limits: Limits {
                silence: SILENCE,
                ..Limits::default()
            },
            on_event: Box::new(|_| {}),
        })?;
        Ok(Self {
            server,
            roll,
            scenario: Arc::new(scenario),
            workers: settings.workers,
        })
    }

    /// Where workers come to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Waits until all workers are ready, but no longer than `patience`.
    /// `meanwhile` is told often how many are, and may end the waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`], or what `meanwhile` says.
    pub fn gather<E: From<Error>>(
        &self,
        patience: Duration,
        mut meanwhile: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let began = Instant::now();
        let mut came = 0;
        loop {
            meanwhile(came)?;
            self.roll.check().map_err(Error::Play)?;
            if came == self.workers {
                return Ok(());
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(E::from(Error::Missing {
                    came,
                    asked: self.workers,
                    within_s: patience.as_secs(),
                }));
            }
            came = self.roll.ready_within(left.min(Duration::from_millis(100)));
        }
    }

    /// Plays the world with the workers, who are all ready, on the gateway at
    /// `venue`: the game servers here, the players there. What is found is as
    /// if one process had found it. `progress` hears of every half second of
    /// all together; when `stop` becomes true, all stop where they are.
    ///
    /// # Errors
    ///
    /// [`Error::Play`] where the gateway is not there or leaves, or a worker
    /// does.
    pub fn play(
        &self,
        venue: &Venue,
        progress: &mut dyn FnMut(&Moment),
        stop: &AtomicBool,
    ) -> Result<Outcome, Error> {
        let clock = self.roll.clock().ok_or(Error::NoClock)?;
        let part = Part {
            servers: Slice::ALL,
            players: Slice::NONE,
        };
        let shared = Rc::new(OwnTime {
            roll: Arc::clone(&self.roll),
            clock,
            start: Cell::new(Time::MAX),
        });
        let mut company = Workers {
            roll: &self.roll,
            progress,
            stop,
            told_to_stop: false,
            notes: VecDeque::new(),
            timeline: Vec::new(),
            truth: None,
            waits_until: None,
        };
        let mut outcome = play_together(&self.scenario, part, venue, shared, &mut company)?;
        outcome.timeline = company.timeline;
        outcome.fellows = vec![Fellow {
            at: "here".to_owned(),
            servers: GameServer::count(&self.scenario),
            players: 0,
            cpu: outcome.generator_cpu,
            clock_error: Duration::ZERO,
        }];
        for found in self.roll.take_found() {
            outcome.absorb(found);
        }
        Ok(outcome)
    }

    /// What is played, as the workers are told it.
    #[must_use]
    pub const fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }
}

/// The scenario as whoever is told it understands it: quantities are rounded
/// as they are written, and all are to play the very same.
fn as_told(scenario: &Scenario) -> Result<Scenario, Error> {
    let told = serde_json::to_value(scenario);
    told.and_then(serde_json::from_value)
        .map_err(|error| Error::NotUnderstood(error.to_string()))
}

/// The run's time where it is made.
struct OwnTime {
    roll: Arc<Roll>,
    clock: Clock,
    start: Cell<Time>,
}

impl RunClock for OwnTime {
    fn start(&self) -> Result<(), PlayError> {
        let start = self.clock.now() + LEAD;
        self.roll.begin(start)?;
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

/// The workers, as the coordinator's stage sees them.
struct Workers<'a> {
    roll: &'a Roll,
    progress: &'a mut dyn FnMut(&Moment),
    stop: &'a AtomicBool,
    told_to_stop: bool,
    /// Ours that lack a worker's.
    notes: VecDeque<Note>,
    timeline: Vec<Moment>,
    truth: Option<Truth>,
    /// For what the workers found.
    waits_until: Option<Instant>,
}

impl Workers<'_> {
    /// Puts together what all have noted.
    fn merge_notes(&mut self) {
        while let Some(own) = self.notes.front() {
            let Some(theirs) = self.roll.notes(own.nth) else {
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

impl Company for Workers<'_> {
    fn is_stopped(&mut self) -> Result<bool, PlayError> {
        self.roll.check()?;
        let is_stopped = self.stop.load(Ordering::Relaxed);
        if is_stopped && !self.told_to_stop {
            self.told_to_stop = true;
            self.roll.tell(&FromCoordinator::Stop);
        }
        Ok(is_stopped)
    }

    fn note(&mut self, note: Note) -> Result<(), PlayError> {
        self.notes.push_back(note);
        self.merge_notes();
        Ok(())
    }

    fn stand(&mut self, own: Truth) -> Result<(), PlayError> {
        self.truth = Some(own);
        Ok(())
    }

    fn truth(&mut self) -> Result<Option<Truth>, PlayError> {
        let Some(truth) = self.truth.take() else {
            return Ok(None);
        };
        for said in tell_truth(&truth) {
            self.roll.tell(&said);
        }
        Ok(Some(truth))
    }

    fn found(&mut self, _outcome: &Outcome) -> Result<(), PlayError> {
        self.waits_until = Some(Instant::now() + REPORTS_WITHIN);
        Ok(())
    }

    fn is_over(&mut self) -> Result<bool, PlayError> {
        self.roll.check()?;
        self.merge_notes();
        if self.roll.all_found() {
            self.roll.tell(&FromCoordinator::Over);
            return Ok(true);
        }
        let is_late = self.waits_until.is_some_and(|until| Instant::now() > until);
        match self.roll.still_out() {
            Some(worker) if is_late => Err(PlayError::Company(format!(
                "worker {worker} does not tell what it found"
            ))),
            _ => Ok(false),
        }
    }
}
