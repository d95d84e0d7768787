//! Running programs: ours and others', each end where it is to run.

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Where the two ends run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Both on processor 0.
    Same,
    /// The server on processor 0, the client on processor 1.
    Cross,
    /// Wherever the scheduler puts them.
    Free,
}

impl Placement {
    /// The server's and the client's processor.
    pub(crate) const fn cpus(self) -> [Option<u32>; 2] {
        match self {
            Self::Same => [Some(0), Some(0)],
            Self::Cross => [Some(0), Some(1)],
            Self::Free => [None, None],
        }
    }

    /// What `lagometer --pin` calls it: local end first.
    pub(crate) const fn pin(self) -> &'static str {
        match self {
            Self::Same => "0,0",
            Self::Cross => "1,0",
            Self::Free => "none",
        }
    }
}

/// What all measurements share.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Our binary.
    pub(crate) lagometer: PathBuf,
    /// How long each measures.
    pub(crate) seconds: u32,
}

impl Bench {
    /// Runs our binary with these words and returns its document.
    pub(crate) fn document(&self, words: &[&str]) -> Result<Value, String> {
        let seconds = format!("{}s", self.seconds);
        let output = Command::new(&self.lagometer)
            .args(words)
            .args(["--for", &seconds, "--json", "-"])
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| format!("{}: {error}", self.lagometer.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

/// A program on one processor, or anywhere.
pub(crate) fn on(cpu: Option<u32>, program: &str) -> Command {
    match cpu {
        Some(cpu) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string(), program]);
            command
        }
        None => Command::new(program),
    }
}

/// A server of a peer; ended when dropped.
#[derive(Debug)]
pub(crate) struct Server(Child);

impl Server {
    /// Starts it and gives it a moment to listen.
    pub(crate) fn start(mut command: Command) -> Result<Self, String> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let server = Self(child);
        thread::sleep(Duration::from_millis(300));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a client prints, where it ends well and before `limit`.
pub(crate) fn printed(mut command: Command, limit: Duration) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let deadline = Instant::now() + limit;
    while child
        .try_wait()
        .map_err(|error| error.to_string())?
        .is_none()
    {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{command:?}: did not end"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut text = String::new();
    if let Some(mut output) = child.stdout.take() {
        let _ = output.read_to_string(&mut text);
    }
    Ok(text)
}

/// A port that is free for UDP and TCP.
pub(crate) fn free_port() -> Result<u16, String> {
    for _ in 0..100 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let port = listener
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no port is free".to_owned())
}
