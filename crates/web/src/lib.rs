//! Metrics and health over HTTP, for whoever watches a process of ours.
//!
//! A few short requests a second come from inside the house. What comes from
//! elsewhere cannot keep them from being answered: one thread serves all
//! connections as they become ready, waits for none, and holds a bounded number
//! of them, each for a bounded time. One more than that takes the place of the
//! oldest of the address that has most. What is answered is the caller's: the
//! gateway reports its connections and channels, a world its players.
//! [`scrape`] asks another process for its metrics.

mod connection;
pub mod scrape;
mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use lagometer_limits::{LineRate, SpareFiles, accept_pending};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::warn;

use connection::{Connection, Progress};
use table::Table;

/// How long nobody is let in after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(200);

/// Connections accepted before those that are there have their turn: fewer than
/// there are places, so that a newcomer's request is read before it is the oldest.
const ACCEPTED_AT_ONCE: usize = 32;

/// What is answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status line's code and words, as in "200 OK".
    pub status: &'static str,
    /// The body's media type.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Metrics in Prometheus's text format, version 0.0.4.
    #[must_use]
    pub const fn metrics(body: Vec<u8>) -> Self {
        Self {
            status: "200 OK",
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body,
        }
    }

    /// A plain-text answer with this status.
    #[must_use]
    pub fn text(status: &'static str, words: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: words.into().into_bytes(),
        }
    }

    /// `200 OK` with this text.
    #[must_use]
    pub fn ok(words: impl Into<String>) -> Self {
        Self::text("200 OK", words)
    }

    /// `503 Service Unavailable` with this text.
    #[must_use]
    pub fn unavailable(words: impl Into<String>) -> Self {
        Self::text("503 Service Unavailable", words)
    }

    /// There is nothing of that name, but `there_are`.
    #[must_use]
    pub fn not_found(there_are: &str) -> Self {
        Self::text("404 Not Found", format!("there are {there_are}\n"))
    }
}

/// Takes the address `at` for [`serve`].
///
/// # Errors
///
/// The system's, as when somebody has that port.
pub fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(at) {
        // A system without IPv6 still has an everywhere.
        Err(error)
            if at.ip() == Ipv6Addr::UNSPECIFIED
                && error.kind() != io::ErrorKind::AddrInUse
                && error.kind() != io::ErrorKind::PermissionDenied =>
        {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, at.port()))
        }
        bound => bound,
    }
}

/// Answers requests on a thread of its own until the process ends: `answer` is
/// given the path that was asked for, without its query. It may take a moment;
/// everybody else waits meanwhile.
///
/// # Errors
///
/// The system has no thread for it.
pub fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Answer + Send + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    // Health is answered even while the process has used up its files, be it
    // before the thread has had its first turn.
    let spare = SpareFiles::new(1);
    Builder::new()
        .name("web".into())
        .spawn(move || serve_all(&listener, spare, &answer))
        .map(drop)
}

fn serve_all(listener: &TcpListener, mut spare: SpareFiles, answer: &impl Fn(&str) -> Answer) {
    let mut table = Table::default();
    let (started, mut warnings) = (Instant::now(), LineRate::new(1));
    loop {
        let Ok(ready) = wait(listener, &table) else {
            thread::sleep(PAUSE);
            continue;
        };
        spare.refill();
        let now = Instant::now();
        // Whoever asks for the same at the same time gets the same answer.
        let answers = RefCell::new(BTreeMap::new());
        let answer = |path: &str| {
            let mut answers = answers.borrow_mut();
            let known = answers.entry(path.to_owned());
            known.or_insert_with(|| answer(path)).clone()
        };
        table.advance(now, &ready.connections, |connection| {
            connection.advance(now, |line| answer_line(line, &answer)) == Progress::Goes
        });
        if ready.listener {
            let refused = accept(now, listener, &mut table, &mut spare, &answer);
            if let Err(error) = refused {
                if let Some(left_out) = warnings.due(now - started) {
                    warn!(%error, left_out, "cannot accept requests for a while");
                }
                // Who is there is older than who cannot come.
                table.evict();
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Who has something to do.
struct Ready {
    listener: bool,
    /// In the order of the table.
    connections: Vec<bool>,
}

/// Waits until somebody has something to do, or the first of the connections
/// has run out of time.
fn wait(listener: &TcpListener, table: &Table) -> io::Result<Ready> {
    let mut files = vec![PollFd::new(listener, PollFlags::IN)];
    files.extend(table.iter().map(|connection| {
        let interest = if connection.is_answering() {
            PollFlags::OUT
        } else {
            PollFlags::IN
        };
        PollFd::new(connection.stream(), interest)
    }));
    // Longer than can be said is forever.
    let timeout = table.next_deadline().and_then(|due| {
        let left = due.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    });
    match poll(&mut files, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |file: &PollFd<'_>| !file.revents().is_empty();
    Ok(Ready {
        listener: is_ready(&files[0]),
        connections: files[1..].iter().map(is_ready).collect(),
    })
}

/// Takes in those who wait, and answers those whose request is there already.
fn accept(
    now: Instant,
    listener: &TcpListener,
    table: &mut Table,
    spare: &mut SpareFiles,
    answer: &impl Fn(&str) -> Answer,
) -> io::Result<()> {
    for _ in 0..ACCEPTED_AT_ONCE {
        match accept_pending(listener, TcpListener::accept) {
            Ok(Some((stream, address))) => {
                let Ok(mut connection) = Connection::new(stream) else {
                    continue;
                };
                if connection.advance(now, |line| answer_line(line, answer)) == Progress::Goes {
                    table.insert(address.ip().to_canonical(), connection);
                }
            }
            Ok(None) => return Ok(()),
            Err(_) if spare.give_up() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a request line is answered.
fn answer_line(line: &str, answer: &impl Fn(&str) -> Answer) -> Answer {
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    if method != "GET" && method != "HEAD" {
        return Answer::text("405 Method Not Allowed", "only GET\n");
    }
    answer(target.split('?').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn echo(path: &str) -> Answer {
        match path {
            "/there" => Answer::ok("here\n"),
            "/long" => Answer::ok("x".repeat(8 << 20)),
            _ => Answer::not_found("/there"),
        }
    }

    fn start() -> SocketAddr {
        let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let at = listener.local_addr().unwrap();
        serve(listener, echo).unwrap();
        at
    }

    fn ask(at: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn paths_are_answered_and_other_methods_refused() {
        let at = start();
        let got = ask(at, "GET /there?and=more HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\nhere\n"), "{got}");
        let head = ask(at, "HEAD /there HTTP/1.1\r\n\r\n");
        assert!(head.contains("content-length: 5"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(at, "GET / HTTP/1.1\r\n\r\n").contains("there are /there"));
        assert!(ask(at, "POST /there HTTP/1.1\r\n\r\n").contains("405"));
        // Who says too much is left alone.
        let long = format!("GET /{} HTTP/1.1", "x".repeat(64 << 10));
        let mut stream = TcpStream::connect(at).unwrap();
        let _ = stream.write_all(long.as_bytes());
        assert_eq!(stream.read(&mut [0; 8]).unwrap_or_default(), 0);
    }

    #[test]
    fn connections_that_say_nothing_or_little_do_not_keep_a_health_check_waiting() {
        let at = start();
        let silent: Vec<TcpStream> = (0..400)
            .map(|n| {
                let mut stream = TcpStream::connect(at).unwrap();
                if n % 2 == 0 {
                    let _ = stream.write_all(b"GET /the");
                }
                stream
            })
            .collect();
        for _ in 0..40 {
            let got = ask(at, "GET /there HTTP/1.1\r\n\r\n");
            assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        }
        drop(silent);
    }

    #[test]
    fn one_who_takes_no_answer_keeps_nobody_waiting() {
        let at = start();
        let mut greedy: Vec<TcpStream> = (0..30)
            .map(|_| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(b"GET /long HTTP/1.1\r\n\r\n").unwrap();
                stream
            })
            .collect();
        let got = ask(at, "GET /there HTTP/1.1\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        // And whoever takes it gets all of it.
        let mut all = Vec::new();
        greedy.pop().unwrap().read_to_end(&mut all).unwrap();
        assert!(all.len() > 8 << 20);
    }

    #[test]
    fn a_request_line_of_nonsense_is_no_request() {
        for line in ["", "GET", "\u{0}", "get /there"] {
            assert_ne!(answer_line(line, &echo).status, "200 OK", "{line:?}");
        }
    }
}
