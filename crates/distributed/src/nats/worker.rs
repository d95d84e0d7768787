//! The worker's shell: takes jobs, plays them, brings what it found.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::RequestErrorKind;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::{self, AckKind, Context, Message};
use futures_util::StreamExt as _;
use futures_util::future::{Either, select, try_join_all};
use lagometer_lab::bundle::Recipe;
use lagometer_lab::saved::SavedSeed;
use lagometer_lab::{ResolveError, Resolved, RunOptions, play};
use lagometer_testbed::Testbed;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::names::PULL;
use super::{ACK_WAIT, Connection, Error, RETRY, Settings, connect, flush, on_own_thread};
use crate::fragments::{Reassembly, cut, read};
use crate::message::{Brought, Hello, Job, Progress, Take, pack, printable};

/// How often a worker says how far it is, and that it still plays.
const REPORT: Duration = Duration::from_secs(1);

/// How often a worker says that it is there.
const HELLO: Duration = Duration::from_secs(3);

/// How long an answer of a coordinator's may take.
const ANSWER: Duration = Duration::from_secs(2);

/// A job that was given away so often without being brought ends whoever plays it.
const MOST_GIVEN: i64 = 20;

/// Tries to bring what was found before another worker is to play it.
const TRIES: usize = 5;

/// Recipes that are kept: the networks of a search take turns.
const RECIPES: usize = 64;

/// A worker.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// What it is called in lines for who watches; a part that nobody else has is added.
    pub name: &'a str,
    /// The version of this program.
    pub version: &'a str,
    /// Seeds that it plays at once.
    pub threads: usize,
}

/// Plays the seeds of whatever sweeps there are, until `stop` becomes true; what is being
/// played then is given back.
///
/// # Errors
///
/// [`enum@Error`] where NATS is not there or lacks what is needed, or this worker cannot play
/// what is in the queue. A server that goes away later is waited for.
pub fn work(
    settings: &Settings,
    worker: Worker<'_>,
    note: &(dyn Fn(&str) + Sync),
    stop: &'static AtomicBool,
) -> Result<(), Error> {
    on_own_thread(async || {
        let connection = connect(settings, note, stop).await?;
        let names = connection.names.clone();
        let jetstream = jetstream::new(connection.client.clone());
        let queue = names.queue(&jetstream).await?;
        let inbox = connection.client.new_inbox();
        let own = &inbox[inbox.len().saturating_sub(6)..];
        let shift = Shift {
            consumer: RefCell::new(names.workers(&queue, worker.version).await?),
            name: format!("{}-{own}", worker.name),
            version: worker.version.to_owned(),
            attempts: Cell::new(0),
            played: Cell::new(0),
            recipes: RefCell::default(),
            urls: connection.urls.clone(),
            client: connection.client.clone(),
            names,
            jetstream,
            note,
            stop,
        };
        let threads = worker.threads.max(1);
        note(&format!(
            "worker {} takes jobs at {}, {threads} at a time",
            shift.name, shift.urls
        ));
        let slots = try_join_all((0..threads).map(|_| shift.slot()));
        let rest = shift.says_hello(connection);
        match select(Box::pin(slots), Box::pin(rest)).await {
            Either::Left((ended, _)) => ended.map(|_| ())?,
            Either::Right((ended, _)) => ended?,
        }
        note(&format!(
            "worker {} played {} jobs",
            shift.name,
            shift.played.get()
        ));
        // What was given back leaves before the connection ends.
        flush(&shift.client).await;
        Ok(())
    })
}

/// What all slots of a worker share.
struct Shift<'a> {
    client: async_nats::Client,
    jetstream: Context,
    names: super::names::Names,
    urls: String,
    consumer: RefCell<PullConsumer>,
    name: String,
    version: String,
    /// Attempts so far.
    attempts: Cell<usize>,
    /// Jobs that were brought.
    played: Cell<usize>,
    /// By sweep and number.
    recipes: RefCell<BTreeMap<(String, usize), Arc<Resolved>>>,
    note: &'a (dyn Fn(&str) + Sync),
    stop: &'static AtomicBool,
}

/// What is known of what a job plays.
enum Found {
    Plays(Arc<Resolved>),
    /// It cannot be read just now.
    NotNow,
    /// Nobody can play it.
    Never(String),
}

/// Why something is not played: this worker cannot, or nobody can.
fn not_played(why: ResolveError) -> Result<Found, Error> {
    match why {
        ResolveError::NothingToRun { why } => Err(Error::Unfit(printable(&why))),
        why => Ok(Found::Never(why.to_string())),
    }
}

/// Whether a job is to be played.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Play,
    /// It was brought by another.
    Found,
    /// Its coordinator is gone.
    Gone,
}

impl Shift<'_> {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes jobs one after the other.
    async fn slot(&self) -> Result<(), Error> {
        while !self.stops() {
            match self.next().await {
                Ok(Some(message)) => self.do_job(&message).await?,
                Ok(None) => {}
                // The server is away, or has lost the queue.
                Err(_) => {
                    sleep(RETRY).await;
                    self.renew().await;
                }
            }
        }
        Ok(())
    }

    async fn next(&self) -> Result<Option<Message>, async_nats::Error> {
        let consumer = self.consumer.borrow().clone();
        let batch = consumer.batch().max_messages(1).expires(PULL);
        let mut batch = batch.messages().await?;
        batch.next().await.transpose()
    }

    async fn renew(&self) {
        if let Ok(queue) = self.names.queue(&self.jetstream).await
            && let Ok(consumer) = self.names.workers(&queue, &self.version).await
        {
            self.consumer.replace(consumer);
        }
    }

    /// Says every so often that this worker is there, and learns whether the sweeps that
    /// are on are of its version.
    async fn says_hello(&self, mut connection: Connection) -> Result<(), Error> {
        let hello = Hello {
            version: self.version.clone(),
            worker: self.name.clone(),
        };
        loop {
            connection.report(self.note);
            let answer: Option<Hello> = self.ask(self.names.hello(), &hello).await.ok();
            if let Some(Hello {
                version: theirs, ..
            }) = answer
                && theirs != self.version
                && self.attempts.get() == 0
            {
                let ours = self.version.clone();
                let theirs = printable(&theirs);
                return Err(Error::Version { theirs, ours });
            }
            sleep(HELLO).await;
        }
    }

    /// Asks a coordinator.
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        subject: String,
        question: &impl serde::Serialize,
    ) -> Result<T, Turn> {
        let text = serde_json::to_vec(question)
            .unwrap_or_else(|_| unreachable!("text and numbers can be written"));
        let asked = self.client.request(subject, text.into());
        let unclear = Turn::Play;
        match timeout(ANSWER, asked).await {
            Ok(Ok(answer)) => serde_json::from_slice(&answer.payload).map_err(|_| unclear),
            Ok(Err(why)) if why.kind() == RequestErrorKind::NoResponders => Err(Turn::Gone),
            Ok(Err(_)) | Err(_) => Err(unclear),
        }
    }

    async fn do_job(&self, message: &Message) -> Result<(), Error> {
        // An acknowledgement that does not arrive has the job come again.
        let end = async |kind| {
            let _ = message.ack_with(kind).await;
        };
        let Ok(job) = serde_json::from_slice::<Job>(&message.payload) else {
            end(AckKind::Term).await;
            return Ok(());
        };
        match self.turn(&job).await {
            Turn::Play => {}
            Turn::Found => {
                end(AckKind::Ack).await;
                return Ok(());
            }
            Turn::Gone => {
                end(AckKind::Term).await;
                return Ok(());
            }
        }
        let given = message.info().map_or(1, |info| info.delivered);
        if given > MOST_GIVEN {
            let why = format!(
                "{MOST_GIVEN} workers were given it and none brought it back; play it alone to see \
                 why"
            );
            let turn = self.bring(&job, &Brought::Failed(why)).await;
            end(turn).await;
            return Ok(());
        }
        let resolved = match self.resolved(&job).await {
            Ok(Found::Plays(resolved)) => resolved,
            Ok(Found::NotNow) => {
                end(AckKind::Nak(Some(RETRY))).await;
                return Ok(());
            }
            Ok(Found::Never(why)) => {
                let turn = self.bring(&job, &Brought::Failed(why)).await;
                end(turn).await;
                return Ok(());
            }
            Err(why) => {
                end(AckKind::Nak(None)).await;
                flush(&self.client).await;
                return Err(why);
            }
        };
        let Some(brought) = self.play(&job, resolved, message).await else {
            end(AckKind::Nak(None)).await;
            return Ok(());
        };
        let turn = self.bring(&job, &brought).await;
        if matches!(turn, AckKind::Ack) {
            self.played.set(self.played.get() + 1);
        }
        end(turn).await;
        Ok(())
    }

    /// Whether the coordinator still wants this job.
    async fn turn(&self, job: &Job) -> Turn {
        let subject = self.names.of_sweep(&job.sweep, "take");
        match self.ask(subject, &self.progress(job, 0)).await {
            Ok(Take { play: true }) => Turn::Play,
            Ok(Take { play: false }) => Turn::Found,
            Err(turn) => turn,
        }
    }

    fn progress(&self, job: &Job, played_ms: u64) -> Progress {
        Progress {
            worker: self.name.clone(),
            number: job.number,
            played_ms,
        }
    }

    /// What the job plays.
    ///
    /// # Errors
    ///
    /// [`Error::Unfit`] where this worker lacks a lane of it, and another may not.
    async fn resolved(&self, job: &Job) -> Result<Found, Error> {
        let mut resolved = match self.of_recipe(job).await? {
            Found::Plays(resolved) => resolved,
            other => return Ok(other),
        };
        if !job.instead.is_empty() {
            resolved = match resolved.with_lanes(job.instead.clone(), Testbed::Sim) {
                Ok(resolved) => Arc::new(resolved),
                Err(why) => return not_played(why),
            };
        }
        let lanes = resolved.lanes.iter().map(|lane| &lane.name);
        if lanes.clone().eq(&job.lanes) {
            return Ok(Found::Plays(resolved));
        }
        let is_lacked = |lane: &&String| !lanes.clone().any(|it| it == *lane);
        let lacked: Vec<String> = job.lanes.iter().filter(is_lacked).cloned().collect();
        if lacked.is_empty() {
            return Ok(Found::Never("it has other lanes than it says".to_owned()));
        }
        Err(Error::Unfit(printable(&format!(
            "the coordinator plays other lanes (this build lacks {})",
            lacked.join(", ")
        ))))
    }

    /// What the job's recipe plays, which is kept for the next.
    async fn of_recipe(&self, job: &Job) -> Result<Found, Error> {
        let key = (job.sweep.clone(), job.recipe);
        if let Some(resolved) = self.recipes.borrow().get(&key) {
            return Ok(Found::Plays(Arc::clone(resolved)));
        }
        let Some(bytes) = self.recipe(&job.sweep, job.recipe).await else {
            return Ok(Found::NotNow);
        };
        let recipe = match Recipe::from_bytes(&bytes) {
            Ok(recipe) => recipe,
            Err(why) => return Ok(Found::Never(why.to_string())),
        };
        let resolved = match recipe.resolve(Testbed::Sim) {
            Ok(resolved) => Arc::new(resolved),
            Err(why) => return not_played(why),
        };
        let mut recipes = self.recipes.borrow_mut();
        if recipes.len() >= RECIPES {
            recipes.clear();
        }
        recipes.insert(key, Arc::clone(&resolved));
        Ok(Found::Plays(resolved))
    }

    async fn recipe(&self, sweep: &str, recipe: usize) -> Option<Vec<u8>> {
        let stream = self.names.stream_of(sweep);
        let stream = self.jetstream.get_stream_no_info(stream).await.ok()?;
        let mut reassembly = Reassembly::default();
        for index in 0.. {
            let subject = self.names.recipe(sweep, recipe, index);
            let message = stream.get_last_raw_message_by_subject(&subject).await;
            let message = message.ok()?;
            if let Some(whole) = reassembly.add(&read(&message.payload)?) {
                return Some(whole);
            }
        }
        None
    }

    /// Plays a job, and says every second how far it is; `None` where it was stopped.
    async fn play(&self, job: &Job, resolved: Arc<Resolved>, message: &Message) -> Option<Brought> {
        let played_ms = Arc::new(AtomicU64::new(0));
        let (seed, stop) = (job.seed, self.stop);
        let counts = Arc::clone(&played_ms);
        let mut playing = spawn_blocking(move || {
            let options = RunOptions {
                seeds: vec![seed],
                threads: 1,
            };
            let progress = |played: Duration| {
                counts.fetch_add(played.as_millis() as u64, Ordering::Relaxed);
            };
            let runs = play(&resolved, &options, &progress, stop);
            runs.first().map(SavedSeed::from)
        });
        let reports = self.names.of_sweep(&job.sweep, "progress");
        let found = loop {
            if let Ok(found) = timeout(REPORT, &mut playing).await {
                break found;
            }
            let report = self.progress(job, played_ms.load(Ordering::Relaxed));
            if let Ok(text) = serde_json::to_vec(&report) {
                // Both are said again in a second.
                let _ = self.client.publish(reports.clone(), text.into()).await;
                let _ = message.ack_with(AckKind::Progress).await;
            }
        };
        let found = match found {
            Ok(found) => found?,
            // The lab keeps its lanes' panics to itself.
            Err(why) => return Some(Brought::Failed(format!("playing it panicked: {why}"))),
        };
        (!self.stops()).then_some(Brought::Played(found))
    }

    /// Stores what was found for the coordinator, and returns how the job ends.
    async fn bring(&self, job: &Job, brought: &Brought) -> AckKind {
        self.attempts.set(self.attempts.get() + 1);
        let attempt = format!("{}/{}", self.name, self.attempts.get());
        let Ok(bytes) = pack(brought) else {
            return AckKind::Nak(None);
        };
        let most = self.client.server_info().max_payload;
        let subject = self.names.of_sweep(&job.sweep, "found");
        let mut why = None;
        for _ in 0..TRIES {
            match self
                .store(&subject, cut(&attempt, job.number, &bytes, most))
                .await
            {
                Ok(()) => return AckKind::Ack,
                // Nobody asks for it any more.
                Err(gone) if gone.kind() == PublishErrorKind::StreamNotFound => {
                    return AckKind::Term;
                }
                Err(other) => why = Some(other),
            }
            sleep(RETRY).await;
        }
        if let Some(why) = why {
            (self.note)(&format!(
                "seed {} cannot be brought to NATS at {}: {why}",
                job.seed, self.urls
            ));
        }
        AckKind::Nak(Some(ACK_WAIT))
    }

    async fn store(
        &self,
        subject: &str,
        fragments: Vec<Vec<u8>>,
    ) -> Result<(), jetstream::context::PublishError> {
        let mut stored = Vec::new();
        for fragment in fragments {
            let sent = self.jetstream.publish(subject.to_owned(), fragment.into());
            stored.push(sent.await?);
        }
        for each in stored {
            each.await?;
        }
        Ok(())
    }
}
