//! A gateway that runs while a test does.

use std::cell::Cell;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::peer::Peer;
use super::settings::Settings;
use crate::free_addresses::free_addresses;
use crate::nats_server::NatsServer;

/// How long a gateway may take until it listens.
const START_AT_MOST: Duration = Duration::from_secs(20);

/// Whose gateway is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This project's.
    Ours,
    /// The same in five nodes joined by NATS: two edges, one for game servers and one for
    /// players, and three nodes which share out the channels.
    OursInNodes,
    /// The original, where [`CHANNELD`] names it.
    Channeld,
}

thread_local! {
    /// A gateway came up in this thread.
    static STARTED: Cell<bool> = const { Cell::new(false) };
}

/// Names the original's binary for Unreal games, `channeld-ue-tps`.
pub(crate) const CHANNELD: &str = "LAGOMETER_CHANNELD";

/// Where it has its metrics, whatever it is told; one beside it has none.
const CHANNELDS_METRICS: u16 = 8080;

/// A gateway of a test's own.
pub(crate) struct Gateway {
    child: Child,
    /// The other nodes of one in several.
    others: Vec<Child>,
    _nats: Option<NatsServer>,
    /// Where each of its processes has its metrics.
    pages: Vec<SocketAddr>,
    folder: PathBuf,
    pub(crate) servers: SocketAddr,
    pub(crate) clients: SocketAddr,
}

impl Gateway {
    /// Starts one with the settings every test shares.
    pub(crate) fn start(whose: Whose) -> Self {
        Self::start_with(whose, &Settings::default())
    }

    /// Starts one with settings of the test's own.
    pub(crate) fn start_with(whose: Whose, settings: &Settings) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir().join(format!(
            "lagometer-conformance-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        fs::create_dir_all(&folder).unwrap();
        settings.write_files(&folder);
        let nats = (whose == Whose::OursInNodes)
            .then(|| NatsServer::start(folder.clone()).expect("it is there"));
        let [servers, clients, metrics] = free_addresses();
        let mut pages = vec![metrics];
        let log = fs::File::create(folder.join("log")).unwrap();
        let spawn = |mut command: Command| {
            command
                .current_dir(&folder)
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log.try_clone().unwrap())
                .spawn()
                .unwrap()
        };
        let mut others = Vec::new();
        let child = match whose {
            Whose::Ours => spawn(settings.ours("gateway", &folder, servers, clients, metrics)),
            Whose::OursInNodes => {
                let server = nats.as_ref().expect("it was started");
                let node = |name, role, servers, clients, web| {
                    let mut command = settings.ours(name, &folder, servers, clients, web);
                    command.args(["--role", role, "--nats", &server.url, "--shards=4"]);
                    spawn(command)
                };
                let [one, two, three, players] = free_addresses();
                // Nobody connects there. Of another address, for a port that the system
                // chooses may be one of those above.
                let not_used = SocketAddr::from(([127, 0, 0, 2], 0));
                for (name, web) in [("one", one), ("two", two), ("three", three)] {
                    others.push(node(name, "channels", not_used, not_used, web));
                }
                others.push(node("players", "edge", not_used, clients, players));
                let child = node("servers", "edge", servers, not_used, metrics);
                pages.extend([one, two, three, players]);
                child
            }
            Whose::Channeld => {
                pages = vec![SocketAddr::from(([127, 0, 0, 1], CHANNELDS_METRICS))];
                spawn(settings.channeld(servers, clients))
            }
        };
        let mut gateway = Self {
            child,
            others,
            _nats: nats,
            pages,
            folder,
            servers,
            clients,
        };
        let waits_for = if settings.over_tcp() {
            vec![servers, clients]
        } else {
            vec![servers]
        };
        let deadline = Instant::now() + START_AT_MOST;
        while !waits_for
            .iter()
            .all(|address| TcpStream::connect(address).is_ok())
        {
            assert!(
                gateway.is_alive() && Instant::now() < deadline,
                "the gateway does not listen: {}",
                gateway.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
        // A node listens before it is joined with the others.
        while whose == Whose::OursInNodes && !gateway.is_ready() {
            assert!(
                gateway.is_alive() && Instant::now() < deadline,
                "the nodes are not joined: {}",
                gateway.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
        STARTED.set(true);
        gateway
    }

    /// Whether a gateway came up in this thread since this was asked last.
    pub(crate) fn has_started() -> bool {
        STARTED.replace(false)
    }

    /// A game server that is let in, with a token of its own.
    pub(crate) fn server(&self) -> Peer {
        Peer::let_in(self.servers)
    }

    /// A player that is let in.
    pub(crate) fn client(&self) -> Peer {
        Peer::let_in(self.clients)
    }

    /// The process's id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        let mut all = self.others.iter_mut().chain([&mut self.child]);
        all.all(|child| child.try_wait().unwrap().is_none())
    }

    /// That it still runs and lets a peer in.
    pub(crate) fn assert_serves(&mut self) {
        assert!(self.is_alive(), "the gateway has died: {}", self.log());
        let mut peer = self.server();
        peer.list();
    }

    /// What it has written.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Whether all of its processes say that they are ready.
    fn is_ready(&self) -> bool {
        let is_ready = |at: &SocketAddr| get(*at, "/readyz").starts_with("HTTP/1.1 200");
        self.pages.iter().all(is_ready)
    }

    /// The pages of its metrics, one after the other.
    pub(crate) fn metrics_page(&self) -> String {
        let pages = self.pages.iter().map(|&at| get(at, "/metrics"));
        pages.collect()
    }
}

/// The answer to a GET; empty where nobody listens yet.
fn get(at: SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(at) {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.read_to_string(&mut answer).unwrap();
    }
    answer
}

impl Drop for Gateway {
    fn drop(&mut self) {
        for child in self.others.iter_mut().chain([&mut self.child]) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Names another build of this project's binary than the one of the tests.
const OURS: &str = "LAGOMETER_BINARY";

/// The binary of this project.
pub(crate) fn own_binary() -> Command {
    let built = env!("CARGO_BIN_EXE_lagometer");
    Command::new(std::env::var_os(OURS).unwrap_or_else(|| built.into()))
}
