//! Metrics and health over HTTP, for whoever watches a process of ours.
//!
//! A few short requests a second come from inside the house; what comes from
//! elsewhere costs no more than a thread for a moment: a request has to be
//! short and quick, and only so many are heard at once. What is answered is the
//! caller's: the gateway tells of its connections and channels, a world of its
//! players. [`scrape`] asks another process for its metrics.

pub mod scrape;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use tracing::warn;

/// The longest request that is read.
const REQUEST_BYTES: usize = 8 << 10;

/// How long a request may take to arrive, and the answer to be taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests that are heard at once.
const AT_ONCE: usize = 16;

/// How long nobody is let in after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(200);

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

    /// A few words.
    #[must_use]
    pub fn text(status: &'static str, words: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: words.into().into_bytes(),
        }
    }

    /// Yes.
    #[must_use]
    pub fn ok(words: impl Into<String>) -> Self {
        Self::text("200 OK", words)
    }

    /// Not now.
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
/// given the path that was asked for, without its query.
///
/// # Errors
///
/// The system has no thread for it.
pub fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> io::Result<()> {
    let answer = Arc::new(answer);
    Builder::new()
        .name("web".into())
        .spawn(move || hear_all(&listener, &answer))
        .map(drop)
}

fn hear_all<A>(listener: &TcpListener, answer: &Arc<A>)
where
    A: Fn(&str) -> Answer + Send + Sync + 'static,
{
    let being_heard = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept requests for a while");
                thread::sleep(PAUSE);
                continue;
            }
        };
        if being_heard.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
            being_heard.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (answer, done) = (Arc::clone(answer), Arc::clone(&being_heard));
        let hear = move || {
            // Whoever goes before the answer does not want it.
            let _ = hear_one(stream, &*answer);
            done.fetch_sub(1, Ordering::Relaxed);
        };
        let request = Builder::new().name("web-request".into());
        if request.spawn(hear).is_err() {
            being_heard.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn hear_one(mut stream: TcpStream, answer: &impl Fn(&str) -> Answer) -> io::Result<()> {
    let give_up = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_BYTES {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let bytes = stream.read(&mut buffer)?;
        if bytes == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..bytes]);
    }
    let line = request
        .split(|&byte| byte == b'\r')
        .next()
        .unwrap_or_default();
    let answer = answer_line(&String::from_utf8_lossy(line), answer);
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !line.starts_with(b"HEAD ") {
        stream.write_all(&answer.body)?;
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
    use super::*;

    fn echo(path: &str) -> Answer {
        match path {
            "/there" => Answer::ok("here\n"),
            _ => Answer::not_found("/there"),
        }
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
        let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let at = listener.local_addr().unwrap();
        serve(listener, echo).unwrap();
        let got = ask(at, "GET /there?and=more HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\nhere\n"), "{got}");
        let head = ask(at, "HEAD /there HTTP/1.1\r\n\r\n");
        assert!(head.contains("content-length: 5"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(at, "GET / HTTP/1.1\r\n\r\n").contains("there are /there"));
        assert!(ask(at, "POST /there HTTP/1.1\r\n\r\n").contains("405"));
        // Who says nothing, or too much, is left alone.
        let long = format!("GET /{} HTTP/1.1", "x".repeat(2 * REQUEST_BYTES));
        let mut stream = TcpStream::connect(at).unwrap();
        let _ = stream.write_all(long.as_bytes());
        assert_eq!(stream.read(&mut [0; 8]).unwrap_or_default(), 0);
    }

    #[test]
    fn a_request_line_of_nonsense_is_no_request() {
        for line in ["", "GET", "\u{0}", "get /there"] {
            assert_ne!(answer_line(line, &echo).status, "200 OK", "{line:?}");
        }
    }
}
