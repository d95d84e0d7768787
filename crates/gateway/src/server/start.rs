//! A gateway started: addresses taken, what all threads share made, threads started one
//! after the other.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::io::Errno;
use tracing::warn;

use crate::core::Peer;

use super::admission_control::AdmissionControl;
use super::bus_adapter::BusAdapter;
use super::command::Commands;
use super::config::Config;
use super::connection_loop::{ConnectionLoop, Parts, WAKER};
use super::listener::Listener;
use super::metrics::Metrics;
use super::poller::{Poller, Waker, waker};
use super::recordings::{self, RecordingWriter, WriterThread};
use super::report::Report;
use super::role::{self, Middle, Role};
use super::shared::{Joined, Shared};
use super::{Handle, Server, ServerError, stream_transport, threads, web};

/// What becomes of a loop that runs.
type LoopThread = JoinHandle<Result<(), Errno>>;

/// Starts a whole gateway, or a node of one.
pub(super) fn start(config: Config, role: Role) -> Result<Server, ServerError> {
    let connections_at_most = raise_limits(&config)?;
    let loops = connection_loops(&config, &role);
    let is_edge = matches!(role, Role::Edge(_));
    let listeners = open_all(&config, loops)?;
    let [servers, clients] = [Peer::Server, Peer::Client].map(|peer| bound(&listeners, peer));
    let web = config.web.map(bind_web).transpose()?;
    let web_address = web.as_ref().and_then(|web| web.local_addr().ok());
    // Only where there are connections is there anything to record.
    let folder = config.record_to.as_deref().filter(|_| loops > 0);
    let (recordings, recording_thread) = folder.map(record_to).transpose()?.unzip();
    let left_out = recordings.as_ref().map(RecordingWriter::left_out_counter);
    let admission = AdmissionControl::new(config.limits.clone(), connections_at_most);
    let shared = Arc::new(Shared {
        recordings_left_out: left_out.unwrap_or_default(),
        joined: Joined::none_of(role.middles()),
        ..Shared::new(admission, loops)
    });
    let config = Arc::new(config);
    let ends = (0..loops)
        .map(|_| Ends::new())
        .collect::<Result<Vec<_>, _>>()?;
    let _ = shared.loops.set(commands_of(&ends, &[]));
    let (adapters, middle) = role::middle(role, &config, &shared, &ends)?;
    let commands = commands_of(&ends, &middle);
    let reports = reports_of(&ends, &middle);

    let places = places(&config, loops + middle.len());
    let common = Common {
        shared: &shared,
        config: &config,
        recordings: recordings.as_ref(),
        is_edge,
    };
    let connection_loops = start_connections(&common, ends, adapters, listeners, &places)?;
    let middle = middle.into_iter().zip(loops..);
    let middle = middle
        .map(|(middle, place)| start_middle(middle, places.get(place).copied()))
        .collect::<io::Result<Vec<_>>>()?;
    let metrics = Arc::new(Metrics::new(Arc::clone(&shared), reports));
    if let Some(web) = web {
        serve_web(web, &metrics, &shared)?;
    }
    Ok(Server {
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

/// How many threads own connections.
fn connection_loops(config: &Config, role: &Role) -> usize {
    match role {
        Role::Channels(_) => 0,
        Role::All | Role::Edge(_) => usize::from(config.threads.connections).max(1),
    }
}

/// What a loop is woken, commanded and asked by, made before the loop.
pub(super) struct Ends {
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
}

impl Ends {
    pub(super) fn new() -> Result<Self, Errno> {
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

/// The way to each loop's commands, that of the channels' last.
fn commands_of(ends: &[Ends], middle: &[Middle]) -> Vec<Arc<Commands>> {
    let of_connections = ends.iter().map(|ends| &ends.commands);
    let of_middle = middle.iter().map(Middle::commands);
    of_connections.chain(of_middle).map(Arc::clone).collect()
}

/// What each loop reports, under its thread's name.
fn reports_of(ends: &[Ends], middle: &[Middle]) -> Vec<(String, Arc<Report>)> {
    let of_connections = ends
        .iter()
        .enumerate()
        .map(|(number, ends)| (connections_name(number), Arc::clone(&ends.report)));
    let of_middle = middle.iter();
    let of_middle = of_middle.map(|middle| (middle.name(), Arc::clone(middle.report())));
    of_connections.chain(of_middle).collect()
}

/// Begins to write recordings into a folder.
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

/// What every thread that owns connections is given of the same.
struct Common<'a> {
    shared: &'a Arc<Shared>,
    config: &'a Arc<Config>,
    recordings: Option<&'a RecordingWriter>,
    is_edge: bool,
}

/// Starts the threads that own connections, each with its ends, its way to the channels
/// and its listeners.
fn start_connections(
    common: &Common<'_>,
    ends: Vec<Ends>,
    adapters: Vec<BusAdapter>,
    listeners: Vec<Vec<Listener>>,
    places: &[usize],
) -> io::Result<Vec<LoopThread>> {
    let parts = ends.into_iter().zip(adapters).zip(listeners).enumerate();
    let parts = parts.map(|(number, ((ends, bus), listeners))| Parts {
        number,
        is_edge: common.is_edge,
        poller: ends.poller,
        waker: ends.waker,
        shared: Arc::clone(common.shared),
        config: Arc::clone(common.config),
        bus,
        commands: ends.commands,
        report: ends.report,
        recordings: common.recordings.cloned(),
        listeners,
    });
    parts
        .map(|parts| spawn_connections(parts, places))
        .collect()
}

/// Starts the thread of the channels, or of what joins them.
fn start_middle(middle: Middle, place: Option<usize>) -> io::Result<LoopThread> {
    spawn(middle.name(), place, move || middle.run())
}

/// Answers whoever asks for metrics or health.
fn serve_web(web: TcpListener, metrics: &Arc<Metrics>, shared: &Arc<Shared>) -> io::Result<()> {
    let (metrics, shared) = (Arc::clone(metrics), Arc::clone(shared));
    lagometer_web::serve(web, move |path| web::answer(path, &metrics, &shared))
}

/// The name of a thread that owns connections, and of what it reports.
fn connections_name(number: usize) -> String {
    format!("connections-{number}")
}

/// Starts a thread that owns connections.
fn spawn_connections(parts: Parts, places: &[usize]) -> io::Result<LoopThread> {
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
) -> io::Result<LoopThread> {
    std::thread::Builder::new().name(name).spawn(move || {
        if let Some(place) = place {
            threads::pin(place);
        }
        run()
    })
}
