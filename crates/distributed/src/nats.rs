//! The shell: a coordinator and workers on NATS, each with its connection on a thread of
//! its own.
//!
//! | subject, after the prefix | who sends it |
//! | --- | --- |
//! | `sweeps.jobs.VERSION.SWEEP.N` | the coordinator: job number N, in a work queue |
//! | `sweeps.SWEEP.recipe.R.N` | the coordinator: recipe number R, in fragments |
//! | `sweeps.SWEEP.found` | workers: what they found, in fragments |
//! | `sweeps.SWEEP.take` | workers: may I play this one? the coordinator answers |
//! | `sweeps.SWEEP.progress` | workers, every second |
//! | `sweeps.hello` | workers: who coordinates? every coordinator answers |

mod coordinator;
mod names;
mod play_queue;
mod worker;

use std::sync::atomic::AtomicBool;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use async_nats::{Client, Event};
pub use lagometer_nats::Settings;
use lagometer_nats::{Outages, RETRY};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::deal::BadAttempt;
pub use coordinator::{Sweep, coordinate};
use names::Names;
pub use play_queue::{Ended, PlayQueue};
pub use worker::{Worker, work};

/// A job whose worker says nothing for so long is given to another.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// Why a sweep was not played, or a worker ended.
#[derive(Debug, Error)]
pub enum Error {
    /// NATS cannot be reached.
    #[error(transparent)]
    Nats(#[from] lagometer_nats::Error),
    /// `JetStream` does not do what is needed.
    #[error(
        "NATS JetStream: {what}: {why}; it must be enabled (`nats-server -js`), permitted to this user, and have room"
    )]
    JetStream {
        /// What was tried.
        what: &'static str,
        /// Why it cannot be.
        #[source]
        why: async_nats::Error,
    },
    /// A worker cannot play what is asked for.
    #[error("this worker plays none of this sweep: {0}")]
    Unfit(String),
    /// The sweep's coordinator is of another version.
    #[error(
        "the sweep is of lagometer {theirs}, and this worker is {ours}: start the version of the coordinator"
    )]
    Version {
        /// The coordinator's.
        theirs: String,
        /// The worker's.
        ours: String,
    },
    /// The sweep cannot be played.
    #[error(transparent)]
    Attempt(#[from] BadAttempt),
    /// It cannot be written for others.
    #[error("what is played cannot be sent: {0}")]
    Unwritable(#[from] lagometer_lab::bundle::NoBundle),
    /// The system gives no thread.
    #[error("cannot start the thread of NATS: {0}")]
    Thread(#[source] std::io::Error),
}

impl Error {
    /// Whether what was written on the command line is wrong, rather than the
    /// environment.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Nats(why) => why.is_input(),
            _ => matches!(self, Self::Unwritable(_)),
        }
    }

    fn jetstream(what: &'static str) -> impl Fn(Box<dyn std::error::Error + Send + Sync>) -> Self {
        move |why| Self::JetStream { what, why }
    }
}

/// A connection, and what becomes of it.
struct Connection {
    client: Client,
    events: mpsc::UnboundedReceiver<Event>,
    names: Names,
    /// Where, without passwords.
    urls: String,
    outages: Outages,
}

impl Connection {
    /// Says what became of the connection since last asked.
    fn report(&mut self, note: &(dyn Fn(&str) + Sync)) {
        while let Ok(event) = self.events.try_recv() {
            self.outages.report(&event, note);
        }
    }
}

/// How long what was said last may take to leave. A connection that is lost never says
/// that it cannot.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// Has what was said leave.
async fn flush(client: &Client) {
    // What has not left by then is said again by whoever needs it.
    let _ = timeout(LEAVES_WITHIN, client.flush()).await;
}

/// Connects; waits as long as the settings say while no server is there.
async fn connect(
    settings: &Settings,
    note: &(dyn Fn(&str) + Sync),
    stop: &AtomicBool,
) -> Result<Connection, Error> {
    let names = Names::new(&settings.prefix)?;
    let reached = lagometer_nats::connect(settings, note, stop).await?;
    Ok(Connection {
        client: reached.client,
        events: reached.events,
        names,
        outages: Outages::of(reached.urls.clone()),
        urls: reached.urls,
    })
}

/// Runs `work` on a runtime, on a thread of its own, to its end.
fn on_own_thread<T: Send>(work: impl AsyncFnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| joined(start(scope, work)?))
}

/// As [`on_own_thread`], while `beside` runs on this thread; the error of `work` counts
/// before what `beside` returns. Neither may wait for ever once the other has ended.
fn beside_own_thread<T>(
    work: impl AsyncFnOnce() -> Result<(), Error> + Send,
    beside: impl FnOnce() -> T,
) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = start(scope, work)?;
        let done = beside();
        joined(thread).map(|()| done)
    })
}

fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl AsyncFnOnce() -> Result<T, Error> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<T, Error>>, Error> {
    std::thread::Builder::new()
        .name("nats".to_owned())
        .spawn_scoped(scope, || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().map_err(Error::Thread)?;
            let done = runtime.block_on(work());
            // A play that is still on has nobody who would take it.
            runtime.shutdown_background();
            done
        })
        .map_err(Error::Thread)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
