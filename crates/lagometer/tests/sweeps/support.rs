//! A NATS server, programs that end with their test, and what they say.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nats_server::NatsServer;

/// The longest that a test waits for anything.
const PATIENT: Duration = Duration::from_secs(90);

pub(crate) fn lagometer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let started = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(started.unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end, which comes in time.
    pub(crate) fn output(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut pipes = (self.0.stdout.take().unwrap(), self.0.stderr.take().unwrap());
        let status = thread::scope(|scope| {
            scope.spawn(|| pipes.0.read_to_end(&mut stdout).unwrap());
            scope.spawn(|| pipes.1.read_to_end(&mut stderr).unwrap());
            let until = Instant::now() + PATIENT;
            loop {
                if let Some(status) = self.0.try_wait().unwrap() {
                    return status;
                }
                if Instant::now() > until {
                    self.kill();
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A NATS server in a folder of its own, and who comes to it.
pub(crate) struct Nats {
    pub(crate) server: NatsServer,
    _folder: tempfile::TempDir,
}

impl Nats {
    /// Starts one; `None` where there is none to start.
    pub(crate) fn with_jetstream() -> Option<Self> {
        Self::with("")
    }

    /// Starts one with `JetStream` and more settings.
    pub(crate) fn with(more: &str) -> Option<Self> {
        Self::of(|folder| NatsServer::start_with(folder, "", more))
    }

    pub(crate) fn without_jetstream() -> Option<Self> {
        Self::of(|folder| NatsServer::configured(folder, ""))
    }

    fn of(start: impl FnOnce(PathBuf) -> Option<NatsServer>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let server = start(folder.path().to_owned())?;
        Some(Self {
            server,
            _folder: folder,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    pub(crate) fn worker(&self) -> Running {
        let arguments = ["worker", "--nats", self.url(), "--threads", "1"];
        Running::start(lagometer(&arguments))
    }

    /// Somebody who speaks the protocol of NATS line by line, subscribed to a subject.
    /// Servers that know no users let anybody in.
    pub(crate) fn listener(&self, subject: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENT)).unwrap();
        let connect = r#"{"verbose":false,"user":"lab","pass":"secret"}"#;
        let subscribe = format!("CONNECT {connect}\r\nSUB {subject} 1\r\nPING\r\n");
        stream.write_all(subscribe.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        while line(&mut stream) != "PONG" {}
        stream
    }
}

/// What comes of a sweep whose first worker is killed once it has asked for so many jobs, and
/// two others come.
pub(crate) fn played_with_a_worker_killed(
    nats: &Nats,
    jobs: usize,
    start: impl FnOnce() -> Running,
) -> Output {
    let mut takes = nats.listener("lagometer.sweeps.*.take");
    let mut first = nats.worker();
    let sweep = start();
    // It asks before it plays: so it is killed while it has a job that it never brings.
    let last = (0..jobs).map(|_| message(&mut takes).1).last().unwrap();
    first.kill();
    let last: Value = serde_json::from_str(&last).unwrap();
    let killed = last["worker"].as_str().unwrap();
    let _others = [nats.worker(), nats.worker()];
    let played = sweep.output();
    let said = text(&played.stderr);
    assert!(played.status.success(), "{said}");
    let silent = format!("worker {killed} is silent; ");
    assert_eq!(said.matches(&silent).count(), 1, "{said}");
    let came = said.lines().filter_map(|line| line.split_once(" plays: "));
    let workers: BTreeSet<&str> = came.map(|(worker, _)| worker).collect();
    assert_eq!(workers.len(), 3, "{said}");
    played
}

pub(crate) fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let read = stream.read_line(&mut line).unwrap();
    assert!(read > 0, "the NATS server closed the connection");
    line.trim_end().to_owned()
}

/// The head and the body of the next message.
pub(crate) fn message(stream: &mut BufReader<TcpStream>) -> (String, String) {
    loop {
        let head = line(stream);
        if head == "PING" {
            stream.get_mut().write_all(b"PONG\r\n").unwrap();
        }
        if head.starts_with("MSG ") {
            return (head, line(stream));
        }
    }
}

/// A document as text, without when, where and how fast it was made.
pub(crate) fn findings(document: &[u8]) -> String {
    let mut document: Value = serde_json::from_slice(document).unwrap();
    for volatile in ["started", "wall_s", "host"] {
        document.as_object_mut().unwrap().remove(volatile);
    }
    document.to_string()
}

/// A worker or a run that is to fail: its exit code and what it says.
pub(crate) fn failure(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Running::start(lagometer(arguments)).output();
    (output.status.code(), text(&output.stderr))
}
