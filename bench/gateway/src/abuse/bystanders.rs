//! Those who come during an attack and behave: newcomers who log in, and whoever
//! asks for the gateway's health. Each is a thread of its own; so is the one that
//! looks at the gateway's memory.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lagometer_client::{Event, Outbox, Session, Settings};

use super::deployment::{Endpoints, TOKEN};
use super::row::{Asked, Health, Newcomers};
use super::source::{Source, connect};
use crate::process::Usage;

/// How long a newcomer waits before it gives up.
const LOGIN_WITHIN: Duration = Duration::from_secs(3);

/// A login that takes longer is slow.
const LOGIN_SLOW: Duration = Duration::from_secs(1);

/// From one newcomer to the next.
const NEWCOMERS_EVERY: Duration = Duration::from_millis(100);

/// Every so many newcomers one is a game server.
const SERVERS_AMONG: usize = 5;

/// How long a health check waits, as Kubernetes' probes do by default.
const HEALTH_WITHIN: Duration = Duration::from_secs(1);

/// From one health check to the next.
const HEALTH_EVERY: Duration = Duration::from_millis(200);

/// From one look at the memory to the next.
const MEMORY_EVERY: Duration = Duration::from_millis(20);

/// Those of one attack.
#[derive(Debug)]
pub(super) struct Bystanders {
    is_over: Arc<AtomicBool>,
    newcomers: JoinHandle<Newcomers>,
    health: JoinHandle<Health>,
    peak_mb: JoinHandle<f64>,
}

impl Bystanders {
    /// Lets them come.
    ///
    /// # Errors
    ///
    /// The system has no threads for them.
    pub(super) fn start(endpoints: Endpoints, pid: u32) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = |name: &str| thread::Builder::new().name(name.into());
        let over = || {
            let is_over = Arc::clone(&is_over);
            move || is_over.load(Ordering::Relaxed)
        };
        let (newcomers_over, health_over, memory_over) = (over(), over(), over());
        Ok(Self {
            newcomers: thread("newcomers").spawn(move || newcomers(&endpoints, newcomers_over))?,
            health: thread("health").spawn(move || health(endpoints.web, health_over))?,
            peak_mb: thread("memory").spawn(move || peak_mb(pid, memory_over))?,
            is_over,
        })
    }

    /// Ends them and says what they met with.
    pub(super) fn stop(self) -> (Newcomers, Health, f64) {
        self.is_over.store(true, Ordering::Relaxed);
        (
            self.newcomers.join().unwrap_or_default(),
            self.health.join().unwrap_or_default(),
            self.peak_mb.join().unwrap_or_default(),
        )
    }
}

fn newcomers(endpoints: &Endpoints, is_over: impl Fn() -> bool) -> Newcomers {
    let mut seen = Newcomers::default();
    let mut number = 0;
    while !is_over() {
        let began = Instant::now();
        let is_server = number % SERVERS_AMONG == SERVERS_AMONG - 1;
        let (from, to) = if is_server {
            (Source::Server.address(number + 1), endpoints.servers)
        } else {
            (Source::Newcomer.address(number), endpoints.tcp)
        };
        number += 1;
        let let_in = log_in(from, to, &format!("newcomer-{number}"));
        let took = began.elapsed();
        seen.came += 1;
        seen.servers += u64::from(is_server);
        match let_in {
            Ok(()) => {
                seen.slow += u64::from(took > LOGIN_SLOW);
                seen.worst_ms = seen.worst_ms.max(took.as_secs_f64() * 1e3);
            }
            Err(error) => {
                seen.refused += 1;
                seen.servers_refused += u64::from(is_server);
                seen.why.get_or_insert(error.to_string());
            }
        }
        thread::sleep(NEWCOMERS_EVERY.saturating_sub(took));
    }
    seen
}

/// Connects, logs in, and goes.
fn log_in(from: Ipv4Addr, to: SocketAddr, name: &str) -> io::Result<()> {
    let deadline = Instant::now() + LOGIN_WITHIN;
    let mut stream = connect(from, to, LOGIN_WITHIN)?;
    let mut session = Session::new(Settings::default());
    session
        .outbox()
        .authenticate(name, TOKEN)
        .map_err(io::Error::other)?;
    stream.write_all(session.outbox().pending())?;
    let mut buffer = [0; 4096];
    let mut answer = None;
    while answer.is_none() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let bytes = match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::ConnectionReset.into()),
            bytes => &buffer[..bytes],
        };
        let mut on_event = |_: &mut Outbox, event: Event<'_>| match event {
            Event::LoggedIn { .. } => answer = Some(true),
            Event::LoginRefused { .. } => answer = Some(false),
            _ => {}
        };
        session
            .receive(bytes, &mut on_event)
            .map_err(io::Error::other)?;
    }
    match answer {
        Some(true) => Ok(()),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn health(web: SocketAddr, is_over: impl Fn() -> bool) -> Health {
    let mut seen = Health::default();
    while !is_over() {
        let began = Instant::now();
        match ask_health(web) {
            Ok(Asked::Well) => seen.well += 1,
            Ok(Asked::Unwell) => seen.unwell += 1,
            Err(_) => seen.unanswered += 1,
        }
        thread::sleep(HEALTH_EVERY.saturating_sub(began.elapsed()));
    }
    seen
}

fn ask_health(web: SocketAddr) -> io::Result<Asked> {
    let mut stream = connect(Source::Watcher.address(0), web, HEALTH_WITHIN)?;
    stream.set_read_timeout(Some(HEALTH_WITHIN))?;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    status(&mut stream)
}

fn status(stream: &mut TcpStream) -> io::Result<Asked> {
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    match &head[9..] {
        b"200" => Ok(Asked::Well),
        _ => Ok(Asked::Unwell),
    }
}

fn peak_mb(pid: u32, is_over: impl Fn() -> bool) -> f64 {
    let mut peak_mb: f64 = 0.0;
    while !is_over() {
        peak_mb = peak_mb.max(Usage::of(pid).rss_mb);
        thread::sleep(MEMORY_EVERY);
    }
    peak_mb
}
