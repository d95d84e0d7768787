//! Metrics and health over HTTP.
//!
//! A few short requests a second come from inside the house; what comes from
//! elsewhere costs no more than a thread for a moment: a request has to be
//! short and quick, and only so many are heard at once.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tracing::warn;

use super::metrics::Metrics;
use super::shared::Shared;

/// The longest request that is read.
const REQUEST_BYTES: usize = 8 << 10;

/// How long a request may take to arrive, and the answer to be taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests that are heard at once.
const AT_ONCE: usize = 16;

/// Answers requests until the process ends.
pub(super) struct Web {
    listener: TcpListener,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    being_heard: Arc<AtomicUsize>,
}

struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Web {
    pub(super) fn bind(at: SocketAddr) -> io::Result<TcpListener> {
        match TcpListener::bind(at) {
            // A system without IPv6 still has an everywhere.
            Err(error)
                if at.ip() == std::net::Ipv6Addr::UNSPECIFIED
                    && error.kind() != io::ErrorKind::AddrInUse
                    && error.kind() != io::ErrorKind::PermissionDenied =>
            {
                TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], at.port())))
            }
            bound => bound,
        }
    }

    pub(super) fn start(
        listener: TcpListener,
        metrics: Metrics,
        shared: Arc<Shared>,
    ) -> io::Result<()> {
        let web = Self {
            listener,
            metrics: Arc::new(metrics),
            shared,
            being_heard: Arc::default(),
        };
        std::thread::Builder::new()
            .name("web".into())
            .spawn(move || web.run())
            .map(drop)
    }

    fn run(&self) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "cannot accept requests for a while");
                    std::thread::sleep(Duration::from_millis(200));
                    continue;
                }
            };
            if self.being_heard.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
                self.being_heard.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (metrics, shared) = (Arc::clone(&self.metrics), Arc::clone(&self.shared));
            let being_heard = Arc::clone(&self.being_heard);
            let hear = move || {
                // Whoever goes before the answer does not want it.
                let _ = serve(stream, &metrics, &shared);
                being_heard.fetch_sub(1, Ordering::Relaxed);
            };
            let thread = std::thread::Builder::new().name("web-request".into());
            if thread.spawn(hear).is_err() {
                self.being_heard.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

fn serve(mut stream: TcpStream, metrics: &Metrics, shared: &Shared) -> io::Result<()> {
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
    let answer = answer(&String::from_utf8_lossy(line), metrics, shared);
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

fn answer(line: &str, metrics: &Metrics, shared: &Shared) -> Answer {
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let text = |status, body: String| Answer {
        status,
        content_type: "text/plain; charset=utf-8",
        body: body.into_bytes(),
    };
    if method != "GET" && method != "HEAD" {
        return text("405 Method Not Allowed", "only GET\n".into());
    }
    let hangs = |error| text("503 Service Unavailable", format!("{error}\n"));
    match path {
        "/metrics" => match metrics.text() {
            Ok(body) => Answer {
                status: "200 OK",
                content_type: "text/plain; version=0.0.4; charset=utf-8",
                body,
            },
            Err(error) => hangs(error),
        },
        "/healthz" => match metrics.alive() {
            Ok(()) => text("200 OK", "alive\n".into()),
            Err(error) => hangs(error),
        },
        "/readyz" if shared.draining.load(Ordering::Relaxed) => {
            text("503 Service Unavailable", "draining\n".into())
        }
        "/readyz" => match metrics.alive() {
            Ok(()) => text("200 OK", "ready\n".into()),
            Err(error) => hangs(error),
        },
        _ => text(
            "404 Not Found",
            "there are /metrics, /healthz and /readyz\n".into(),
        ),
    }
}
