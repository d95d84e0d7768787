//! The data listeners, whose sockets carry what is measured: each accepts one
//! connection or address that is authenticated by its key.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lagometer_limits::{Places, accept_pending};
use lagometer_units::Clock;
use thiserror::Error;

use crate::admission::{ANSWER_BYTES, Gate, HELLO_BYTES, Hello, PROOF_BYTES, Reply};
use crate::randomness::unforeseeable;
use crate::session::{Session, Stop};
use crate::tag::Key;

/// How often whoever waits at a data listener looks whether it is still to wait.
const LOOK: Duration = Duration::from_millis(50);

/// How long a connection to a TCP data listener may take to prove itself.
const TCP_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections to one TCP data listener that may be about to prove themselves, at once.
const UNPROVEN: usize = 64;

/// Datagrams of unauthenticated peers that are thrown away when a data listener opens; more than a
/// socket's buffer holds.
const MOST_UNKNOWN_SENDERS: usize = 100_000;

/// Why nobody came through a data listener.
#[derive(Debug, Error)]
pub enum NobodyCame {
    /// The job ended first.
    #[error("the job ended before anybody came")]
    Stopped,
    /// It took too long.
    #[error("nobody who may come in came")]
    TimedOut,
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// A UDP socket of the remote end that serves nobody yet.
#[derive(Debug)]
pub struct UdpDataListener {
    socket: UdpSocket,
    port: u16,
    session: Session,
}

/// A TCP listener of the remote end.
#[derive(Debug)]
pub struct TcpDataListener {
    listener: TcpListener,
    port: u16,
    session: Session,
    /// Those who have come and not proved themselves, from one call to the next.
    unproven: Mutex<Places<Unproven>>,
}

impl UdpDataListener {
    pub(crate) fn new(socket: UdpSocket, session: &Session) -> io::Result<Self> {
        Ok(Self {
            port: socket.local_addr()?.port(),
            socket,
            session: session.clone(),
        })
    }

    /// The port to send the local end.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Waits, no longer than `timeout`, until the local end has proved itself
    /// here. The socket is then connected to its address: the system passes
    /// nobody else's datagrams on. Options that are to hold for the socket may
    /// be set before, through [`socket`](Self::socket).
    ///
    /// To be called on a thread of the job.
    ///
    /// # Errors
    ///
    /// [`NobodyCame`].
    pub fn admit(self, timeout: Duration) -> Result<UdpSocket, NobodyCame> {
        let mut gate = gate(&self.session, self.port);
        let deadline = Instant::now() + timeout;
        self.socket.set_read_timeout(Some(LOOK))?;
        let mut datagram = [0; PROOF_BYTES + HELLO_BYTES];
        loop {
            still_waiting(self.session.stop(), deadline)?;
            let (length, from) = match self.socket.recv_from(&mut datagram) {
                Ok(received) => received,
                Err(error) if is_nothing_yet(&error) => continue,
                // What was sent to a local end that has gone away comes back.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error.into()),
            };
            match gate.handle(self.session.clock().now(), from, &datagram[..length]) {
                Reply::Nothing => {}
                // A full buffer loses it; the local end hellos again.
                Reply::Challenge(answer) => drop(self.socket.send_to(&answer, from)),
                Reply::Proved(welcome) => {
                    self.socket.connect(from)?;
                    self.close_unauthenticated()?;
                    let _ = self.socket.send(&welcome);
                    self.session.admitted(self.port);
                    self.socket.set_read_timeout(None)?;
                    return Ok(self.socket);
                }
            }
        }
    }

    /// The socket, to set options on it.
    #[must_use]
    pub const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Connecting a socket leaves in it what had arrived from others before.
    fn close_unauthenticated(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        let mut byte = [0; 1];
        for _ in 0..MOST_UNKNOWN_SENDERS {
            match self.socket.recv(&mut byte) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                _ => {}
            }
        }
        self.socket.set_nonblocking(false)
    }
}

impl TcpDataListener {
    pub(crate) fn new(listener: TcpListener, session: &Session) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener,
            session: session.clone(),
            unproven: Mutex::new(Places::new(UNPROVEN)),
        })
    }

    /// The port to send the local end.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The listener, to set options on it that its connections inherit.
    #[must_use]
    pub const fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Waits, no longer than `timeout`, for the next connection that has
    /// proved itself. Others are closed when their time is over or their place
    /// is wanted; those that are under way stay for the next call.
    ///
    /// To be called on a thread of the job.
    ///
    /// # Errors
    ///
    /// [`NobodyCame`].
    pub fn admit(&self, timeout: Duration) -> Result<TcpStream, NobodyCame> {
        let deadline = Instant::now() + timeout;
        let mut unproven = self.unproven.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            still_waiting(self.session.stop(), deadline)?;
            self.accept_all(&mut unproven)?;
            let mut proved = None;
            unproven.retain(|who| match proved {
                None => match who.go_on(self.session.clock()) {
                    Going::OnItsWay => true,
                    Going::Gone => false,
                    Going::Proved(stream) => {
                        proved = Some(stream);
                        false
                    }
                },
                Some(_) => true,
            });
            if let Some(stream) = proved {
                self.session.admitted(self.port);
                return Ok(stream);
            }
            let streams = unproven.iter().map(|who| &who.stream);
            wait_for_any(&self.listener, streams, LOOK)?;
        }
    }

    /// Takes in those who have come, no more at a time than there are places.
    fn accept_all(&self, unproven: &mut Places<Unproven>) -> io::Result<()> {
        for _ in 0..UNPROVEN {
            let Some((stream, from)) = accept_pending(&self.listener, TcpListener::accept)? else {
                break;
            };
            let gate = gate(&self.session, self.port);
            // Without a word to whom this costs the place.
            drop(unproven.take(from.ip(), Unproven::new(stream, from, gate)?));
        }
        Ok(())
    }
}

/// A connection to a TCP data listener that has not proved itself yet.
#[derive(Debug)]
struct Unproven {
    stream: TcpStream,
    from: SocketAddr,
    gate: Gate,
    /// What it has said of the message that is waited for.
    received: Vec<u8>,
    /// Whether that is the proof, and no longer the hello.
    is_challenged: bool,
    deadline: Instant,
}

/// How far a connection to a TCP data listener has come.
enum Going {
    OnItsWay,
    Gone,
    Proved(TcpStream),
}

impl Unproven {
    fn new(stream: TcpStream, from: SocketAddr, gate: Gate) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            from,
            gate,
            received: Vec::new(),
            is_challenged: false,
            deadline: Instant::now() + TCP_TIMEOUT,
        })
    }

    /// Reads what has come and answers it, without waiting for more.
    fn go_on(&mut self, clock: Clock) -> Going {
        match self.prove(clock) {
            Ok(None) if Instant::now() < self.deadline => Going::OnItsWay,
            Ok(Some(stream)) => Going::Proved(stream),
            Ok(None) | Err(_) => Going::Gone,
        }
    }

    fn prove(&mut self, clock: Clock) -> io::Result<Option<TcpStream>> {
        while self.receive()? {
            let message = std::mem::take(&mut self.received);
            match self.gate.handle(clock.now(), self.from, &message) {
                Reply::Challenge(challenge) if !self.is_challenged => {
                    // A connection that has not even room for this is none.
                    (&self.stream).write_all(&challenge)?;
                    self.is_challenged = true;
                }
                Reply::Proved(welcome) if self.is_challenged => {
                    (&self.stream).write_all(&welcome)?;
                    let stream = self.stream.try_clone()?;
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(None)?;
                    return Ok(Some(stream));
                }
                _ => return Err(ErrorKind::PermissionDenied.into()),
            }
        }
        Ok(None)
    }

    /// Whether the message that is waited for is there.
    fn receive(&mut self) -> io::Result<bool> {
        let wanted = if self.is_challenged {
            PROOF_BYTES
        } else {
            HELLO_BYTES
        };
        let mut buffer = [0; HELLO_BYTES + PROOF_BYTES];
        while self.received.len() < wanted {
            let room = wanted - self.received.len();
            match (&self.stream).read(&mut buffer[..room]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn gate(session: &Session, port: u16) -> Gate {
    Gate::new(session.listener_key(port), &unforeseeable())
}

fn still_waiting(stop: &Stop, deadline: Instant) -> Result<(), NobodyCame> {
    if stop.is_raised() {
        return Err(NobodyCame::Stopped);
    }
    if Instant::now() >= deadline {
        return Err(NobodyCame::TimedOut);
    }
    Ok(())
}

/// Gets `socket`, which is connected to the remote end's data listener, let in.
///
/// `is_admitted` says whether the remote end has said over the control connection that it
/// let it in. The socket's timeout is none afterwards.
pub(crate) fn hello_udp(
    socket: &UdpSocket,
    key: Key,
    clock: Clock,
    timeout: Duration,
    is_admitted: impl Fn() -> bool,
) -> io::Result<()> {
    let mut hello = Hello::new(key, unforeseeable());
    let deadline = clock.now() + timeout;
    let mut datagram = [0; ANSWER_BYTES + 1];
    loop {
        let now = clock.now();
        if is_admitted() {
            break;
        }
        if now >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        if let Some(message) = hello.poll(now) {
            match socket.send(message) {
                // An earlier one met no listener; this one may.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                sent => drop(sent?),
            }
        }
        let wait = hello.deadline().since(now).min(LOOK);
        socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        match socket.recv(&mut datagram) {
            Ok(length) => hello.handle(&datagram[..length]),
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
        if hello.is_in() {
            break;
        }
    }
    socket.set_read_timeout(None)
}

/// Gets `stream`, which is connected to the remote end's data listener, let in.
pub(crate) fn hello_tcp(
    stream: &TcpStream,
    key: Key,
    clock: Clock,
    timeout: Duration,
) -> io::Result<()> {
    let mut hello = Hello::new(key, unforeseeable());
    let deadline = Instant::now() + timeout;
    for _ in 0..2 {
        if let Some(message) = hello.poll(clock.now()) {
            let mut stream = stream;
            stream.write_all(message)?;
        }
        let mut answer = [0; ANSWER_BYTES];
        read_until(stream, &mut answer, deadline)?;
        hello.handle(&answer);
    }
    if !hello.is_in() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(None)
}

/// Fills `buffer` before the deadline. Bytes that trickle in do not put it
/// off.
fn read_until(mut stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until there is something to accept or to read, but no longer than
/// `span`.
fn wait_for_any<'a>(
    listener: &TcpListener,
    streams: impl Iterator<Item = &'a TcpStream>,
    span: Duration,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut wanted = vec![PollFd::new(listener, PollFlags::IN)];
    wanted.extend(streams.map(|stream| PollFd::new(stream, PollFlags::IN)));
    // Longer than can be said is forever.
    let timeout = Timespec::try_from(span).ok();
    match poll(&mut wanted, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether nothing has arrived within the socket's timeout.
pub(crate) fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
