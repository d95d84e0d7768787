//! The attacker: a thread of its own that plays one abuse until it is asked to
//! stop, at the rate the machine gives.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use serde::{Deserialize, Serialize};

use super::catalogue::{Abuse, Attack};
use super::deployment::Endpoints;
use super::payloads;
use super::source::{Source, connect};

/// How long the attacker waits for one connection, and for one answer.
const WITHIN: Duration = Duration::from_secs(1);

/// How long it rests when there is nothing it can do.
const REST: Duration = Duration::from_millis(1);

/// What the attacker knows of the game: nothing that a player could not learn.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Where the gateway listens.
    pub(super) endpoints: Endpoints,
    /// The rooms' channels.
    pub(super) rooms: Vec<u32>,
    /// The game server's connection.
    pub(super) owner: u32,
    /// The players' connections.
    pub(super) players: Vec<u32>,
}

/// What an attack has done so far.
#[derive(Debug, Default)]
struct Counts {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
}

/// What an attack did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Bytes that the gateway's kernel took.
    pub(crate) sent_bytes: u64,
    /// Bytes that came back.
    pub(crate) received_bytes: u64,
    /// Connections that stood; of datagrams, sources.
    pub(crate) connections: u64,
    /// Connections that did not stand, logins that were not answered.
    pub(crate) refused: u64,
}

/// Plays an abuse.
#[derive(Debug)]
pub(super) struct Attacker {
    /// Against whom.
    pub(super) target: Target,
    counts: Arc<Counts>,
    is_over: Arc<AtomicBool>,
}

/// An attack under way.
#[derive(Debug)]
pub(super) struct Running {
    counts: Arc<Counts>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Starts an abuse. The attacker's thread gives way to those whose latency
    /// is measured: a real one has a machine of its own.
    ///
    /// # Errors
    ///
    /// The system has no thread for it.
    pub(super) fn start(abuse: &'static Abuse, target: Target) -> io::Result<Self> {
        let (counts, is_over) = (Arc::<Counts>::default(), Arc::<AtomicBool>::default());
        let attacker = Attacker {
            target,
            counts: Arc::clone(&counts),
            is_over: Arc::clone(&is_over),
        };
        let thread = thread::Builder::new()
            .name("attacker".into())
            .spawn(move || {
                // On Linux this is the thread's own. Without it the attack is
                // only more of a hindrance to the players' side.
                let _ = rustix::process::nice(10);
                match &abuse.attack {
                    Attack::Nobody => Ok(()),
                    Attack::Flood(flood) => {
                        super::flood::run(&attacker, flood);
                        Ok(())
                    }
                    Attack::Own(play) => play(&attacker),
                }
            })?;
        Ok(Self {
            counts,
            is_over,
            thread,
        })
    }

    /// Stops the attack and says what it did, and why it could not go on where
    /// it ended by itself.
    pub(super) fn stop(self) -> (Effort, Option<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let failure = match self.thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the attacker panicked".to_owned()),
        };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let effort = Effort {
            sent_bytes: read(&self.counts.sent_bytes),
            received_bytes: read(&self.counts.received_bytes),
            connections: read(&self.counts.connections),
            refused: read(&self.counts.refused),
        };
        (effort, failure)
    }
}

impl Attacker {
    /// Whether the attack goes on.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Notes bytes that were sent.
    pub(super) fn sent(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.counts.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes bytes that came back.
    pub(super) fn received(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.counts
            .received_bytes
            .fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes a connection that stands, or a source of datagrams.
    pub(super) fn connected(&self) {
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a connection or a login that was refused, and rests.
    pub(super) fn refused(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        rest();
    }

    /// Connects as the `number`th of the attacker's addresses. `None`, noted and
    /// after a rest, where nobody is let in.
    pub(super) fn connect(&self, number: usize, to: SocketAddr) -> Option<TcpStream> {
        if let Ok(stream) = connect(Source::Attacker.address(number), to, WITHIN) {
            self.connected();
            Some(stream)
        } else {
            self.refused();
            None
        }
    }

    /// Connects over TCP and logs in with the right token. `None`, noted, where
    /// that fails.
    pub(super) fn log_in(&self, number: usize) -> Option<TcpStream> {
        let stream = self.connect(number, self.target.endpoints.tcp)?;
        let name = format!("attacker-{number}");
        self.asks(stream, &payloads::login(&name))
    }

    /// Connects and becomes a WebSocket. `None`, noted, where that fails.
    pub(super) fn open_websocket(&self, number: usize) -> Option<TcpStream> {
        let at = self.target.endpoints.websocket;
        let stream = self.connect(number, at)?;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {at}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        self.asks(stream, request.as_bytes())
    }

    /// Sends a request whose answer is short and waits for it.
    fn asks(&self, mut stream: TcpStream, request: &[u8]) -> Option<TcpStream> {
        let asked = stream
            .set_read_timeout(Some(WITHIN))
            .and_then(|()| stream.write_all(request))
            .and_then(|()| stream.read(&mut [0; 4096]));
        if let Ok(bytes @ 1..) = asked {
            self.sent(request.len());
            self.received(bytes);
            Some(stream)
        } else {
            self.refused();
            None
        }
    }

    /// Sends bytes on a connection that waits, as far as it takes them while the
    /// attack goes on. Whether all went.
    pub(super) fn send_all(&self, stream: &mut TcpStream, mut bytes: &[u8]) -> bool {
        // So that the end of the attack is noticed.
        if stream.set_write_timeout(Some(WITHIN / 10)).is_err() {
            return false;
        }
        while !bytes.is_empty() && self.goes_on() {
            match stream.write(bytes) {
                Ok(taken @ 1..) => {
                    self.sent(taken);
                    bytes = &bytes[taken..];
                }
                Err(error) if is_later(&error) => {}
                _ => return false,
            }
        }
        bytes.is_empty()
    }

    /// Holds what was opened until the attack is over, but no longer than `most`,
    /// doing something each tenth of a second.
    pub(super) fn hold(&self, most: Duration, mut each: impl FnMut()) {
        let until = Instant::now() + most;
        while self.goes_on() && Instant::now() < until {
            each();
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Rests a moment, for there is nothing to do.
pub(super) fn rest() {
    thread::sleep(REST);
}

/// Ends a connection without a farewell, so that nothing is kept of it here.
pub(super) fn reset(stream: TcpStream) {
    // A connection that cannot be reset is closed.
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}

/// Whether a call did nothing because it would have had to wait.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
