//! A TCP connection of the kernel as one side of a lane.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use lagometer_transport::framing::{Cutter, LENGTH_BYTES, write};
use lagometer_transport::{Closed, Driven, Message, Messenger, Refused, State};
use lagometer_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use socket2::SockRef;

use super::gather::set_congestion;
use super::settings::Settings;
use crate::connection::{Counters, SocketConnection};
use crate::drained::Drained;
use crate::sleep;

/// One side of a lane over the kernel's TCP.
#[derive(Debug)]
pub(super) struct TcpConnection {
    settings: Settings,
    state: ConnectionState,
    /// What the kernel has had no room for yet, whole messages and the rest
    /// of one.
    outgoing: VecDeque<u8>,
    cutter: Cutter,
    buffer: Box<[u8]>,
    drained: Drained,
    counters: Counters,
}

#[derive(Debug)]
enum ConnectionState {
    Listening(TcpListener, IpAddr),
    Connecting(TcpStream),
    Open(TcpStream),
    Closed(Closed),
}

const BUFFER_BYTES: usize = 1 << 16;

/// Read calls in one turn at most: a flood from the peer must not silence
/// this side.
const READS_AT_ONCE: usize = 16;

impl TcpConnection {
    /// Waits at `remote` for one connection from `client`; others are closed.
    pub(super) fn listen(
        settings: &Settings,
        remote: SocketAddr,
        client: IpAddr,
    ) -> io::Result<Self> {
        let socket = socket(remote)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &remote)?;
        // A connection inherits its listener's congestion control, from the
        // first acknowledgement on.
        set_congestion(&socket, &settings.congestion_control)?;
        rustix::net::listen(&socket, 1)?;
        Ok(Self::new(
            settings,
            ConnectionState::Listening(socket.into(), client),
        ))
    }

    /// Opens a connection from `local` to `remote`.
    pub(super) fn connect(
        settings: &Settings,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Self> {
        let socket = socket(remote)?;
        rustix::net::bind(&socket, &local)?;
        let stream = TcpStream::from(socket);
        prepare(&stream, settings)?;
        match rustix::net::connect(&stream, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self::new(settings, ConnectionState::Connecting(stream)))
    }

    fn new(settings: &Settings, state: ConnectionState) -> Self {
        Self {
            settings: settings.clone(),
            state,
            outgoing: VecDeque::new(),
            cutter: Cutter::new(settings.max_message.bytes() as usize),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            drained: Drained::default(),
            counters: Counters::default(),
        }
    }

    /// Goes on with the handshake; the kernel does the work.
    fn progress(&mut self) {
        let state = std::mem::replace(&mut self.state, ConnectionState::Closed(Closed::ByPeer));
        self.counters.system_calls += 1;
        self.state = match state {
            ConnectionState::Listening(listener, client) => {
                match accepted(&listener, client, &self.settings) {
                    Ok(stream) => ConnectionState::Open(stream),
                    Err(error) if is_passing(&error) => {
                        ConnectionState::Listening(listener, client)
                    }
                    Err(error) => ConnectionState::Closed(Closed::Failed(error.to_string())),
                }
            }
            ConnectionState::Connecting(stream) => match connected(&stream) {
                Ok(true) => ConnectionState::Open(stream),
                Ok(false) => ConnectionState::Connecting(stream),
                Err(error) if is_passing(&error) => ConnectionState::Connecting(stream),
                Err(error) => ConnectionState::Closed(Closed::Failed(error.to_string())),
            },
            ConnectionState::Open(_) | ConnectionState::Closed(_) => state,
        };
    }

    fn write_on(&mut self) {
        while let ConnectionState::Open(stream) = &mut self.state
            && !self.outgoing.is_empty()
        {
            let (piece, _) = self.outgoing.as_slices();
            self.counters.system_calls += 1;
            match stream.write(piece) {
                Ok(bytes) => {
                    self.counters.packets_sent += 1;
                    self.counters.bytes_sent += bytes as u64;
                    self.outgoing.drain(..bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => self.state = ConnectionState::Closed(reason(&error)),
            }
        }
    }

    fn read_all(&mut self, now: Time) {
        if self.drained.is_known_at(now) {
            return;
        }
        let mut any = false;
        for _ in 0..READS_AT_ONCE {
            // A user who takes no messages out lets the kernel's window close.
            let most = self.settings.max_message.bytes() as usize + LENGTH_BYTES;
            let is_full = self.cutter.held_bytes() > most;
            let ConnectionState::Open(stream) = &mut self.state else {
                return;
            };
            if is_full {
                break;
            }
            self.counters.system_calls += 1;
            match stream.read(&mut self.buffer[..]) {
                Ok(0) => self.state = ConnectionState::Closed(Closed::ByPeer),
                Ok(bytes) => {
                    any = true;
                    self.counters.packets_received += 1;
                    self.counters.bytes_received += bytes as u64;
                    self.cutter.push(&self.buffer[..bytes]);
                    // A read that leaves room has taken all there was.
                    if bytes < BUFFER_BYTES {
                        self.drained.note_at(now);
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.drained.note_at(now);
                    break;
                }
                Err(error) => self.state = ConnectionState::Closed(reason(&error)),
            }
        }
        if let ConnectionState::Open(stream) = &self.state
            && any
            && self.settings.quick_ack
        {
            self.counters.system_calls += 1;
            // A convenience: without it acknowledgements wait for 40 ms.
            let _ = sockopt::set_tcp_quickack(stream, true);
        }
    }
}

impl Messenger for TcpConnection {
    fn send(&mut self, _now: Time, message: &[u8]) -> Result<(), Refused> {
        let limit_bytes = self.settings.max_message.bytes() as usize;
        Refused::if_larger(message, limit_bytes)?;
        if !matches!(self.state, ConnectionState::Open(_)) {
            return Err(Refused::NotOpen);
        }
        if !self.outgoing.is_empty() {
            return Err(Refused::BufferFull);
        }
        write(message, &mut self.outgoing);
        self.write_on();
        Ok(())
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        match self.cutter.next_message() {
            Ok(bytes) => bytes.map(|bytes| Message {
                bytes,
                // What is out of order waits in the kernel, out of sight.
                blocked: None,
            }),
            Err(error) => {
                self.state = ConnectionState::Closed(Closed::Failed(error.to_string()));
                None
            }
        }
    }

    fn state(&self) -> State {
        match &self.state {
            ConnectionState::Listening(..) | ConnectionState::Connecting(_) => State::Connecting,
            ConnectionState::Open(_) => State::Ready,
            ConnectionState::Closed(why) => State::Closed(why.clone()),
        }
    }
}

impl Driven for TcpConnection {
    fn take_in(&mut self, now: Time) {
        if self.state() == State::Connecting {
            self.progress();
        }
        self.read_all(now);
    }

    fn put_out(&mut self, _now: Time) {
        self.write_on();
    }
}

impl SocketConnection for TcpConnection {
    fn next_deadline(&mut self) -> Option<Time> {
        None
    }

    fn wait(&mut self, longest: Duration) {
        let in_vain = match &self.state {
            ConnectionState::Listening(listener, _) => sleep::until_ready(listener, false, longest),
            ConnectionState::Connecting(stream) => sleep::until_ready(stream, true, longest),
            ConnectionState::Open(stream) => {
                sleep::until_ready(stream, !self.outgoing.is_empty(), longest)
            }
            ConnectionState::Closed(_) => {
                std::thread::sleep(longest);
                true
            }
        };
        self.drained.note_wait(in_vain);
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn path(&self) -> String {
        let asked = &self.settings.congestion_control;
        let used = match &self.state {
            ConnectionState::Open(stream) => sockopt::tcp_congestion(stream).ok(),
            _ => None,
        };
        format!("kernel TCP, {}", used.as_ref().unwrap_or(asked))
    }
}

fn socket(address: SocketAddr) -> io::Result<std::os::fd::OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Sets the options of the kernel's socket that the settings ask for.
fn prepare(stream: &TcpStream, settings: &Settings) -> io::Result<()> {
    set_congestion(stream, &settings.congestion_control)?;
    sockopt::set_tcp_nodelay(stream, settings.no_delay)?;
    sockopt::set_tcp_thin_linear_timeouts(stream, settings.thin_linear_timeouts)?;
    if settings.quick_ack {
        sockopt::set_tcp_quickack(stream, true)?;
    }
    let timeout = settings.user_timeout.duration().as_millis();
    sockopt::set_tcp_user_timeout(stream, u32::try_from(timeout).unwrap_or(u32::MAX))?;
    let buffer = settings.send_buffer.bytes() as usize;
    if buffer > 0 {
        sockopt::set_socket_send_buffer_size(stream, buffer)?;
    }
    let mark = settings.not_sent_low_water.bytes() as u32;
    if mark > 0 {
        SockRef::from(stream).set_tcp_notsent_lowat(mark)?;
    }
    Ok(())
}

/// The connection of whoever has come.
fn accepted(listener: &TcpListener, client: IpAddr, settings: &Settings) -> io::Result<TcpStream> {
    let (stream, from) = listener.accept()?;
    if from.ip().to_canonical() != client.to_canonical() {
        // Dropped, it is closed; the next to come may be the client.
        return Err(ErrorKind::ConnectionAborted.into());
    }
    stream.set_nonblocking(true)?;
    prepare(&stream, settings)?;
    Ok(stream)
}

/// Whether a connection that is being made stands.
fn connected(stream: &TcpStream) -> io::Result<bool> {
    let mut files = [PollFd::new(stream, PollFlags::OUT)];
    poll(&mut files, Some(&Timespec::default()))?;
    if files[0].revents().is_empty() {
        return Ok(false);
    }
    sockopt::socket_error(stream)??;
    Ok(true)
}

/// Whether another attempt may find things otherwise: nobody has come yet, or
/// whoever came has left again.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
    )
}

fn reason(error: &io::Error) -> Closed {
    match error.kind() {
        ErrorKind::TimedOut => Closed::DeadLink,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Closed::ByPeer,
        _ => Closed::Failed(error.to_string()),
    }
}
