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
mod stream_transport;
mod threads;
mod web;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::io::Errno;
use thiserror::Error;
use tracing::warn;

use crate::core::Peer;

use admission_control::AdmissionControl;
use command::{Command, Commands};
use config::Config;
use connection_loop::{ConnectionLoop, Parts, WAKER};
pub use glance::{Glance, Hangs, LoopGlance, Watcher};
use listener::Listener;
use metrics::Metrics;
pub use node_inbox::NodeInbox;
use poller::{Poller, Waker, waker};
use recordings::{RecordingWriter, WriterThread};
use report::Report;
use role::Middle;
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
    /// That of the channels, or of what joins them.
    middle: Option<JoinHandle<Result<(), Errno>>>,
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
        /// Its name.
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

/// What a loop is woken, commanded and asked by, made before the loop.
struct Ends {
    poller: Poller,
    waker: Waker,
    commands: Arc<Commands>,
    report: Arc<Report>,
}

impl Ends {
    fn new() -> Result<Self, Errno> {
        let poller = Poller::new()?;
        let waker = waker(&poller, WAKER)?;
        Ok(Self {
            commands: Arc::new(Commands::new(waker.clone())),
            report: Arc::new(Report::new(waker.clone())),
            poller,
            waker,
        })
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
        let connections_at_most = raise_limits(&config)?;
        let loops = match role {
            Role::Channels(_) => 0,
            Role::All | Role::Edge(_) => usize::from(config.threads.connections).max(1),
        };
        let listeners = open_all(&config, loops)?;
        let [servers, clients] = [Peer::Server, Peer::Client].map(|peer| bound(&listeners, peer));
        let web = config.web.map(bind_web).transpose()?;
        let folder = config.record_to.as_deref().filter(|_| loops > 0);
        let (recordings, recording_thread) = folder.map(record_to).transpose()?.unzip();
        let left_out = recordings.as_ref().map(RecordingWriter::left_out_counter);
        let admission = AdmissionControl::new(config.limits.clone(), connections_at_most);
        let shared = Arc::new(Shared {
            recordings_left_out: left_out.unwrap_or_default(),
            joined: AtomicBool::new(matches!(role, Role::All)),
            ..Shared::new(admission, loops)
        });
        let config = Arc::new(config);
        let ends = (0..loops)
            .map(|_| Ends::new())
            .collect::<Result<Vec<_>, _>>()?;
        let mut commands: Vec<_> = ends.iter().map(|ends| Arc::clone(&ends.commands)).collect();
        let _ = shared.loops.set(commands.clone());
        let mut reports: Vec<(String, Arc<Report>)> = ends
            .iter()
            .enumerate()
            .map(|(number, ends)| (connections_name(number), Arc::clone(&ends.report)))
            .collect();
        let (adapters, middle) = role::middle(role, &config, &shared, &ends)?;
        let middle_name = middle.as_ref().map_or("channels", Middle::name);
        if let Some(middle) = &middle {
            commands.push(Arc::clone(middle.commands()));
            reports.push((middle_name.into(), Arc::clone(middle.report())));
        }

        let places = places(&config, loops + usize::from(middle.is_some()));
        let parts = ends.into_iter().zip(adapters).zip(listeners).enumerate();
        let parts = parts.map(|(number, ((ends, bus), listeners))| Parts {
            number,
            poller: ends.poller,
            waker: ends.waker,
            shared: Arc::clone(&shared),
            config: Arc::clone(&config),
            bus,
            commands: ends.commands,
            report: ends.report,
            recordings: recordings.clone(),
            listeners,
        });
        let connection_loops = parts
            .map(|parts| spawn_connections(parts, &places))
            .collect::<io::Result<Vec<_>>>()?;
        let middle = middle
            .map(|middle| {
                let place = places.get(loops).copied();
                spawn(middle_name.into(), place, move || middle.run())
            })
            .transpose()?;
        let metrics = Arc::new(Metrics::new(Arc::clone(&shared), reports));
        let web_address = web.as_ref().and_then(|web| web.local_addr().ok());
        if let Some(web) = web {
            let (metrics, shared) = (Arc::clone(&metrics), Arc::clone(&shared));
            lagometer_web::serve(web, move |path| web::answer(path, &metrics, &shared))?;
        }
        Ok(Self {
            handle: Handle {
                shared,
                loops: commands,
            },
            servers,
            clients,
            web: web_address,
            metrics,
            connection_loops,
            middle,
            recording_thread,
        })
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
        if let Some(thread) = self.middle {
            result = result.and(ended(thread));
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

fn record_to(folder: &Path) -> Result<(RecordingWriter, WriterThread), ServerError> {
    recordings::start(folder.to_owned()).map_err(|why| ServerError::Recordings {
        path: folder.display().to_string(),
        why,
    })
}

/// Files that are no connections: listeners, pollers, wakers, the web port's
/// connections, login providers', recordings and the log, and connections that
/// are being closed while another has their place.
const OTHER_FILES: u64 = 512;

/// As many files as the system gives, and the congestion control that the
/// settings ask for: tried now, not at the first connection. Returns how many
/// connections there are files for.
fn raise_limits(config: &Config) -> Result<u32, ServerError> {
    let files = threads::raise_file_limit();
    let at_most = connections_within(files);
    if at_most < config.limits.connections {
        warn!(
            files,
            connections = at_most,
            wanted = config.limits.connections,
            "fewer connections than limits.connections, for there are not files enough; raise the \
             limit of open files (ulimit -n, LimitNOFILE)"
        );
    }
    if let Some(name) = &config.tcp.congestion_control {
        stream_transport::try_congestion_control(name).map_err(|why| {
            ServerError::CongestionControl {
                name: name.clone(),
                why,
            }
        })?;
    }
    Ok(at_most)
}

/// How many connections `files` are enough for. A system that gives hardly any
/// is left to refuse by itself.
fn connections_within(files: u64) -> u32 {
    let at_most = files.saturating_sub(OTHER_FILES).max(files / 2);
    u32::try_from(at_most).unwrap_or(u32::MAX)
}

/// All addresses taken, and those opened that need not wait for an owner of
/// GLOBAL: whoever reads that the gateway runs may connect at once. The
/// listeners of each loop; the first has one for each address.
fn open_all(config: &Config, loops: usize) -> Result<Vec<Vec<Listener>>, ServerError> {
    let mut listeners = bind_all(config, loops)?;
    for listener in listeners.iter_mut().flatten() {
        if listener.peer == Peer::Server || !config.wait_for_owner {
            listener.open().map_err(|why| ServerError::Listen {
                address: listener.name.clone(),
                why,
            })?;
        }
    }
    Ok(listeners)
}

/// Where peers of this kind are listened for, without Unix sockets.
fn bound(listeners: &[Vec<Listener>], peer: Peer) -> Vec<SocketAddr> {
    let of_first = listeners.first().into_iter().flatten();
    let of_peer = of_first.filter(|listener| listener.peer == peer);
    of_peer.filter_map(|listener| listener.address).collect()
}

fn bind_web(at: SocketAddr) -> Result<TcpListener, ServerError> {
    lagometer_web::bind(at).map_err(|why| ServerError::Listen {
        address: at.to_string(),
        why,
    })
}

fn bind_all(config: &Config, loops: usize) -> Result<Vec<Vec<Listener>>, ServerError> {
    let mut of_loops: Vec<Vec<Listener>> = (0..loops).map(|_| Vec::new()).collect();
    let servers = config.servers.iter().map(|at| (at, Peer::Server));
    let clients = config.clients.iter().map(|at| (at, Peer::Client));
    for (at, peer) in servers.chain(clients) {
        let bound = Listener::bind(at, peer, loops).map_err(|why| ServerError::Listen {
            address: at.to_string(),
            why,
        })?;
        for (of_loop, listener) in of_loops.iter_mut().zip(bound) {
            of_loop.push(listener);
        }
    }
    Ok(of_loops)
}

/// A processor for each thread, if there are enough.
fn places(config: &Config, threads: usize) -> Vec<usize> {
    let processors = threads::processors();
    if !config.threads.pin {
        return Vec::new();
    }
    if processors.len() < threads {
        // Where none can be placed, nothing is missing.
        if !processors.is_empty() {
            warn!(
                threads,
                processors = processors.len(),
                "more threads than processors: none is kept on one"
            );
        }
        return Vec::new();
    }
    processors
}

/// The name of a thread that owns connections, and of what it reports.
fn connections_name(number: usize) -> String {
    format!("connections-{number}")
}

/// Starts a thread that owns connections.
fn spawn_connections(parts: Parts, places: &[usize]) -> io::Result<JoinHandle<Result<(), Errno>>> {
    let number = parts.number;
    let connection_loop = ConnectionLoop::new(parts);
    spawn(
        connections_name(number),
        places.get(number).copied(),
        move || connection_loop.run(),
    )
}

fn spawn(
    name: String,
    place: Option<usize>,
    run: impl FnOnce() -> Result<(), Errno> + Send + 'static,
) -> io::Result<JoinHandle<Result<(), Errno>>> {
    std::thread::Builder::new().name(name).spawn(move || {
        if let Some(place) = place {
            threads::pin(place);
        }
        run()
    })
}

fn ended(thread: JoinHandle<Result<(), Errno>>) -> Result<(), ServerError> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) => Err(ServerError::Loop(errno.to_string())),
        Err(_) => Err(ServerError::Loop("it panicked, and has said where".into())),
    }
}
