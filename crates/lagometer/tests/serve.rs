//! The remote end as a program: whom it serves, whom it does not, how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_link::trace::Recording;
use lagometer_remote::{Remote, Secret};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::json;

/// Longer than anything here takes, on any machine.
const LONG: Duration = Duration::from_mins(1);

/// `lagometer serve`, killed when it is dropped.
struct Serve {
    child: Child,
    address: SocketAddr,
    secret: Secret,
    lines: Receiver<String>,
}

impl Serve {
    fn start(arguments: &[&str]) -> Self {
        let secret = Secret::generate();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .args(["serve", "--bind", "127.0.0.1:0"])
            .args(arguments)
            .env("LAGOMETER_SECRET", secret.expose())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let lines = lines_of(child.stderr.take().expect("it is piped"));
        let first = lines.recv_timeout(LONG).expect("it says where it serves");
        let address = first.rsplit(' ').next().unwrap().parse().expect(&first);
        Self {
            child,
            address,
            secret,
            lines,
        }
    }

    fn visit(&self) -> Remote {
        visit(self.address, &self.secret)
    }

    /// Waits for a line that contains `words`.
    fn says(&self, words: &str) {
        let began = Instant::now();
        let mut received = Vec::new();
        while began.elapsed() < LONG {
            match self.lines.recv_timeout(LONG) {
                Ok(line) if line.contains(words) => return,
                Ok(line) => received.push(line),
                Err(_) => break,
            }
        }
        panic!("it never says {words:?}, but {received:#?}");
    }

    /// Asks it to end, and waits until it has.
    fn ends_on(&mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
        let began = Instant::now();
        while began.elapsed() < LONG {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn visit(address: SocketAddr, secret: &Secret) -> Remote {
    Remote::connect(&address.to_string(), secret).expect("it serves")
}

fn lines_of(stderr: ChildStderr) -> Receiver<String> {
    let (to, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn lagometer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .env_remove("LAGOMETER_SECRET")
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// A request that opens a recording; its socket is never used.
fn recording() -> serde_json::Value {
    json!({ "every_us": 10_000, "bytes": 64, "lasts_ms": 1000, "trains": false })
}

#[test]
fn a_signal_to_end_ends_it_cleanly_and_its_guests_are_notified() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut serve = Serve::start(&[]);
        let remote = serve.visit();
        let job = remote.open("record", &recording()).unwrap();
        assert_eq!(serve.ends_on(signal), Some(0));
        assert!(job.ask(&json!(null)).is_err());
        assert!(remote.gone().is_some());
    }
}

#[test]
fn without_a_secret_it_makes_one_and_shows_it() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["serve", "--bind", "127.0.0.1:0"])
        .env_remove("LAGOMETER_SECRET")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines_of(child.stderr.take().unwrap());
    let first = lines.recv_timeout(LONG).unwrap();
    let address = first.rsplit(' ').next().unwrap().to_owned();
    let second = lines.recv_timeout(LONG).unwrap();
    let shown = second.split("the secret is ").nth(1).expect(&second);
    let secret = Secret::from_text(shown.split(';').next().unwrap()).unwrap();
    assert!(Remote::connect(&address, &secret).is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn garbage_and_forged_packets_get_nothing_and_hurt_nobody() {
    let serve = Serve::start(&[]);
    let remote = serve.visit();
    let job = remote.open("record", &recording()).unwrap();
    let port = job.port("port").unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut draw = 0x9E37_79B9_7F4A_7C15_u64;
    for index in 0..5000_usize {
        let mut datagram = vec![0; [0, 1, 16, 40, 72, 80, 600, 1400][index % 8]];
        for byte in &mut datagram {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (draw >> 56) as u8;
        }
        if index % 3 == 0 && datagram.len() > 8 {
            datagram[..8].copy_from_slice(b"LAGODATA");
        }
        let _ = other.send_to(&datagram, job.data_listener(port));
    }
    for index in 0..50_usize {
        let mut stream = TcpStream::connect(serve.address).unwrap();
        let mut bytes = vec![index as u8; 300];
        match index % 3 {
            0 => bytes[..8].copy_from_slice(b"LAGOFAR\n"),
            // The right version, and a proof of nothing.
            1 => bytes[..10].copy_from_slice(b"LAGOFAR\n\x00\x02"),
            _ => {}
        }
        let _ = stream.write_all(&bytes);
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        assert!(received.len() < bytes.len(), "never more than was sent");
    }
    other.set_nonblocking(true).unwrap();
    assert!(other.recv(&mut [0; 100]).is_err(), "not a word");
    // Whoever was there before still is, and whoever may come can.
    assert!(job.udp(port).is_ok());
    assert!(serve.visit().open("record", &recording()).is_ok());
}

#[test]
fn another_version_is_refused_with_a_word() {
    let serve = Serve::start(&[]);
    let mut stream = TcpStream::connect(serve.address).unwrap();
    let mut hello = vec![0; 64];
    hello[..10].copy_from_slice(b"LAGOFAR\n\x00\x63");
    stream.write_all(&hello).unwrap();
    let mut answer = [0; 43];
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..11], *b"LAGOFAR\n\x00\x02\x01");
    serve.says("speaks version 99");
}

#[test]
fn a_thousand_local_ends_are_served_at_once() {
    const CLIENTS: usize = 1000;
    const THREADS: usize = 20;
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(8192.min(maximum.unwrap_or(8192)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let mut serve = Serve::start(&[]);
    let (address, secret) = (serve.address, serve.secret.clone());
    let guests: Vec<Remote> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    (0..CLIENTS / THREADS)
                        .map(|_| visit(address, &secret))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let jobs: Vec<_> = guests
        .iter()
        .map(|remote| remote.open("record", &recording()).unwrap())
        .collect();
    assert_eq!(jobs.len(), CLIENTS);
    assert!(guests.iter().all(|remote| remote.gone().is_none()));
    assert_eq!(serve.ends_on(Signal::TERM), Some(0));
    let began = Instant::now();
    while began.elapsed() < LONG && guests.iter().any(|remote| remote.gone().is_none()) {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(guests.iter().all(|remote| remote.gone().is_some()));
}

#[test]
fn what_is_wrong_is_said_on_one_line_with_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (short, good, trace) = (path("short"), path("good"), path("x.trace"));
    std::fs::write(&short, "short").unwrap();
    std::fs::write(&good, Secret::generate().expose()).unwrap();
    let serve = Serve::start(&[]);
    let here = serve.address.to_string();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["serve", "--bind", "nowhere"], 2, "write an address as in"),
        (
            &["serve", "--bind", "127.0.0.1:0", "--secret", &short],
            2,
            "a secret has 16 to 1024",
        ),
        (
            &["serve", "--bind", "127.0.0.1:0", "--data-ports", "9-1"],
            2,
            "write ports as in",
        ),
        (
            &["serve", "--bind", &here, "--secret", &good],
            3,
            "choose another with `--bind`",
        ),
        (&["record", "--to", &here, "-o", &trace], 2, "--secret FILE"),
        (
            &["record", "--to", &here, "--secret", &good, "-o", &trace],
            2,
            "another secret",
        ),
        (
            &[
                "record",
                "--to",
                "127.0.0.1:1",
                "--secret",
                &good,
                "-o",
                &trace,
            ],
            3,
            "cannot reach",
        ),
        (
            &["record", "--every", "1us", "-o", &trace],
            2,
            "at least 200",
        ),
    ];
    for (arguments, code, words) in cases {
        let output = lagometer(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

/// Starts a recording into `trace` that would take long, and waits until it is
/// under way.
fn record_for_long(serve: &Serve, trace: &Path) -> Child {
    let recorder = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["record", "--for", "10min", "--to"])
        .arg(serve.address.to_string())
        .arg("-o")
        .arg(trace)
        .env("LAGOMETER_SECRET", serve.secret.expose())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    serve.says("opened");
    recorder
}

#[test]
fn a_remote_end_killed_on_the_way_is_reported_and_nothing_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("cut.trace");
    let mut serve = Serve::start(&[]);
    let recorder = record_for_long(&serve, &trace);
    assert_eq!(serve.ends_on(Signal::KILL), None);
    let output = recorder.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("the remote end is gone"), "{stderr}");
}

#[test]
fn what_a_remote_end_reported_before_it_was_killed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("cut.trace");
    let mut serve = Serve::start(&[]);
    let recorder = record_for_long(&serve, &trace);
    // What is to be kept, and the moments before the end, which are not.
    thread::sleep(Duration::from_secs(8));
    assert_eq!(serve.ends_on(Signal::KILL), None);
    let output = recorder.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("cut short after"), "{shown}");
    assert!(shown.contains("the remote end is gone"), "{shown}");
    let written = std::fs::read_to_string(&trace).unwrap();
    assert!(written.contains("# it was cut short"), "{written}");
    assert!(
        Recording::parse("cut.trace", &written).is_ok(),
        "what is kept can be replayed"
    );
}
