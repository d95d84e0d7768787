//! The sockets that carry what is measured: each is a door that opens to one
//! who holds its key.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::admission::{ANSWER_BYTES, Gate, KNOCK_BYTES, Knock, Knocking, PROOF_BYTES};
use crate::clock::Clock;
use crate::randomness::unforeseeable;
use crate::session::{Session, Stop};
use crate::tag::Key;

/// How often whoever waits at a door looks whether it is still to wait.
const LOOK: Duration = Duration::from_millis(50);

/// How long a connection to a TCP door may take to prove itself.
const TCP_PATIENCE: Duration = Duration::from_secs(2);

/// Datagrams of strangers that are thrown away when a door opens; more than a
/// socket's buffer holds.
const MOST_STRANGERS: usize = 100_000;

/// Why nobody came through a door.
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

/// A UDP socket of the far end that serves nobody yet.
#[derive(Debug)]
pub struct UdpDoor {
    socket: UdpSocket,
    port: u16,
    session: Session,
}

/// A TCP listener of the far end.
#[derive(Debug)]
pub struct TcpDoor {
    listener: TcpListener,
    port: u16,
    session: Session,
}

impl UdpDoor {
    pub(crate) fn new(socket: UdpSocket, session: &Session) -> io::Result<Self> {
        Ok(Self {
            port: socket.local_addr()?.port(),
            socket,
            session: session.clone(),
        })
    }

    /// The port to tell the near end.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Waits, no longer than `patience`, until the near end has proved itself
    /// here. The socket is then connected to its address: the system passes
    /// nobody else's datagrams on. Options that are to hold for the socket may
    /// be set before, through [`socket`](Self::socket).
    ///
    /// To be called on a thread of the job.
    ///
    /// # Errors
    ///
    /// [`NobodyCame`].
    pub fn admit(self, patience: Duration) -> Result<UdpSocket, NobodyCame> {
        let mut gate = gate(&self.session, self.port);
        let deadline = Instant::now() + patience;
        self.socket.set_read_timeout(Some(LOOK))?;
        let mut datagram = [0; PROOF_BYTES + KNOCK_BYTES];
        loop {
            still_waiting(self.session.stop(), deadline)?;
            let (length, from) = match self.socket.recv_from(&mut datagram) {
                Ok(received) => received,
                Err(error) if is_nothing_yet(&error) => continue,
                // What was sent to a near end that has gone away comes back.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error.into()),
            };
            match gate.handle(self.session.clock().now(), from, &datagram[..length]) {
                Knocking::Nothing => {}
                // A full buffer loses it; the near end knocks again.
                Knocking::Challenge(answer) => drop(self.socket.send_to(&answer, from)),
                Knocking::Proved(welcome) => {
                    self.socket.connect(from)?;
                    self.throw_strangers_out()?;
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
    fn throw_strangers_out(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        let mut byte = [0; 1];
        for _ in 0..MOST_STRANGERS {
            match self.socket.recv(&mut byte) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                _ => {}
            }
        }
        self.socket.set_nonblocking(false)
    }
}

impl TcpDoor {
    pub(crate) fn new(listener: TcpListener, session: &Session) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener,
            session: session.clone(),
        })
    }

    /// The port to tell the near end.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The listener, to set options on it that its connections inherit.
    #[must_use]
    pub const fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Waits, no longer than `patience`, for the next connection that has
    /// proved itself. Others are closed.
    ///
    /// To be called on a thread of the job.
    ///
    /// # Errors
    ///
    /// [`NobodyCame`].
    pub fn admit(&self, patience: Duration) -> Result<TcpStream, NobodyCame> {
        let deadline = Instant::now() + patience;
        loop {
            still_waiting(self.session.stop(), deadline)?;
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_for(&self.listener, LOOK)?;
                    continue;
                }
                // It went away before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error.into()),
            };
            if let Ok(stream) = self.prove(stream, from) {
                self.session.admitted(self.port);
                return Ok(stream);
            }
        }
    }

    fn prove(&self, stream: TcpStream, from: SocketAddr) -> io::Result<TcpStream> {
        let mut gate = gate(&self.session, self.port);
        let mut answer = |message: &[u8]| gate.handle(self.session.clock().now(), from, message);
        stream.set_nonblocking(false)?;
        let deadline = Instant::now() + TCP_PATIENCE;
        let mut knock = [0; KNOCK_BYTES];
        read_until(&stream, &mut knock, deadline)?;
        let Knocking::Challenge(challenge) = answer(&knock) else {
            return Err(ErrorKind::PermissionDenied.into());
        };
        (&stream).write_all(&challenge)?;
        let mut proof = [0; PROOF_BYTES];
        read_until(&stream, &mut proof, deadline)?;
        let Knocking::Proved(welcome) = answer(&proof) else {
            return Err(ErrorKind::PermissionDenied.into());
        };
        (&stream).write_all(&welcome)?;
        stream.set_read_timeout(None)?;
        Ok(stream)
    }
}

fn gate(session: &Session, port: u16) -> Gate {
    Gate::new(session.door_key(port), &unforeseeable())
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

/// Gets `socket`, which is connected to the far end's door, let in.
///
/// `is_told` says whether the far end has said over the conversation that it
/// let it in. The socket's timeout is none afterwards.
pub(crate) fn knock_udp(
    socket: &UdpSocket,
    key: Key,
    clock: Clock,
    patience: Duration,
    is_told: impl Fn() -> bool,
) -> io::Result<()> {
    let mut knock = Knock::new(key, unforeseeable());
    let deadline = clock.now() + patience;
    let mut datagram = [0; ANSWER_BYTES + 1];
    loop {
        let now = clock.now();
        if is_told() {
            break;
        }
        if now >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        if let Some(message) = knock.poll(now) {
            match socket.send(message) {
                // An earlier one met no listener; this one may.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                sent => drop(sent?),
            }
        }
        let wait = knock.deadline().since(now).min(LOOK);
        socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        match socket.recv(&mut datagram) {
            Ok(length) => knock.handle(&datagram[..length]),
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
        if knock.is_in() {
            break;
        }
    }
    socket.set_read_timeout(None)
}

/// Gets `stream`, which is connected to the far end's door, let in.
pub(crate) fn knock_tcp(
    stream: &TcpStream,
    key: Key,
    clock: Clock,
    patience: Duration,
) -> io::Result<()> {
    let mut knock = Knock::new(key, unforeseeable());
    let deadline = Instant::now() + patience;
    for _ in 0..2 {
        if let Some(message) = knock.poll(clock.now()) {
            let mut stream = stream;
            stream.write_all(message)?;
        }
        let mut answer = [0; ANSWER_BYTES];
        read_until(stream, &mut answer, deadline)?;
        knock.handle(&answer);
    }
    if !knock.is_in() {
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

/// Waits until there is something to accept, but no longer than `span`.
pub(crate) fn wait_for(listener: &TcpListener, span: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(span.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout)) {
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
