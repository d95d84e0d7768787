//! One node of a gateway, in a process of its own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::free_addresses::free_addresses;

/// The longest that a test waits for anything.
pub(crate) const PATIENT: Duration = Duration::from_mins(1);

/// A node; killed when dropped.
pub(crate) struct Node {
    command: Command,
    child: Child,
    log: PathBuf,
    pub(crate) servers: SocketAddr,
    pub(crate) clients: SocketAddr,
    web: SocketAddr,
}

pub(crate) fn lagometer() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.arg("gateway").env("NO_COLOR", "1");
    command
}

impl Node {
    /// Starts a node that lets everyone in, with all channels in one shard. It may not be
    /// joined yet.
    pub(crate) fn start(folder: &Path, role: &str, nats: &str) -> Self {
        Self::start_by(lagometer(), folder, role, &["--nats", nats, "--shards=1"])
    }

    /// Starts one with further arguments, by a command that may begin with another program.
    pub(crate) fn start_by(
        mut command: Command,
        folder: &Path,
        role: &str,
        arguments: &[&str],
    ) -> Self {
        let [servers, clients, web] = free_addresses();
        let log = folder.join(format!("{role}-{}.log", web.port()));
        let file = fs::File::create(&log).unwrap();
        command
            .args(["-dev", "-cwm=false", "-cfsm=client_authoratative_fsm.json"])
            .args([format!("-sa={servers}"), format!("-ca={clients}")])
            .args([format!("--web={web}"), format!("--role={role}")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        Self {
            child: command.spawn().unwrap(),
            command,
            log,
            servers,
            clients,
            web,
        }
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts another in its place.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        self.child = self.command.spawn().unwrap();
    }

    /// Sends it a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&mut self) {
        self.signal("TERM");
        let until = Instant::now() + PATIENT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What it answers to a GET: the status and the body; 0 while it does not listen.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let Ok(mut stream) = TcpStream::connect(self.web) else {
            return (0, String::new());
        };
        let mut answer = String::new();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n").unwrap();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// A metric without labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find_map(|line| {
            let (found, value) = line.rsplit_once(' ')?;
            (found == name).then_some(value)
        });
        line.map_or(0, |value| value.parse::<f64>().unwrap() as u64)
    }

    /// Waits until something holds of it.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let give_up = Instant::now() + PATIENT;
        while !holds(self) {
            assert!(Instant::now() < give_up, "never: {what}\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn until_ready(&self) {
        self.until("ready", |node| node.get("/readyz").0 == 200);
    }

    pub(crate) fn owns_channels(&self) -> bool {
        self.metric("gateway_owns_channels") == 1
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
