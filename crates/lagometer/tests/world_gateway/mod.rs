//! A gateway by the binary for worlds that are played on it by the binary.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::free_addresses::free_addresses;

/// The grid of `experiments/world/spatial.toml`.
const GRID: &str = r#"{"Config": {"WorldOffsetX": -15000, "WorldOffsetZ": -15000,
  "GridWidth": 2000, "GridHeight": 2000, "GridCols": 15, "GridRows": 15,
  "ServerCols": 3, "ServerRows": 3, "ServerInterestBorderSize": 0}}"#;

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A gateway in a process of its own. It ends with this.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    pub(crate) installation: Installation,
}

/// Where a gateway is, and how it is started there.
pub(crate) struct Installation {
    /// For servers, for players, for metrics.
    pub(crate) addresses: [SocketAddr; 3],
    folder: tempfile::TempDir,
    flags: &'static [&'static str],
}

impl Gateway {
    /// One with flags and a settings file of its own.
    pub(crate) fn start(flags: &'static [&'static str], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("grid.json"), GRID).unwrap();
        std::fs::write(folder.path().join("gateway.toml"), settings).unwrap();
        let installation = Installation {
            addresses: free_addresses(),
            folder,
            flags,
        };
        let child = installation.start();
        Self {
            child,
            installation,
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Installation {
    /// Starts a gateway here; no other runs.
    pub(crate) fn start(&self) -> Child {
        let [servers, clients, web] = &self.addresses;
        let file = |name| self.folder.path().join(name);
        let mut child = Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .args(["gateway", "--dev", "--cwm=false", "--loglevel=2"])
            .args(self.flags)
            .args(["--chs", "channel_settings_hifi.json"])
            .args(["--cfsm", "client_authoratative_fsm.json"])
            .arg("--config")
            .arg(file("gateway.toml"))
            .arg("--scc")
            .arg(file("grid.json"))
            .args(["--sa", &servers.to_string(), "--ca", &clients.to_string()])
            .args(["--web", &web.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while TcpStream::connect(clients).is_err() || TcpStream::connect(servers).is_err() {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the gateway does not start: {ended:?}");
            assert!(began.elapsed() < TIMEOUT, "the gateway does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    }
}
