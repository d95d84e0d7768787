//! A NATS server, programs that end with their test, and what they say.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

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

/// A NATS server of the test's own.
pub(crate) struct Nats {
    pub(crate) server: Running,
    pub(crate) url: String,
    pub(crate) folder: tempfile::TempDir,
}

impl Nats {
    /// Starts one; `None` where there is none to start. `port` is -1 for any.
    pub(crate) fn start(port: i32, settings: &str) -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), port, settings)
    }

    pub(crate) fn start_in(folder: tempfile::TempDir, port: i32, settings: &str) -> Option<Self> {
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\nports_file_dir: \"{}\"\n{settings}\n",
            path("")
        );
        let config = config.replace("STORE", &path("store"));
        fs::write(path("nats.conf"), config).unwrap();
        let mut command = Command::new("nats-server");
        command.args(["-c", &path("nats.conf"), "-l", &path("nats.log")]);
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = match started {
            Ok(server) => Running(server),
            Err(why) => {
                let needed = std::env::var_os("LAGOMETER_REQUIRE_NATS").is_some();
                assert!(
                    !needed,
                    "LAGOMETER_REQUIRE_NATS is set, but nats-server: {why}"
                );
                eprintln!("skipped: nats-server: {why}");
                return None;
            }
        };
        let ports = path(&format!("nats-server_{}.ports", server.0.id()));
        let until = Instant::now() + PATIENT;
        let url = loop {
            let written = fs::read_to_string(&ports).unwrap_or_default();
            if let Ok(ports) = serde_json::from_str::<Value>(&written) {
                break ports["nats"][0].as_str().unwrap().to_owned();
            }
            let log = fs::read_to_string(path("nats.log")).unwrap_or_default();
            assert!(Instant::now() < until, "nats-server does not start: {log}");
            thread::sleep(Duration::from_millis(20));
        };
        Some(Self {
            server,
            url,
            folder,
        })
    }

    pub(crate) fn with_jetstream() -> Option<Self> {
        Self::start(-1, "jetstream { store_dir: \"STORE\" }")
    }

    pub(crate) fn worker(&self) -> Running {
        let arguments = ["worker", "--nats", &self.url, "--threads", "1"];
        Running::start(lagometer(&arguments))
    }

    /// Somebody who speaks the protocol of NATS line by line, subscribed to a subject.
    /// Servers that know no users let anybody in.
    pub(crate) fn listener(&self, subject: &str) -> BufReader<TcpStream> {
        let address = self.url.trim_start_matches("nats://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENT)).unwrap();
        let connect = r#"{"verbose":false,"user":"lab","pass":"secret"}"#;
        let subscribe = format!("CONNECT {connect}\r\nSUB {subject} 1\r\nPING\r\n");
        stream.write_all(subscribe.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        while line(&mut stream) != "PONG" {}
        stream
    }
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
