//! The gateway on real sockets: threads, listeners, login providers, metrics.
//!
//! ```text
//!            accepts                      bus                     bus
//! listeners ────────▶ connection loop 0 ◀────▶ channel loop ◀────▶ connection loop 1 …
//! ```
//!
//! A connection loop owns connections and sleeps in `epoll`; the channel loop
//! owns all channels. Between them are bounded queues. On one processor a
//! single loop does both, and the queues are not there. [`config`] says what
//! may be set; [`Server::start`] takes it from there. Where the channels are on another
//! node ([`Role`]), a thread that joins them with this process has the channel loop's
//! place.

mod accept_queue;
mod admission_control;
mod bus_adapter;
mod channel_loop;
mod channel_worker;
mod clock;
mod command;
pub mod config;
mod connection_loop;
mod edge_loop;
mod glance;
mod intake;
mod journal;
mod listener;
mod mailbox;
mod metrics;
mod node_inbox;
mod node_loop;
mod pace;
mod poller;
mod providers;
mod randomness;
mod recordings;
mod report;
mod role;
mod shared;
mod sockets;
mod start;
mod stream_transport;
mod threads;
mod web;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use rustix::io::Errno;
use thiserror::Error;

use command::{Command, Commands};
use config::Config;
pub use glance::{Glance, Hangs, LoopGlance, Watcher};
use metrics::Metrics;
pub use node_inbox::NodeInbox;
use recordings::WriterThread;
pub use role::{Join, Role};
use shared::Shared;

/// A gateway that runs.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    servers: Vec<SocketAddr>,
    clients: Vec<SocketAddr>,
    web: Option<SocketAddr>,
    metrics: Arc<Metrics>,
    connection_loops: Vec<JoinHandle<Result<(), Errno>>>,
    /// Those of the channels, or of what joins them.
    middle: Vec<JoinHandle<Result<(), Errno>>>,
    recording_thread: Option<WriterThread>,
}

/// Commands a running gateway, from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    /// The channel loop too, if there is one: the last.
    loops: Vec<Arc<Commands>>,
}

/// Why a gateway cannot run: the environment lacks something.
#[derive(Debug, Error)]
pub enum ServerError {
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {why}; {mend}", mend = mend_listening(why))]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        #[source]
        why: io::Error,
    },
    /// The system does not have the congestion control.
    #[error("the system has no congestion control `{name}` to give: {why}")]
    CongestionControl {
        /// The algorithm's name, as in `bbr`.
        name: String,
        /// What the system said.
        #[source]
        why: io::Error,
    },
    /// The folder for recordings cannot be made.
    #[error("{path}: cannot be made: {why}")]
    Recordings {
        /// The folder.
        path: String,
        /// What the system said.
        #[source]
        why: io::Error,
    },
    /// A node cannot be joined with the others.
    #[error("{0}")]
    Join(String),
    /// The system has no threads or files to give.
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
    /// A loop could not go on.
    #[error("a thread of the gateway has failed: {0}")]
    Loop(String),
}

/// What may help where an address cannot be listened at.
fn mend_listening(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::PermissionDenied => lagometer_platform::RESERVED_PORTS,
        _ => "is another gateway running?",
    }
}

impl From<Errno> for ServerError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

/// How many processors this process may keep threads on; 1 where threads cannot be
/// placed.
#[must_use]
pub fn processors() -> usize {
    threads::processors().len().max(1)
}

impl Server {
    /// Takes the addresses and starts the threads.
    ///
    /// # Errors
    ///
    /// [`ServerError`] when the system lacks something.
    pub fn start(config: Config) -> Result<Self, ServerError> {
        Self::start_as(config, Role::All)
    }

    /// Starts a whole gateway, or a node of one.
    ///
    /// # Errors
    ///
    /// [`ServerError`] when the system lacks something.
    pub fn start_as(config: Config, role: Role) -> Result<Self, ServerError> {
        start::start(config, role)
    }

    /// Where game servers are listened for, in the settings' order, without Unix sockets.
    #[must_use]
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Where game clients are, or will be once a server owns GLOBAL.
    #[must_use]
    pub fn clients(&self) -> &[SocketAddr] {
        &self.clients
    }

    /// Where metrics and health are.
    #[must_use]
    pub fn web(&self) -> Option<SocketAddr> {
        self.web
    }

    /// To command the gateway.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until the gateway has ended.
    ///
    /// # Errors
    ///
    /// [`ServerError::Loop`] if it did not end in order.
    pub fn join(self) -> Result<(), ServerError> {
        let mut result = Ok(());
        // A node without connections ends by itself.
        let is_alone = self.connection_loops.is_empty();
        for thread in self.connection_loops {
            result = result.and(ended(thread));
            if result.is_err() {
                // One thread alone is no gateway.
                self.handle.send_all(|| Command::End);
            }
        }
        if !is_alone {
            self.handle.send_all(|| Command::End);
        }
        for thread in self.middle {
            result = result.and(ended(thread));
            if result.is_err() {
                self.handle.send_all(|| Command::End);
            }
        }
        if let Some(thread) = self.recording_thread {
            thread.finish();
        }
        result
    }
}

impl Handle {
    /// Accepts nobody any more, lets everyone go, and ends.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.send_all(|| Command::Drain);
    }

    /// Takes other settings, where they can be changed while the gateway runs:
    /// not its addresses, threads, grid, types of data, and where recordings
    /// go.
    pub fn reload(&self, config: Config) {
        self.shared.admission.set_limits(config.limits.clone());
        let config = Arc::new(config);
        self.send_all(|| Command::Reload(Arc::clone(&config)));
    }

    fn send_all(&self, command: impl Fn() -> Command) {
        for commands in &self.loops {
            commands.give(command());
        }
    }
}

fn ended(thread: JoinHandle<Result<(), Errno>>) -> Result<(), ServerError> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) => Err(ServerError::Loop(errno.to_string())),
        Err(_) => Err(ServerError::Loop("it panicked, and has said where".into())),
    }
}
