//! A worker: it has a shard of the players, or of the game servers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lagometer_remote::{Line, Remote, RemoteJob, Secret};
use lagometer_units::{Clock, Time};
use lagometer_world::real::{RunClock, Venue, play_together};
use lagometer_world::{
    Coordination, Note, Outcome, PlayError, Report, Scenario, Server, Shard, Share, Truth,
};

use crate::error::Error;
use crate::messages::{
    Claims, FromCoordinator, FromWorker, Request, SERVICE, Task, pieces, places,
};
use crate::registry::written;

/// How often a coordinator that is not there yet is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Exchanges of time before a worker is ready, and how long they may take.
const FIRST_PROBES: u64 = 8;
const PROBES_WITHIN: Duration = Duration::from_secs(10);

/// How often the clock is set right: as often as there are new probes.
const SET_EVERY: Duration = Duration::from_millis(500);

/// How long nothing is listened to while the start is waited for.
const NAP: Duration = Duration::from_millis(50);

/// A worker that has its shard and has not begun.
pub struct Joined {
    remote: Remote,
    job: Arc<RemoteJob>,
    task: Task,
}

/// Joins the coordinator at `address` as the worker numbered `index`, counted
/// from 0, or any. One that is not there yet is waited for, but no longer than
/// `timeout`; when `stop` becomes true, no longer at all.
///
/// # Errors
///
/// [`Error`], which says what there was instead.
pub fn join(
    address: &str,
    secret: &Secret,
    index: Option<u32>,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<Joined, Error> {
    let began = Instant::now();
    let remote = loop {
        match Remote::connect(address, secret) {
            Ok(remote) => break remote,
            Err(
                lagometer_remote::Error::Unreachable { source, .. }
                | lagometer_remote::Error::Address { source, .. },
            ) => {
                if began.elapsed() >= timeout || stop.load(Ordering::Relaxed) {
                    return Err(Error::NoCoordinator {
                        address: address.to_owned(),
                        why: source.to_string(),
                    });
                }
                thread::sleep(TRY_AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
    };
    let job = remote.open(SERVICE, &written(&Request { index }))?;
    let task: Task = serde_json::from_value(job.reply().clone())
        .map_err(|error| Error::NotUnderstood(error.to_string()))?;
    let probed = remote.offset_after(FIRST_PROBES, PROBES_WITHIN);
    probed.ok_or(Error::NoClock)?;
    Ok(Joined {
        remote,
        job: Arc::new(job),
        task,
    })
}

impl Joined {
    /// What is played.
    #[must_use]
    pub const fn scenario(&self) -> &Scenario {
        &self.task.scenario
    }

    /// Which of the workers this is, counted from 1, and how many there are.
    #[must_use]
    pub const fn place(&self) -> (u32, u32) {
        (self.task.index + 1, self.task.workers)
    }

    /// How many of the players are this worker's.
    #[must_use]
    pub const fn players(&self) -> u32 {
        self.task.shard.players.of(self.task.scenario.players)
    }

    /// How many of the game servers are.
    #[must_use]
    pub fn servers(&self) -> u32 {
        let all = Server::count(&self.task.scenario);
        self.task.shard.servers.of(all)
    }

    /// The gateway's address for players.
    #[must_use]
    pub fn gateway(&self) -> &str {
        &self.task.gateway
    }

    /// Its address for game servers.
    #[must_use]
    pub fn gateway_for_servers(&self) -> &str {
        &self.task.servers
    }

    /// Reports to the coordinator that this worker cannot play.
    pub fn give_up(&self, why: &str) {
        let why = why.to_owned();
        // A coordinator that is gone need not be notified.
        let _ = self.job.ask(&written(&FromWorker::Failed { why }));
    }

    /// Waits for the start and plays this worker's shard on the gateway at
    /// `venue`.
    ///
    /// # Errors
    ///
    /// [`Error::Play`], which is reported to the coordinator, too.
    pub fn play(self, venue: &Venue, stop: &'static AtomicBool) -> Result<(), Error> {
        let Self { remote, job, task } = self;
        let line = remote.offset().ok_or(Error::NoClock)?;
        let here = Rc::new(LocalWorker {
            shard: task.shard,
            came: task.came,
            clock: remote.clock(),
            line: Cell::new(line),
            set_at: Cell::new(remote.clock().now()),
            start: Cell::new(Time::MAX),
            last: Cell::new(Time::ZERO),
            poster: Poster::start(Arc::clone(&job))?,
            job: Arc::clone(&job),
            remote,
            stop,
        });
        here.poster.say(FromWorker::Ready);
        let scenario = Arc::new(task.scenario);
        let shard = task.shard;
        let run_clock = Rc::new(SharedTime(Rc::clone(&here)));
        let mut coordinator = OtherWorkers {
            here: Rc::clone(&here),
            received: Truth::new(),
            truth: None,
            is_stopped: false,
            is_over: false,
        };
        here.wait_to_open()
            .and_then(|()| play_together(&scenario, shard, venue, run_clock, &mut coordinator))
            .map(drop)
            .map_err(|error| {
                // A coordinator that is gone need not be notified.
                let why = error.to_string();
                let _ = job.ask(&written(&FromWorker::Failed { why }));
                error.into()
            })
    }
}

/// What the worker's clock and its running world share.
struct LocalWorker {
    shard: Shard,
    /// Players that had come to a worker before this one.
    came: u32,
    remote: Remote,
    job: Arc<RemoteJob>,
    clock: Clock,
    /// From this clock to the coordinator's, as far as is known by now.
    line: Cell<Line>,
    /// When that was looked at last.
    set_at: Cell<Time>,
    /// The start, by the coordinator's clock.
    start: Cell<Time>,
    /// The latest time that was sent.
    last: Cell<Time>,
    poster: Poster,
    stop: &'static AtomicBool,
}

impl LocalWorker {
    /// The next thing that the coordinator says, if it comes within `timeout`.
    fn receive(&self, timeout: Duration) -> Result<Option<FromCoordinator>, PlayError> {
        let gone = self.remote.gone();
        if let Some(said) = self.job.next_event(timeout) {
            return serde_json::from_value(said).map(Some).map_err(|error| {
                PlayError::Coordination(Error::NotUnderstood(error.to_string()).to_string())
            });
        }
        // What was said before it went has been received.
        match gone {
            Some(why) => Err(PlayError::Coordination(format!(
                "the coordinator is gone: {why}"
            ))),
            None if self.stop.load(Ordering::Relaxed) => Err(was_stopped()),
            None => Ok(None),
        }
    }

    /// Whether game servers are played here.
    fn has_servers(&self) -> bool {
        self.shard.servers != Share::NONE
    }

    /// Waits until game servers are to connect: when all workers have come, or
    /// at once where the world is being played already.
    fn wait_to_open(&self) -> Result<(), PlayError> {
        while self.has_servers() {
            match self.receive(NAP)? {
                Some(FromCoordinator::Open) => break,
                Some(FromCoordinator::Start { at_ns }) => {
                    self.begin(at_ns);
                    break;
                }
                Some(FromCoordinator::Stop) => return Err(was_stopped()),
                _ => {}
            }
        }
        Ok(())
    }

    /// The world's time counts from that instant of the coordinator's clock.
    fn begin(&self, at_ns: u64) {
        self.start.set(Time::from_nanos(at_ns));
        self.line
            .set(self.remote.offset().unwrap_or(self.line.get()));
    }

    /// Says something that the coordinator has received when this returns.
    fn say_now(&self, said: &FromWorker) -> Result<(), PlayError> {
        let said = self.job.ask(&written(said));
        said.map(drop)
            .map_err(|error| PlayError::Coordination(error.to_string()))
    }

    /// The clocks drift apart, and more is known of that with every probe.
    fn set_clock(&self) {
        let now = self.clock.now();
        if now.since(self.set_at.get()) >= SET_EVERY {
            self.set_at.set(now);
            self.line
                .set(self.remote.offset().unwrap_or(self.line.get()));
        }
    }

    fn now(&self) -> Time {
        if self.start.get() == Time::MAX {
            // Servers connect before there is a start.
            return self.clock.now();
        }
        let there = self.line.get().to_remote(self.clock.now());
        let now = Time::ZERO + there.since(self.start.get());
        // A better line may say that it is earlier than was thought.
        let now = now.max(self.last.get());
        self.last.set(now);
        now
    }
}

fn was_stopped() -> PlayError {
    PlayError::Coordination("it was stopped".to_owned())
}

/// The run's time, which the coordinator's clock gives.
struct SharedTime(Rc<LocalWorker>);

impl RunClock for SharedTime {
    fn start(&self) -> Result<(), PlayError> {
        let here = &self.0;
        if here.has_servers() {
            here.poster.say(FromWorker::Opened);
        }
        while here.start.get() == Time::MAX {
            match here.receive(NAP)? {
                Some(FromCoordinator::Start { at_ns }) => here.begin(at_ns),
                Some(FromCoordinator::Stop) => return Err(was_stopped()),
                _ => {}
            }
        }
        if !here.has_servers() {
            here.poster.say(FromWorker::Opened);
        }
        let there = here.line.get().to_remote(here.clock.now());
        thread::sleep(here.start.get().since(there));
        Ok(())
    }

    fn now(&self) -> Time {
        self.0.now()
    }
}

/// The coordinator, as a worker's running world sees it.
struct OtherWorkers {
    here: Rc<LocalWorker>,
    /// What of the truth has come.
    received: Truth,
    truth: Option<Truth>,
    is_stopped: bool,
    is_over: bool,
}

impl OtherWorkers {
    fn listen(&mut self) -> Result<(), PlayError> {
        // Who is over needs nobody any more.
        while !self.is_over {
            let Some(said) = self.here.receive(Duration::ZERO)? else {
                return Ok(());
            };
            match said {
                FromCoordinator::Truth { characters, is_all } => {
                    self.received.extend(places(characters));
                    if is_all {
                        self.truth = Some(std::mem::take(&mut self.received));
                    }
                }
                FromCoordinator::Stop => self.is_stopped = true,
                FromCoordinator::Over => self.is_over = true,
                FromCoordinator::Open | FromCoordinator::Start { .. } => {}
            }
        }
        Ok(())
    }
}

impl Coordination for OtherWorkers {
    fn came_before(&self) -> u32 {
        self.here.came
    }

    fn is_stopped(&mut self) -> Result<bool, PlayError> {
        self.here.set_clock();
        self.listen()?;
        Ok(self.is_stopped)
    }

    fn note(&mut self, note: Note, so_far: &dyn Fn() -> Outcome) -> Result<(), PlayError> {
        let (note, so_far) = (Box::new(note), Box::new(so_far()));
        self.here.poster.say(FromWorker::Note { note, so_far });
        Ok(())
    }

    fn report(&mut self, own: Report) -> Result<Report, PlayError> {
        let here = &self.here;
        if here.has_servers() {
            let said = FromWorker::Report(Claims::of(&own, here.line.get().error()));
            if own.claims.is_empty() && own.losses.is_empty() {
                here.poster.say(said);
            } else {
                here.say_now(&said)?;
            }
        }
        // The coordinator has the checker.
        Ok(Report::default())
    }

    fn stand(&mut self, own: Truth) -> Result<(), PlayError> {
        for (characters, is_all) in pieces(&own) {
            let said = FromWorker::Stands { characters, is_all };
            self.here.poster.say(said);
        }
        Ok(())
    }

    fn truth(&mut self) -> Result<Option<Truth>, PlayError> {
        self.listen()?;
        Ok(self.truth.take())
    }

    fn found(&mut self, outcome: &Outcome) -> Result<(), PlayError> {
        self.here.poster.say(FromWorker::Found {
            outcome: Box::new(outcome.clone()),
            clock_error: self.here.line.get().error(),
        });
        Ok(())
    }

    fn is_over(&mut self) -> Result<bool, PlayError> {
        self.listen()?;
        Ok(self.is_over)
    }
}

/// Says things to the coordinator, each of which it answers: on a thread of its
/// own, since players do not wait for that.
struct Poster {
    letters: Option<Sender<FromWorker>>,
    thread: Option<JoinHandle<()>>,
}

impl Poster {
    fn start(job: Arc<RemoteJob>) -> Result<Self, PlayError> {
        let (letters, posted) = channel();
        let thread = thread::Builder::new()
            .name("world-post".to_owned())
            .spawn(move || post(&job, &posted))?;
        Ok(Self {
            letters: Some(letters),
            thread: Some(thread),
        })
    }

    fn say(&self, letter: FromWorker) {
        if let Some(letters) = &self.letters {
            // Whoever listens learns by itself that the coordinator is gone.
            let _ = letters.send(letter);
        }
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        self.letters = None;
        if let Some(thread) = self.thread.take() {
            // It ends with the letters, or with the conversation.
            let _ = thread.join();
        }
    }
}

fn post(job: &RemoteJob, letters: &Receiver<FromWorker>) {
    for letter in letters {
        if let Err(error) = job.ask(&written(&letter)) {
            // What was not taken cannot be made good; that it was not is to be
            // known.
            let why = error.to_string();
            let _ = job.ask(&written(&FromWorker::Failed { why }));
            return;
        }
    }
}
