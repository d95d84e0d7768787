//! The shell: a coordinator and workers on NATS, each with its connection on a thread of
//! its own.
//!
//! | subject, after the prefix | who sends it |
//! | --- | --- |
//! | `sweeps.jobs.VERSION.SWEEP.N` | the coordinator: seed number N, in a work queue |
//! | `sweeps.SWEEP.recipe.N` | the coordinator: what is played, in parts |
//! | `sweeps.SWEEP.found` | workers: what they found, in parts |
//! | `sweeps.SWEEP.take` | workers: may I play this one? the coordinator answers |
//! | `sweeps.SWEEP.progress` | workers, every second |
//! | `sweeps.hello` | workers: who coordinates? every coordinator answers |

mod coordinator;
mod names;
mod worker;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::deal::BadAttempt;
pub use coordinator::{Sweep, coordinate};
use names::Names;
pub use worker::{Worker, work};

/// A job whose worker says nothing for so long is given to another.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// How often a server is asked whether it is there, by who waits for it.
const RETRY: Duration = Duration::from_secs(1);

/// Where NATS is, and who asks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its servers, separated by commas.
    pub urls: String,
    /// What all subjects begin with.
    pub prefix: String,
    /// The file with the user's credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// The file with the certificates that servers are held against, in place of the
    /// system's.
    pub authorities: Option<PathBuf>,
    /// How long it may take until a server is there.
    pub wait: Duration,
}

/// Why a sweep was not played, or a worker ended.
#[derive(Debug, Error)]
pub enum Error {
    /// An address is none.
    #[error(
        "`{url}` is no address of a NATS server: {why}; write nats://HOST:PORT or tls://HOST:PORT"
    )]
    Address {
        /// What was written.
        url: String,
        /// Why not.
        #[source]
        why: std::io::Error,
    },
    /// A prefix that subjects cannot begin with.
    #[error(
        "`{0}` is no prefix of subjects: letters, digits, `-` and `_`, in words joined by dots"
    )]
    Prefix(String),
    /// A file cannot be read.
    #[error("{path}: cannot be read: {why}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        why: std::io::Error,
    },
    /// No server answers.
    #[error(
        "no NATS server at {urls}: {why}; start one with `nats-server -js`, or name another with --nats"
    )]
    Unreachable {
        /// Where, without passwords.
        urls: String,
        /// Why not.
        #[source]
        why: async_nats::ConnectError,
    },
    /// The server does not let this user in.
    #[error(
        "the NATS server at {urls} refuses this user: {why}; name credentials with --nats-creds, or a user in the URL"
    )]
    Refused {
        /// Where.
        urls: String,
        /// What it says.
        #[source]
        why: async_nats::ConnectError,
    },
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
        matches!(
            self,
            Self::Address { .. } | Self::Prefix(_) | Self::File { .. } | Self::Unwritable(_)
        )
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
    is_lost: bool,
}

impl Connection {
    /// Says what became of the connection since last asked.
    fn report(&mut self, note: &(dyn Fn(&str) + Sync)) {
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Disconnected => {
                    self.is_lost = true;
                    note(&format!("lost NATS at {}; waiting for it", self.urls));
                }
                Event::Connected if self.is_lost => {
                    self.is_lost = false;
                    note(&format!("NATS at {} is back", self.urls));
                }
                _ => {}
            }
        }
    }
}

/// Connects; waits as long as the settings say while no server is there.
async fn connect(
    settings: &Settings,
    note: &(dyn Fn(&str) + Sync),
    stop: &AtomicBool,
) -> Result<Connection, Error> {
    let names = Names::new(&settings.prefix)?;
    let addresses = addresses(&settings.urls)?;
    let urls = shown(&addresses);
    let until = Instant::now() + settings.wait;
    let mut has_said = false;
    loop {
        let (sender, events) = mpsc::unbounded_channel();
        let options = options(settings, &addresses, sender).await?;
        let why = match options.connect(addresses.as_slice()).await {
            Ok(client) => {
                return Ok(Connection {
                    client,
                    events,
                    names,
                    urls,
                    is_lost: false,
                });
            }
            Err(why) => why,
        };
        if matches!(
            why.kind(),
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
        ) {
            return Err(Error::Refused { urls, why });
        }
        if Instant::now() >= until || stop.load(Ordering::Relaxed) {
            return Err(Error::Unreachable { urls, why });
        }
        if !has_said {
            note(&format!("waiting for NATS at {urls}: {why}"));
            has_said = true;
        }
        sleep(RETRY).await;
    }
}

async fn options(
    settings: &Settings,
    addresses: &[ServerAddr],
    events: mpsc::UnboundedSender<Event>,
) -> Result<ConnectOptions, Error> {
    let file = |path: &PathBuf, why| Error::File {
        path: path.clone(),
        why,
    };
    let mut options = ConnectOptions::new()
        .name("lagometer")
        .event_callback(move |event| {
            // Nobody listens any more once the connection is given up.
            let _ = events.send(event);
            std::future::ready(())
        });
    // The client leaves what stands in a URL to its caller.
    let named = addresses.iter().find(|address| address.has_user_pass());
    if let Some((user, password)) = named.and_then(|it| it.username().zip(it.password())) {
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    if let Some(path) = &settings.credentials {
        let read = options.credentials_file(path).await;
        options = read.map_err(|why| file(path, why))?;
    }
    if let Some(path) = &settings.authorities {
        std::fs::metadata(path).map_err(|why| file(path, why))?;
        options = options.add_root_certificates(path.clone());
    }
    Ok(options)
}

fn addresses(urls: &str) -> Result<Vec<ServerAddr>, Error> {
    let each = urls.split(',').map(|url| {
        let address = url.trim().parse::<ServerAddr>();
        address.map_err(|why| Error::Address {
            url: without_password(url.trim()),
            why,
        })
    });
    each.collect()
}

/// Addresses for a sentence.
fn shown(addresses: &[ServerAddr]) -> String {
    let each = addresses.iter().map(|address| {
        let scheme = if address.tls_required() {
            "tls"
        } else {
            "nats"
        };
        format!("{scheme}://{}:{}", address.host(), address.port())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A URL as far as it may be shown.
fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => host.to_owned(),
        None => url.to_owned(),
    }
}

/// Runs `work` on a runtime, on a thread of its own, to its end.
fn on_own_thread<T: Send>(work: impl AsyncFnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("nats".to_owned())
            .spawn_scoped(scope, || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().build().map_err(Error::Thread)?;
                let done = runtime.block_on(work());
                // A play that is still on has nobody who would take it.
                runtime.shutdown_background();
                done
            })
            .map_err(Error::Thread)?;
        match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        let two = addresses("nats://lab:secret@10.0.0.1:4223, tls://nats.example").unwrap();
        assert_eq!(shown(&two), "nats://10.0.0.1:4223, tls://nats.example:4222");
        let bad = addresses("http://lab:secret@host").unwrap_err();
        assert!(bad.is_input());
        assert!(!bad.to_string().contains("secret"), "{bad}");
    }
}
