//! The coordinator's shell: puts jobs in, listens to workers, reads what they found.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::stream::{Info, InfoError, Stream};
use async_nats::jetstream::{self, Context, Message as Delivered};
use async_nats::{Message, Subscriber};
use futures_util::{StreamExt as _, TryStreamExt as _};
use lagometer_lab::SeedRun;
use lagometer_lab::bundle::Recipe;
use lagometer_nats::unique_name;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::play_queue::PlayQueue;
use super::{ACK_WAIT, Connection, Error, Settings, beside_own_thread, connect, flush};
use crate::deal::{Deal, Given, SILENT, Task, WorkerEvent};
use crate::fragments::{cut, read};
use crate::message::{Hello, Progress, Take, printable};

/// How often is looked whether to stop, and whether workers are silent.
const LOOK: Duration = Duration::from_millis(250);

// Two looks, for one may be late.
const _: () = assert!(SILENT.as_millis() + 2 * LOOK.as_millis() < ACK_WAIT.as_millis());

/// After so long without findings the queue is held against what is owed.
const AUDIT: Duration = Duration::from_secs(5);

/// Messages of findings that are asked for at once: each may be a megabyte.
const AT_ONCE: usize = 32;

/// Jobs that are put in before the first is confirmed.
const IN_FLIGHT: usize = 64;

/// What a coordinator left behind that was killed is cleared away by the next after so
/// long without a message.
const FORGOTTEN: Duration = Duration::from_hours(24);

/// What workers are to have before they are asked to play.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The version of this program, whose workers alone play.
    pub version: &'a str,
    /// What may be played, by number.
    pub recipes: &'a [Recipe],
}

/// How long the end of a sweep may take to be cleared away.
const CLEARS_WITHIN: Duration = Duration::from_secs(3);

/// Has workers play what `drive` asks for, and returns what that makes of it.
///
/// `progress` is called with virtual time that was played, `note` lines for who watches.
/// When `stop` becomes true the sweep ends: `drive` is handed nothing more.
///
/// # Errors
///
/// [`enum@Error`] where NATS is not there at the start or lacks what is needed, or the sweep
/// cannot be played. A server that goes away later is waited for.
pub fn coordinate<T>(
    settings: &Settings,
    sweep: &Sweep<'_>,
    progress: &(dyn Fn(Duration) + Sync),
    note: &(dyn Fn(&str) + Sync),
    stop: &AtomicBool,
    drive: impl FnOnce(&mut PlayQueue) -> T,
) -> Result<T, Error> {
    let (mut queue, end) = PlayQueue::new();
    let coordinates = async || {
        let connection = connect(settings, note, stop).await?;
        let mut coordinator = Coordinator::new(connection, sweep, end.found)?;
        let played = coordinator.play(end.tasks, progress, note, stop).await;
        // Where the server is away, a later sweep clears away.
        let _ = timeout(CLEARS_WITHIN, coordinator.clear_away()).await;
        played
    };
    beside_own_thread(coordinates, move || drive(&mut queue))
}

struct Coordinator {
    connection: Connection,
    jetstream: Context,
    id: String,
    version: String,
    recipes: Vec<Vec<u8>>,
    deal: Deal,
    found: mpsc::Sender<(usize, SeedRun)>,
    began: Instant,
    /// When something was last found, or the queue looked at.
    quiet_since: Instant,
}

/// What workers ask and say.
struct Subscriptions {
    hello: Subscriber,
    take: Subscriber,
    progress: Subscriber,
}

impl Coordinator {
    fn new(
        connection: Connection,
        sweep: &Sweep<'_>,
        found: mpsc::Sender<(usize, SeedRun)>,
    ) -> Result<Self, Error> {
        let id = unique_name(&connection.client);
        let jetstream = jetstream::new(connection.client.clone());
        let now = Instant::now();
        let recipes = sweep.recipes.iter().map(Recipe::to_bytes);
        Ok(Self {
            deal: Deal::new(&id),
            found,
            recipes: recipes.collect::<Result<_, _>>()?,
            version: sweep.version.to_owned(),
            connection,
            jetstream,
            id,
            began: now,
            quiet_since: now,
        })
    }

    /// Plays all `tasks` as they come, until there will be no more or play is to stop.
    async fn play(
        &mut self,
        mut tasks: UnboundedReceiver<Vec<Task>>,
        progress: &(dyn Fn(Duration) + Sync),
        note: &(dyn Fn(&str) + Sync),
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        self.forget_the_forgotten().await;
        let mut subscriptions = self.listen().await?;
        let (queue, finder) = self.set_up().await?;
        note(&format!(
            "sweep {} is at {}: workers join it with `lagometer worker --nats`",
            self.id, self.connection.urls
        ));
        let mut found = self.findings(&finder).await?;
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.load(Ordering::Relaxed) {
            tokio::select! {
                asked = tasks.recv() => match asked {
                    Some(asked) => self.on_asked(asked, note).await?,
                    None => return Ok(()),
                },
                Some(hello) = subscriptions.hello.next() => self.on_hello(&hello, note).await,
                Some(take) = subscriptions.take.next() => self.on_take(&take, note).await,
                Some(report) = subscriptions.progress.next() => self.on_progress(&report, progress, note),
                message = found.next() => match message {
                    Some(Ok(message)) => self.on_found(&message, progress).await?,
                    // It asks anew by itself once the server is back.
                    Some(Err(_)) => {}
                    None => found = self.findings(&finder).await?,
                },
                _ = look.tick() => {
                    self.connection.report(note);
                    let silent = self.deal.silent_workers(self.began.elapsed());
                    self.say(silent, note);
                    if !self.deal.is_done() && self.quiet_since.elapsed() >= AUDIT {
                        self.quiet_since = Instant::now();
                        self.audit(&queue, &finder, note).await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts what is asked for into the queue. Where that fails before anything was found
    /// the sweep does; later it is put in once the server is there again.
    async fn on_asked(
        &mut self,
        asked: Vec<Task>,
        note: &(dyn Fn(&str) + Sync),
    ) -> Result<(), Error> {
        let numbers: Vec<usize> = asked.into_iter().map(|task| self.deal.add(task)).collect();
        let is_first = numbers.first() == Some(&0);
        let put = self.put(numbers).await;
        self.quiet_since = Instant::now();
        match put {
            Err(why) if is_first => Err(why),
            Err(why) => {
                note(&format!("{why}; it is tried again"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Makes the queue and the sweep's stream, with the recipes in it.
    async fn set_up(&self) -> Result<(Stream, PullConsumer), Error> {
        let names = &self.connection.names;
        let queue = names.queue(&self.jetstream).await?;
        names.workers(&queue, &self.version).await?;
        let own = names.own_stream(&self.jetstream, &self.id).await?;
        let finder = names.finder(&own, &self.id).await?;
        // They are read back as text in JSON, which makes them longer.
        let most = self.connection.client.server_info().max_payload / 2;
        for (number, recipe) in self.recipes.iter().enumerate() {
            for (index, fragment) in cut("", number, recipe, most).into_iter().enumerate() {
                let subject = names.recipe(&self.id, number, index);
                self.publish(subject, fragment, "what is played cannot be stored")
                    .await?;
            }
        }
        Ok((queue, finder))
    }

    async fn publish(
        &self,
        subject: String,
        bytes: Vec<u8>,
        what: &'static str,
    ) -> Result<(), Error> {
        let failed = Error::jetstream(what);
        let sent = self.jetstream.publish(subject, bytes.into()).await;
        let stored = sent.map_err(|why| failed(why.into()))?.await;
        stored.map_err(|why| failed(why.into())).map(|_| ())
    }

    /// Puts jobs into the queue.
    async fn put(&self, numbers: Vec<usize>) -> Result<(), Error> {
        let names = &self.connection.names;
        let jobs = numbers
            .into_iter()
            .filter_map(|number| self.deal.job(number));
        let each = jobs.map(|job| {
            let number = job.number;
            let job = serde_json::to_vec(&job)
                .unwrap_or_else(|_| unreachable!("text and numbers can be written"));
            let subject = names.job(&self.version, &self.id, &number.to_string());
            Ok(self.publish(subject, job, "a job cannot be stored"))
        });
        futures_util::stream::iter(each)
            .try_buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await
    }

    async fn listen(&self) -> Result<Subscriptions, Error> {
        let names = &self.connection.names;
        let client = &self.connection.client;
        let subscribe = async |subject: String| {
            let made = client.subscribe(subject).await;
            made.map_err(|why| Error::jetstream("cannot listen to workers")(why.into()))
        };
        Ok(Subscriptions {
            hello: subscribe(names.hello()).await?,
            take: subscribe(names.of_sweep(&self.id, "take")).await?,
            progress: subscribe(names.of_sweep(&self.id, "progress")).await?,
        })
    }

    async fn findings(
        &self,
        finder: &PullConsumer,
    ) -> Result<jetstream::consumer::pull::Stream, Error> {
        let messages = finder
            .stream()
            .max_messages_per_batch(AT_ONCE)
            .heartbeat(Duration::from_secs(5))
            .messages()
            .await;
        messages.map_err(|why| Error::jetstream("findings cannot be read")(why.into()))
    }

    async fn on_hello(&mut self, message: &Message, note: &(dyn Fn(&str) + Sync)) {
        if let Ok(hello) = serde_json::from_slice::<Hello>(&message.payload)
            && hello.version == self.version
        {
            self.on_worker(&hello.worker, note);
        }
        let answer = Hello {
            version: self.version.clone(),
            worker: String::new(),
        };
        self.answer(message, &answer).await;
    }

    async fn on_take(&mut self, message: &Message, note: &(dyn Fn(&str) + Sync)) {
        if let Ok(asked) = serde_json::from_slice::<Progress>(&message.payload) {
            self.on_worker(&asked.worker, note);
            let play = self.deal.is_owed(asked.number);
            self.answer(message, &Take { play }).await;
        }
    }

    fn on_progress(
        &mut self,
        message: &Message,
        progress: &(dyn Fn(Duration) + Sync),
        note: &(dyn Fn(&str) + Sync),
    ) {
        if let Ok(said) = serde_json::from_slice::<Progress>(&message.payload) {
            self.on_worker(&said.worker, note);
            let played = Duration::from_millis(said.played_ms);
            progress(self.deal.on_progress(said.number, played));
        }
    }

    async fn on_found(
        &mut self,
        message: &Delivered,
        progress: &(dyn Fn(Duration) + Sync),
    ) -> Result<(), Error> {
        self.quiet_since = Instant::now();
        if let Some(fragment) = read(&message.payload)
            && let Given::Found { saved, played } = self.deal.on_fragment(&fragment)?
        {
            progress(played);
            // Whoever asked may have stopped on its own.
            let _ = self
                .found
                .send((fragment.header.number, SeedRun::from(saved)));
        }
        // Where that does not arrive the fragment comes again, and counts once.
        let _ = message.ack().await;
        Ok(())
    }

    async fn answer(&self, message: &Message, answer: &impl serde::Serialize) {
        if let (Some(reply), Ok(text)) = (&message.reply, serde_json::to_vec(answer)) {
            // A worker that is not answered asks again.
            let _ = (self.connection.client)
                .publish(reply.clone(), text.into())
                .await;
        }
    }

    fn on_worker(&mut self, worker: &str, note: &(dyn Fn(&str) + Sync)) {
        let events = self.deal.on_worker(worker, self.began.elapsed());
        self.say(events, note);
    }

    fn say(&self, events: impl IntoIterator<Item = WorkerEvent>, note: &(dyn Fn(&str) + Sync)) {
        let workers = self.deal.workers();
        for each in events {
            note(&match each {
                WorkerEvent::Joined(name) => {
                    format!("worker {} plays: {workers} in all", printable(&name))
                }
                WorkerEvent::Silent(name) => format!(
                    "worker {} is silent; what it had goes to others: {workers} in all",
                    printable(&name)
                ),
            });
        }
    }

    /// Puts in again what is neither found nor in the queue.
    async fn audit(&mut self, queue: &Stream, finder: &PullConsumer, note: &(dyn Fn(&str) + Sync)) {
        let queued = match (self.queued(queue).await, finder.get_info().await) {
            (Ok(queued), Ok(info)) if info.num_pending + info.num_ack_pending as u64 == 0 => queued,
            // What was brought is read first.
            (Ok(_), Ok(_)) => return,
            _ => {
                // The server is away, or has lost what it had: the next look shows.
                let _ = self.set_up().await;
                return;
            }
        };
        let lost = self.deal.lost(&queued);
        let count = lost.len();
        if count > 0 && self.put(lost).await.is_ok() {
            note(&format!(
                "{count} jobs had left the queue unplayed; put in again"
            ));
        }
    }

    /// The jobs of this sweep that are in the queue, taken or not.
    async fn queued(&self, queue: &Stream) -> Result<BTreeSet<usize>, InfoError> {
        let all = self.connection.names.job(&self.version, &self.id, "*");
        let mut subjects = queue.info_with_subjects(all).await?;
        let mut queued = BTreeSet::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject?;
            let number: Option<usize> = subject.rsplit('.').next().and_then(|it| it.parse().ok());
            queued.extend(number);
        }
        Ok(queued)
    }

    /// Takes jobs that nobody needs any more out of the queue, and the sweep's stream
    /// away. What cannot be cleared away now is by a later sweep.
    async fn clear_away(&self) {
        let names = &self.connection.names;
        let all = names.job(&self.version, &self.id, "*");
        if let Ok(queue) = names.queue(&self.jetstream).await {
            let _ = queue.purge().filter(all).await;
        }
        let own = names.stream_of(&self.id);
        let _ = self.jetstream.delete_stream(own).await;
        flush(&self.connection.client).await;
    }

    /// Clears away the streams of coordinators that were killed.
    async fn forget_the_forgotten(&self) {
        let begins = self.connection.names.streams_of_sweeps();
        let now = std::time::SystemTime::now();
        let is_forgotten = |info: &Info| {
            let last = std::time::SystemTime::from(info.state.last_timestamp)
                .max(std::time::SystemTime::from(info.created));
            let age = now.duration_since(last).unwrap_or_default();
            info.config.name.starts_with(&begins) && age > FORGOTTEN
        };
        let mut streams = self.jetstream.streams();
        while let Some(Ok(info)) = streams.next().await {
            if is_forgotten(&info) {
                let _ = self.jetstream.delete_stream(&info.config.name).await;
            }
        }
    }
}
