//! The thread that listens to the remote end, and asks it for the time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lagometer_units::Time;
use serde_json::Value;

use super::Wire;
use crate::data::is_nothing_yet;
use crate::error::Error;
use crate::frame::Opener;
use crate::message::{FromClient, FromServer, JobNumber};
use crate::offset::{Line, OffsetEstimator, Probe};
use crate::tag::Key;

/// The clock is asked for quickly at first, and then to follow its drift.
const FIRST_PINGS: u32 = 8;
const FIRST_EVERY: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_millis(500);

/// How long the remote end may be silent. It answers twice a second.
const SILENCE: Duration = Duration::from_secs(15);

/// Where what the remote end says is left for those it is for.
#[derive(Debug, Default)]
pub(super) struct Post {
    boxes: Mutex<Boxes>,
    clocks: Mutex<OffsetEstimator>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Boxes {
    jobs: BTreeMap<JobNumber, Mailbox>,
    admitted: BTreeSet<(JobNumber, u16)>,
    next_job: JobNumber,
    gone: Option<String>,
}

/// Where what is said to one job goes.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// Answers to what was asked.
    pub(super) answers: SyncSender<FromServer>,
    /// What the job says of its own accord; what nobody fetches is dropped.
    pub(super) events: SyncSender<Value>,
}

impl Post {
    /// A number for a new job and a place for what is said to it.
    pub(super) fn enrol(&self, mailbox: Mailbox) -> JobNumber {
        let mut boxes = self.boxes();
        boxes.next_job = boxes.next_job.wrapping_add(1);
        let job = boxes.next_job;
        // After the end, nothing will ever come.
        if boxes.gone.is_none() {
            boxes.jobs.insert(job, mailbox);
        }
        job
    }

    pub(super) fn strike(&self, job: JobNumber) {
        let mut boxes = self.boxes();
        boxes.jobs.remove(&job);
        boxes.admitted.retain(|(of, _)| *of != job);
    }

    pub(super) fn is_admitted(&self, job: JobNumber, port: u16) -> bool {
        self.boxes().admitted.contains(&(job, port))
    }

    pub(super) fn gone(&self) -> Option<String> {
        self.boxes().gone.clone()
    }

    pub(super) fn offset(&self) -> Option<Line> {
        self.clocks().line()
    }

    pub(super) fn offset_after(&self, probes: u64, timeout: Duration) -> Option<Line> {
        let clocks = self.clocks();
        let (clocks, _) = self
            .changed
            .wait_timeout_while(clocks, timeout, |clocks| clocks.probes() < probes)
            .unwrap_or_else(PoisonError::into_inner);
        clocks.line()
    }

    pub(super) fn add_probe(&self, probe: Probe) {
        self.clocks().add(probe);
        self.changed.notify_all();
    }

    fn deliver(&self, job: JobNumber, message: FromServer) {
        if let Some(mailbox) = self.boxes().jobs.get(&job) {
            // A job asks one thing at a time, so there is room.
            let _ = mailbox.answers.try_send(message);
        }
    }

    fn deliver_event(&self, job: JobNumber, body: Value) {
        if let Some(mailbox) = self.boxes().jobs.get(&job) {
            match mailbox.events.try_send(body) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        }
    }

    fn end(&self, why: String) {
        let mut boxes = self.boxes();
        boxes.gone.get_or_insert(why);
        // Whoever waits for an answer learns that none will come.
        boxes.jobs.clear();
    }

    fn boxes(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clocks(&self) -> MutexGuard<'_, OffsetEstimator> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens until the control connection ends.
pub(super) struct Listener {
    wire: Arc<Wire>,
    stream: TcpStream,
    opener: Opener,
    pings: u32,
    next_ping: Instant,
}

impl Listener {
    pub(super) fn new(wire: Arc<Wire>, stream: TcpStream, key: Key, rest: Vec<u8>) -> Self {
        Self {
            wire,
            stream,
            opener: Opener::new(key, rest),
            pings: 0,
            next_ping: Instant::now(),
        }
    }

    pub(super) fn listen(mut self) {
        let why = self.receive_to_the_end();
        let _ = self.stream.shutdown(Shutdown::Both);
        self.wire.post.end(why);
    }

    /// Reads all messages of the remote end until the connection ends, and returns why it
    /// did.
    fn receive_to_the_end(&mut self) -> String {
        let mut received_at = Instant::now();
        let mut buffer = vec![0; 64 << 10];
        loop {
            loop {
                let returned = self.wire.clock.now();
                match self.opener.next() {
                    Ok(Some(FromServer::Leaving { why })) => return why,
                    Ok(Some(message)) => self.on_message(message, returned),
                    Ok(None) => break,
                    Err(bad) => return bad.to_string(),
                }
            }
            if let Err(error) = self.ping_if_due() {
                return error.to_string();
            }
            if received_at.elapsed() >= SILENCE {
                return format!("it has been silent for {} s", SILENCE.as_secs());
            }
            let wait = self
                .next_ping
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            let read = self
                .stream
                .set_read_timeout(Some(wait))
                .and_then(|()| self.stream.read(&mut buffer));
            match read {
                Ok(0) => return "it closed the conversation".to_owned(),
                Ok(length) => {
                    received_at = Instant::now();
                    self.opener.handle(&buffer[..length]);
                }
                Err(error) if is_nothing_yet(&error) => {}
                Err(error) => return error.to_string(),
            }
        }
    }

    fn on_message(&self, message: FromServer, returned: Time) {
        let post = &self.wire.post;
        match message {
            FromServer::Pong {
                sent,
                received,
                answered,
            } => post.add_probe(Probe {
                sent: Time::from_nanos(sent),
                received: Time::from_nanos(received),
                answered: Time::from_nanos(answered),
                returned,
            }),
            FromServer::Event { job, body } => post.deliver_event(job, body),
            FromServer::Admitted { job, port } => {
                post.boxes().admitted.insert((job, port));
            }
            FromServer::Opened { job, .. }
            | FromServer::Refused { job, .. }
            | FromServer::Answer { job, .. }
            | FromServer::Finished { job, .. } => post.deliver(job, message),
            FromServer::Leaving { .. } => {}
        }
    }

    fn ping_if_due(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.next_ping {
            return Ok(());
        }
        self.pings = self.pings.saturating_add(1);
        self.next_ping = now
            + if self.pings < FIRST_PINGS {
                FIRST_EVERY
            } else {
                EVERY
            };
        let sent = self.wire.clock.now().as_nanos();
        self.wire.say(&FromClient::Ping { sent })
    }
}
