//! A UDT connection as one side of a lane.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lagometer_native::udt::{Error, Kind, Library, Mode, Order, Poll, Socket};
use lagometer_transport::framing::{Cutter, write};
use lagometer_transport::{Closed, Driven, Message, Messenger, Refused, State};
use lagometer_units::Time;

use super::inbox::Inbox;
use super::settings::{Settings, Waiting};
use crate::connection::{Counters, SocketConnection};
use crate::sleep;

/// One side of a lane over UDT.
#[derive(Debug)]
pub(super) struct UdtConnection {
    settings: Settings,
    state: ConnectionState,
    /// Kept while the connection lives: it answers a client again to whom its
    /// first answer was lost.
    listener: Option<Socket>,
    /// Of a stream, what UDT has had no room for yet.
    outgoing: VecDeque<u8>,
    /// Whether a message was refused since UDT last had room.
    is_blocked: bool,
    /// Of a stream, what has come of messages that are not whole.
    cutter: Cutter,
    /// Messages that wait to be taken out.
    incoming: VecDeque<Vec<u8>>,
    buffer: Box<[u8]>,
    /// What the threads of a connection had used when it ended.
    cpu: Duration,
    /// The first turn.
    begun: Option<Time>,
}

#[derive(Debug)]
enum ConnectionState {
    Listening,
    Connecting(Arc<Socket>),
    Open(Arc<Socket>, Source),
    Closed(Closed),
}

/// Where a connection's messages come from.
#[derive(Debug)]
enum Source {
    Socket,
    Poll(Poll),
    Inbox(Inbox),
}

/// How often one looks where nothing wakes one.
const LOOK: Duration = Duration::from_millis(1);

/// The steps in which UDT's epoll keeps time.
const EPOLL_STEP: Duration = Duration::from_millis(10);

/// UDT asks for a connection for three seconds and notifies nobody when it stops.
const CONNECT: Duration = Duration::from_millis(3500);

/// Reads in one turn at most: a flood from the peer must not silence this
/// side.
const READS_AT_ONCE: usize = 64;

/// The most a single read of a stream takes.
const PIECE_BYTES: usize = 100_000;

/// Messages that wait to be taken out at most, before reading stops.
const INCOMING_AT_MOST: usize = 1024;

impl UdtConnection {
    /// Waits for one connection at `remote`.
    pub(super) fn listen(settings: &Settings, remote: SocketAddr) -> io::Result<Self> {
        let socket = bound(settings, remote)?;
        socket.listen(1).map_err(|error| system(&error))?;
        Ok(Self::new(
            settings,
            ConnectionState::Listening,
            Some(socket),
        ))
    }

    /// Opens a connection from `local` to `remote`.
    pub(super) fn connect(
        settings: &Settings,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Self> {
        let socket = bound(settings, local)?;
        socket.connect(remote).map_err(|error| system(&error))?;
        Ok(Self::new(
            settings,
            ConnectionState::Connecting(Arc::new(socket)),
            None,
        ))
    }

    fn new(settings: &Settings, state: ConnectionState, listener: Option<Socket>) -> Self {
        let largest = settings.max_message.bytes() as usize;
        Self {
            settings: settings.clone(),
            state,
            listener,
            outgoing: VecDeque::new(),
            is_blocked: false,
            cutter: Cutter::new(largest),
            incoming: VecDeque::new(),
            buffer: vec![0; largest.max(PIECE_BYTES)].into_boxed_slice(),
            cpu: Duration::ZERO,
            begun: None,
        }
    }

    /// Goes on with the handshake; UDT's threads do the work.
    fn progress(&mut self, now: Time) {
        let begun = *self.begun.get_or_insert(now);
        let found = match (&self.state, &self.listener) {
            (ConnectionState::Listening, Some(listener)) => match listener.accept() {
                Ok((accepted, _)) => Some(Ok(Arc::new(accepted))),
                Err(error) if error.would_block() => None,
                Err(error) => Some(Err(reason(&error))),
            },
            (ConnectionState::Connecting(socket), _) => match socket.state() {
                lagometer_native::udt::State::Connected => Some(Ok(Arc::clone(socket))),
                lagometer_native::udt::State::Connecting if now < begun + CONNECT => None,
                _ => Some(Err(Closed::DeadLink)),
            },
            _ => None,
        };
        match found {
            Some(Ok(socket)) => match self.source(&socket) {
                Ok(source) => self.state = ConnectionState::Open(socket, source),
                Err(error) => self.close(Closed::Failed(error.to_string())),
            },
            Some(Err(why)) => self.close(why),
            None => {}
        }
    }

    fn source(&self, socket: &Arc<Socket>) -> io::Result<Source> {
        Ok(match self.settings.waiting {
            Waiting::Sleep => Source::Socket,
            Waiting::Epoll => {
                Source::Poll(Poll::new(Arc::clone(socket)).map_err(|error| system(&error))?)
            }
            Waiting::Thread => {
                socket
                    .set_receive_waits(true)
                    .map_err(|error| system(&error))?;
                Source::Inbox(Inbox::open(
                    Arc::clone(socket),
                    self.settings.mode(),
                    self.buffer.len(),
                )?)
            }
        })
    }

    fn close(&mut self, why: Closed) {
        self.cpu = self.counters().library_cpu;
        self.state = ConnectionState::Closed(why);
        self.listener = None;
    }

    fn read_all(&mut self) {
        if let ConnectionState::Open(_, Source::Inbox(inbox)) = &self.state {
            inbox.hush();
        }
        for _ in 0..READS_AT_ONCE {
            if self.incoming.len() >= INCOMING_AT_MOST {
                return;
            }
            let ConnectionState::Open(socket, source) = &mut self.state else {
                return;
            };
            let taken = match source {
                Source::Inbox(inbox) => inbox.take().map_err(|_| Closed::ByPeer),
                Source::Socket | Source::Poll(_) => {
                    let received = match self.settings.mode() {
                        Mode::Messages => socket.receive_message(&mut self.buffer),
                        Mode::Stream => socket.receive(&mut self.buffer[..PIECE_BYTES]),
                    };
                    match received {
                        Ok(length) => Ok(Some(self.buffer[..length].to_vec())),
                        Err(error) if error.would_block() => match source {
                            Source::Poll(poll) => {
                                poll.read_empty().map(|()| None).map_err(|e| reason(&e))
                            }
                            _ => Ok(None),
                        },
                        Err(error) => Err(reason(&error)),
                    }
                }
            };
            match taken {
                Ok(Some(piece)) => self.keep(piece),
                Ok(None) => return,
                Err(why) => self.close(why),
            }
        }
    }

    /// Keeps a message, or the messages that a piece of a stream completes.
    fn keep(&mut self, piece: Vec<u8>) {
        if !self.settings.stream {
            self.incoming.push_back(piece);
            return;
        }
        self.cutter.push(&piece);
        loop {
            match self.cutter.next_message() {
                Ok(Some(message)) => self.incoming.push_back(message),
                Ok(None) => return,
                Err(error) => {
                    self.close(Closed::Failed(error.to_string()));
                    return;
                }
            }
        }
    }

    fn write_on(&mut self) {
        while let ConnectionState::Open(socket, _) = &self.state
            && !self.outgoing.is_empty()
        {
            let (piece, _) = self.outgoing.as_slices();
            match socket.send(piece) {
                Ok(0) => return,
                Ok(sent) => {
                    self.outgoing.drain(..sent);
                }
                Err(error) if error.would_block() => return,
                Err(error) => {
                    let why = reason(&error);
                    self.close(why);
                }
            }
        }
    }

    fn send_on_stream(&mut self, message: &[u8]) -> Result<(), Refused> {
        if !self.outgoing.is_empty() {
            return Err(Refused::BufferFull);
        }
        write(message, &mut self.outgoing);
        self.write_on();
        Ok(())
    }
}

impl Messenger for UdtConnection {
    fn send(&mut self, _now: Time, message: &[u8]) -> Result<(), Refused> {
        let limit_bytes = self.settings.max_message.bytes() as usize;
        Refused::if_larger(message, limit_bytes)?;
        let ConnectionState::Open(socket, _) = &self.state else {
            return Err(Refused::NotOpen);
        };
        if self.settings.stream {
            return self.send_on_stream(message);
        }
        if message.is_empty() {
            // UDT takes an empty message and sends nothing.
            return Err(Refused::TooLarge {
                size_bytes: 0,
                limit_bytes,
            });
        }
        let order = if self.settings.ordered {
            Order::Kept
        } else {
            Order::Free
        };
        match socket.send_message(message, None, order) {
            Ok(()) => {
                self.is_blocked = false;
                Ok(())
            }
            Err(error) if error.would_block() => {
                self.is_blocked = true;
                Err(Refused::BufferFull)
            }
            Err(error) => {
                let why = reason(&error);
                self.close(why);
                Err(Refused::NotOpen)
            }
        }
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        self.incoming.pop_front().map(|bytes| Message {
            bytes,
            // What is out of order waits in UDT, out of sight.
            blocked: None,
        })
    }

    fn state(&self) -> State {
        match &self.state {
            ConnectionState::Listening | ConnectionState::Connecting(_) => State::Connecting,
            ConnectionState::Open(..) => State::Ready,
            ConnectionState::Closed(why) => State::Closed(why.clone()),
        }
    }
}

impl Driven for UdtConnection {
    fn take_in(&mut self, now: Time) {
        self.progress(now);
        self.read_all();
    }

    fn put_out(&mut self, _now: Time) {
        self.write_on();
    }
}

impl SocketConnection for UdtConnection {
    fn next_deadline(&mut self) -> Option<Time> {
        None
    }

    fn wait(&mut self, longest: Duration) {
        let wants_room = self.is_blocked || !self.outgoing.is_empty();
        match &mut self.state {
            ConnectionState::Open(_, Source::Inbox(inbox)) => {
                // Nothing reports room in the send buffer.
                let longest = if wants_room {
                    longest.min(LOOK)
                } else {
                    longest
                };
                sleep::until_ready(inbox.waker(), false, longest);
            }
            ConnectionState::Open(_, Source::Poll(poll)) if longest > EPOLL_STEP => {
                // What is wrong with the socket is reported by its next use.
                let _ = poll.watch_writing(wants_room);
                let _ = poll.wait(longest.saturating_sub(EPOLL_STEP));
            }
            ConnectionState::Closed(_) => thread::sleep(longest),
            _ => thread::sleep(longest.min(LOOK)),
        }
    }

    fn counters(&self) -> Counters {
        let library_cpu = match &self.state {
            ConnectionState::Listening => {
                self.listener.as_ref().map_or(Duration::ZERO, Socket::cpu)
            }
            ConnectionState::Open(socket, Source::Inbox(inbox)) => socket.cpu() + inbox.cpu(),
            ConnectionState::Connecting(socket) | ConnectionState::Open(socket, _) => socket.cpu(),
            ConnectionState::Closed(_) => self.cpu,
        };
        // The system calls are the library's, out of sight.
        Counters {
            library_cpu,
            ..Counters::default()
        }
    }

    fn path(&self) -> String {
        match self.settings.waiting {
            Waiting::Thread => "UDT's threads, one more that waits".to_owned(),
            Waiting::Sleep => "UDT's threads, looked at every ms".to_owned(),
            Waiting::Epoll => "UDT's threads and epoll".to_owned(),
        }
    }
}

/// A socket that has its UDP socket and its threads, which are made by the
/// calling thread and so belong to its network namespace.
fn bound(settings: &Settings, address: SocketAddr) -> io::Result<Socket> {
    let library = Library::start().map_err(|error| system(&error))?;
    let udp = UdpSocket::bind(address)?;
    let socket = Socket::new(
        &library,
        settings.mode(),
        address.is_ipv6(),
        &settings.options(),
    )
    .map_err(|error| system(&error))?;
    socket.bind(udp).map_err(|error| system(&error))?;
    Ok(socket)
}

fn system(error: &Error) -> io::Error {
    match error.kind() {
        Kind::System(number) if number != 0 => io::Error::from_raw_os_error(number),
        _ => io::Error::other(error.to_string()),
    }
}

fn reason(error: &Error) -> Closed {
    match error.kind() {
        // UDT does not distinguish a peer that left from one that fell silent.
        Kind::Lost | Kind::NotConnected | Kind::Closed => Closed::ByPeer,
        _ => Closed::Failed(error.to_string()),
    }
}
