//! The remote end: a listener, and a thread for every control connection.

mod control_connection;
mod event;
mod limits;

pub use event::Event;
pub use limits::Limits;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lagometer_limits::{Places, accept_pending};
use lagometer_platform::Waker;
use lagometer_units::Clock;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Doing, Error};
use crate::secret::Secret;
use crate::service::Registry;
use control_connection::ControlConnection;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long accepting pauses where the system has no more to give.
const PAUSE: Duration = Duration::from_millis(20);

/// A control connection needs little.
const STACK_BYTES: usize = 512 << 10;

/// How a remote end is set up.
pub struct ServerSettings {
    /// Where it listens; port 0 is one that is free.
    pub bind: SocketAddr,
    /// What those it serves must know.
    pub secret: Secret,
    /// What it serves.
    pub registry: Registry,
    /// The ports that data sockets may have; any that are free where absent.
    pub data_ports: Option<RangeInclusive<u16>>,
    /// How much at once.
    pub limits: Limits,
    /// Receives what happens; called on any thread.
    pub on_event: Box<dyn Fn(&Event<'_>) + Send + Sync>,
}

/// A remote end that serves. Dropped, it ends every job and every control connection
/// and waits until all have ended.
#[derive(Debug)]
pub struct Server {
    house: Arc<House>,
    address: SocketAddr,
    /// Wakes the listening thread, which stops then.
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

/// What all control connections share.
struct House {
    settings: ServerSettings,
    clock: Clock,
    stopping: AtomicBool,
    /// Threads of connections that have not proved themselves yet.
    pending: AtomicUsize,
    /// Those connections, by number.
    unproven: Mutex<Places<(u64, Arc<TcpStream>)>>,
    /// Those that have.
    sessions: AtomicUsize,
    /// Data sockets of all of them.
    sockets: Arc<AtomicUsize>,
    /// Every connection, so that all can be closed.
    connections: Mutex<BTreeMap<u64, Arc<TcpStream>>>,
}

impl Server {
    /// Begins to serve.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if it cannot listen at the address, or has no thread
    /// for it.
    pub fn start(settings: ServerSettings) -> Result<Self, Error> {
        let listener = listen(settings.bind).doing("listening")?;
        let address = listener.local_addr().doing("listening")?;
        let waker = Arc::new(Waker::new().doing("making a waker")?);
        let house = Arc::new(House {
            unproven: Mutex::new(Places::new(settings.limits.pending)),
            settings,
            clock: Clock::start(),
            stopping: AtomicBool::new(false),
            pending: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            sockets: Arc::default(),
            connections: Mutex::default(),
        });
        let host = Arc::clone(&house);
        let stop = Arc::clone(&waker);
        let thread = thread::Builder::new()
            .name("remote-server".to_owned())
            .spawn(move || host.receive_guests(&listener, &stop))
            .doing("starting a thread")?;
        Ok(Self {
            house,
            address,
            waker,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many control connections have proved themselves and are under way.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.house.sessions.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.house.stopping.store(true, Ordering::SeqCst);
        // A thread that has ended needs no waking.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It has reported whatever went wrong.
            let _ = thread.join();
        }
    }
}

impl House {
    /// Accepts until it is to stop, of which `stop` wakes it, then sees everybody out.
    fn receive_guests(self: Arc<Self>, listener: &TcpListener, stop: &Waker) {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        let mut number = 0;
        while !self.stopping.load(Ordering::SeqCst) {
            let mut events = [
                PollFd::new(listener, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            if poll(&mut events, None).is_err() {
                continue;
            }
            threads.retain(|thread| !thread.is_finished());
            // Those who had to give up their places take a moment to end.
            if self.pending.load(Ordering::Relaxed) >= 2 * self.settings.limits.pending {
                thread::sleep(PAUSE);
                continue;
            }
            match accept_pending(listener, TcpListener::accept) {
                Ok(Some((stream, peer))) => {
                    // One of IPv4 may have come to an address of IPv6.
                    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                    number += 1;
                    threads.extend(self.welcome(stream, peer, number));
                }
                Ok(None) => {}
                Err(error) => {
                    self.report(&Event::CannotAccept { why: &error });
                    thread::sleep(PAUSE);
                }
            }
        }
        for stream in self.connections().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in threads {
            // A service that panics takes its own control connection with it alone.
            let _ = thread.join();
        }
    }

    /// Starts the control connection with whoever has come.
    fn welcome(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        number: u64,
    ) -> Option<JoinHandle<()>> {
        let stream = Arc::new(stream);
        let place = (number, Arc::clone(&stream));
        if let Some((_, evicted)) = self.unproven().take(peer.ip(), place) {
            // Its thread sees that and ends.
            let _ = evicted.shutdown(Shutdown::Both);
        }
        self.connections().insert(number, Arc::clone(&stream));
        self.pending.fetch_add(1, Ordering::Relaxed);
        let connection = ControlConnection::new(Arc::clone(self), stream, peer, number);
        thread::Builder::new()
            .name("remote-session".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || connection.hold())
            .inspect_err(|why| self.report(&Event::CannotAccept { why }))
            .ok()
    }

    fn unproven(&self) -> std::sync::MutexGuard<'_, Places<(u64, Arc<TcpStream>)>> {
        self.unproven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a session, if there is room for one more.
    fn take_session(&self) -> bool {
        let has_room =
            self.sessions.fetch_add(1, Ordering::Relaxed) < self.settings.limits.sessions;
        if !has_room {
            self.leave_session();
        }
        has_room
    }

    /// A session that was counted has ended.
    fn leave_session(&self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }

    /// A connection has proved itself, or is gone.
    fn is_pending_no_more(&self, number: u64) {
        self.unproven().retain(|(of, _)| *of != number);
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<TcpStream>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, event: &Event<'_>) {
        (self.settings.on_event)(event);
    }
}

impl fmt::Debug for House {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("House")
            .field("bind", &self.settings.bind)
            .field("registry", &self.settings.registry)
            .field("limits", &self.settings.limits)
            .finish_non_exhaustive()
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `[::]` is every address of the machine.
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
