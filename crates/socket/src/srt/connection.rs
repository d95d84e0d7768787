//! An SRT connection as one side of a lane.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use lagometer_native::srt::{Error, Kind, Library, Options, Socket};
use lagometer_transport::{Closed, Driven, Message, Messenger, Refused, State};
use lagometer_units::Time;

use super::settings::Settings;
use crate::connection::{Counters, SocketConnection};

/// One side of a lane over SRT.
#[derive(Debug)]
pub(super) struct SrtConnection {
    state: ConnectionState,
    /// Kept while the connection lives: it answers a client again to whom its
    /// first answer was lost.
    listener: Option<Socket>,
    incoming: VecDeque<Vec<u8>>,
    buffer: Box<[u8]>,
    /// What the threads of a connection had used when it ended.
    cpu: Duration,
}

#[derive(Debug)]
enum ConnectionState {
    Listening,
    Connecting(Socket),
    Open(Socket),
    Closed(Closed),
}

/// How often one looks: SRT has no file to wait on.
const LOOK: Duration = Duration::from_millis(1);

/// Reads in one turn at most: a flood from the peer must not silence this
/// side.
const READS_AT_ONCE: usize = 64;

/// Messages that wait to be taken out at most, before reading stops.
const INCOMING_AT_MOST: usize = 1024;

impl SrtConnection {
    /// Waits for one connection at `remote`.
    pub(super) fn listen(settings: &Settings, remote: SocketAddr) -> io::Result<Self> {
        let socket = bound(settings, remote)?;
        socket.listen(1).map_err(|error| system(&error))?;
        Ok(Self::new(ConnectionState::Listening, Some(socket)))
    }

    /// Opens a connection from `local` to `remote`.
    pub(super) fn connect(
        settings: &Settings,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Self> {
        let socket = bound(settings, local)?;
        socket.connect(remote).map_err(|error| system(&error))?;
        Ok(Self::new(ConnectionState::Connecting(socket), None))
    }

    fn new(state: ConnectionState, listener: Option<Socket>) -> Self {
        Self {
            state,
            listener,
            incoming: VecDeque::new(),
            buffer: vec![0; Socket::LARGEST_MESSAGE_BYTES].into_boxed_slice(),
            cpu: Duration::ZERO,
        }
    }

    /// Goes on with the handshake; SRT's threads do the work.
    fn progress(&mut self) {
        let state = std::mem::replace(&mut self.state, ConnectionState::Closed(Closed::DeadLink));
        self.state = match (state, &self.listener) {
            (ConnectionState::Listening, Some(listener)) => match listener.accept() {
                Ok(accepted) => ConnectionState::Open(accepted),
                Err(error) if error.would_block() => ConnectionState::Listening,
                Err(error) => ConnectionState::Closed(reason(&error)),
            },
            (ConnectionState::Connecting(socket), _) => match socket.state() {
                lagometer_native::srt::State::Connecting => ConnectionState::Connecting(socket),
                lagometer_native::srt::State::Connected => ConnectionState::Open(socket),
                _ => ConnectionState::Closed(Closed::DeadLink),
            },
            (state, _) => state,
        };
    }

    fn read_all(&mut self) {
        for _ in 0..READS_AT_ONCE {
            let ConnectionState::Open(socket) = &self.state else {
                return;
            };
            if self.incoming.len() >= INCOMING_AT_MOST {
                return;
            }
            match socket.receive_message(&mut self.buffer) {
                Ok(length) => self.incoming.push_back(self.buffer[..length].to_vec()),
                Err(error) if error.would_block() => return,
                Err(error) => self.close(reason(&error)),
            }
        }
    }

    fn close(&mut self, why: Closed) {
        self.cpu = self.counters().library_cpu;
        self.state = ConnectionState::Closed(why);
        self.listener = None;
    }
}

impl Messenger for SrtConnection {
    fn send(&mut self, _now: Time, message: &[u8]) -> Result<(), Refused> {
        let limit_bytes = Socket::LARGEST_MESSAGE_BYTES;
        // SRT has no empty messages.
        if message.is_empty() || message.len() > limit_bytes {
            return Err(Refused::TooLarge {
                size_bytes: message.len(),
                limit_bytes,
            });
        }
        let ConnectionState::Open(socket) = &self.state else {
            return Err(Refused::NotOpen);
        };
        match socket.send_message(message) {
            Ok(()) => Ok(()),
            Err(error) if error.would_block() => Err(Refused::BufferFull),
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
            // What is out of order waits in SRT, out of sight.
            blocked: None,
        })
    }

    fn state(&self) -> State {
        match &self.state {
            ConnectionState::Listening | ConnectionState::Connecting(_) => State::Connecting,
            ConnectionState::Open(_) => State::Ready,
            ConnectionState::Closed(why) => State::Closed(why.clone()),
        }
    }
}

impl Driven for SrtConnection {
    fn take_in(&mut self, _now: Time) {
        self.progress();
        self.read_all();
    }

    /// SRT's threads do that.
    fn put_out(&mut self, _now: Time) {}
}

impl SocketConnection for SrtConnection {
    fn next_deadline(&mut self) -> Option<Time> {
        None
    }

    fn wait(&mut self, longest: Duration) {
        let is_closed = matches!(self.state, ConnectionState::Closed(_));
        thread::sleep(if is_closed {
            longest
        } else {
            longest.min(LOOK)
        });
    }

    fn counters(&self) -> Counters {
        let library_cpu = match &self.state {
            ConnectionState::Listening => {
                self.listener.as_ref().map_or(Duration::ZERO, Socket::cpu)
            }
            ConnectionState::Connecting(socket) | ConnectionState::Open(socket) => socket.cpu(),
            ConnectionState::Closed(_) => self.cpu,
        };
        // The system calls are the library's, out of sight.
        Counters {
            library_cpu,
            ..Counters::default()
        }
    }

    fn path(&self) -> String {
        "SRT's threads, looked at every ms".to_owned()
    }
}

/// A socket that has its UDP socket and its threads, which are made by the
/// calling thread and so belong to its network namespace.
fn bound(settings: &Settings, address: SocketAddr) -> io::Result<Socket> {
    let library = Library::start().map_err(|error| system(&error))?;
    let udp = UdpSocket::bind(address)?;
    let latency = settings.latency.duration();
    let options = Options {
        latency: (!latency.is_zero()).then_some(latency),
        peer_idle: settings.peer_idle.duration(),
        repeats_loss_reports: settings.repeat_loss_reports,
        resends_once_a_round_trip: settings.resend_once_a_round_trip,
        reorder_tolerance_packets: settings.reorder_tolerance_packets,
    };
    let socket = Socket::new(&library, &options).map_err(|error| system(&error))?;
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
        // SRT does not distinguish a peer that left from one that fell silent.
        Kind::Lost | Kind::NotConnected | Kind::Closed => Closed::ByPeer,
        _ => Closed::Failed(error.to_string()),
    }
}
