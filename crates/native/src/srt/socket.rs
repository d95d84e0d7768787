//! An SRT socket in message mode.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use crate::srt::error::Error;
use crate::srt::foreign;
use crate::srt::threads::Threads;
use crate::state::State;

/// `srt.h`, `enum SRT_SOCKOPT`.
mod option {
    pub(super) const SEND_WAITS: i32 = 1;
    pub(super) const RECEIVE_WAITS: i32 = 2;
    pub(super) const TIMED_DELIVERY: i32 = 22;
    pub(super) const DROP_LATE: i32 = 31;
    pub(super) const REPEAT_LOSS_REPORTS: i32 = 33;
    pub(super) const CONNECT_TIMEOUT_MS: i32 = 36;
    pub(super) const RECEIVE_LATENCY_MS: i32 = 43;
    pub(super) const PEER_LATENCY_MS: i32 = 44;
    pub(super) const PAYLOAD_BYTES: i32 = 49;
    pub(super) const TRANSMISSION: i32 = 50;
    pub(super) const PEER_IDLE_MS: i32 = 55;
    pub(super) const REORDER_TOLERANCE_PACKETS: i32 = 42;
    pub(super) const ONCE_A_ROUND_TRIP: i32 = 61;
    /// The value of `TRANSMISSION` for live traffic.
    pub(super) const LIVE: i32 = 0;
}

/// SRT, started. Clones and sockets share it; with the last of them SRT is
/// cleaned up.
#[derive(Clone, Debug)]
pub struct Library {
    _started: Arc<Started>,
}

#[derive(Debug)]
struct Started;

impl Library {
    /// Starts SRT. It counts its own starts, so this may be called anywhere
    /// and often.
    ///
    /// # Errors
    ///
    /// [`Error`] when SRT cannot.
    pub fn start() -> Result<Self, Error> {
        foreign::startup()?;
        Ok(Self {
            _started: Arc::new(Started),
        })
    }

    /// Its release, as in `libsrt 1.5.1`.
    #[must_use]
    pub fn version() -> String {
        let [_, major, minor, patch] = foreign::version().to_be_bytes();
        format!("libsrt {major}.{minor}.{patch}")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        foreign::cleanup();
    }
}

/// What a socket can be configured with before it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Deliver every message so long after it was sent, which hides the
    /// path's jitter, and drop what comes later. Without it messages are
    /// delivered as they come, in order, and none is dropped.
    pub latency: Option<Duration>,
    /// How long the peer may be silent before the connection is given up.
    pub peer_idle: Duration,
    /// Report a loss again, every so often, until it is mended.
    pub repeats_loss_reports: bool,
    /// Send what was reported lost no more than once in a round trip, rather than upon
    /// every report.
    pub resends_once_a_round_trip: bool,
    /// The most packets that may overtake a missing one before it is reported lost.
    pub reorder_tolerance_packets: u32,
}

/// An SRT socket: listening, connecting or connected. None of its calls waits.
/// Dropped, it is closed.
#[derive(Debug)]
pub struct Socket {
    id: i32,
    library: Library,
    threads: Arc<Threads>,
}

impl Socket {
    /// The largest message: a packet of 1500 bytes less headers.
    pub const LARGEST_MESSAGE_BYTES: usize = 1456;

    /// Makes a socket.
    ///
    /// # Errors
    ///
    /// [`Error`] when an option is refused or memory is short.
    pub fn new(library: &Library, options: &Options) -> Result<Self, Error> {
        let socket = Self {
            id: foreign::socket()?,
            library: library.clone(),
            threads: Arc::new(Threads::default()),
        };
        socket.set(options)?;
        Ok(socket)
    }

    /// Gives the socket its UDP socket, which must be bound, and makes its
    /// threads.
    ///
    /// # Errors
    ///
    /// [`Error`] when the socket is bound already or there can be no more
    /// threads.
    pub fn bind(&self, udp: UdpSocket) -> Result<(), Error> {
        self.threads.watch(|| foreign::bind(self.id, udp))
    }

    /// Waits for connections, of which `backlog` may be unaccepted at a time.
    ///
    /// # Errors
    ///
    /// [`Error`] when the socket is not bound or is connected.
    pub fn listen(&self, backlog: u16) -> Result<(), Error> {
        foreign::listen(self.id, backlog.into())
    }

    /// Takes the next connection.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldBlock`](crate::srt::Kind::WouldBlock) when there is none.
    pub fn accept(&self) -> Result<Self, Error> {
        Ok(Self {
            id: foreign::accept(self.id)?,
            library: self.library.clone(),
            threads: Arc::clone(&self.threads),
        })
    }

    /// Asks for a connection; [`Socket::state`] says what became of it.
    ///
    /// # Errors
    ///
    /// [`Error`] when it cannot be asked for.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), Error> {
        foreign::connect(self.id, peer)
    }

    /// Sends a message of 1 to [`Self::LARGEST_MESSAGE_BYTES`] bytes.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldBlock`](crate::srt::Kind::WouldBlock) when there is no room,
    /// [`Kind::Lost`](crate::srt::Kind::Lost) when there is no connection.
    pub fn send_message(&self, message: &[u8]) -> Result<(), Error> {
        foreign::send_message(self.id, message)
    }

    /// Receives the next message and says how long it is; `buffer` must hold
    /// the largest.
    ///
    /// # Errors
    ///
    /// As [`Socket::send_message`].
    pub fn receive_message(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        foreign::receive_message(self.id, buffer)
    }

    /// Where the socket is in its life.
    #[must_use]
    pub fn state(&self) -> State {
        State::from_code(foreign::state(self.id))
    }

    /// The processor time of the threads that SRT made for this socket's UDP
    /// socket. Accepted connections share those of their listener.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.threads.cpu()
    }

    fn set(&self, options: &Options) -> Result<(), Error> {
        let milliseconds = |span: Duration| i32::try_from(span.as_millis()).unwrap_or(i32::MAX);
        // First: it resets what the kind of traffic implies.
        foreign::set_int(self.id, option::TRANSMISSION, option::LIVE)?;
        let largest = i32::try_from(Self::LARGEST_MESSAGE_BYTES).unwrap_or(i32::MAX);
        foreign::set_int(self.id, option::PAYLOAD_BYTES, largest)?;
        foreign::set_bool(self.id, option::SEND_WAITS, false)?;
        foreign::set_bool(self.id, option::RECEIVE_WAITS, false)?;
        foreign::set_bool(
            self.id,
            option::REPEAT_LOSS_REPORTS,
            options.repeats_loss_reports,
        )?;
        foreign::set_int(
            self.id,
            option::ONCE_A_ROUND_TRIP,
            options.resends_once_a_round_trip.into(),
        )?;
        foreign::set_int(
            self.id,
            option::REORDER_TOLERANCE_PACKETS,
            i32::try_from(options.reorder_tolerance_packets).unwrap_or(i32::MAX),
        )?;
        foreign::set_bool(self.id, option::TIMED_DELIVERY, options.latency.is_some())?;
        foreign::set_bool(self.id, option::DROP_LATE, options.latency.is_some())?;
        if let Some(latency) = options.latency {
            foreign::set_int(self.id, option::RECEIVE_LATENCY_MS, milliseconds(latency))?;
            foreign::set_int(self.id, option::PEER_LATENCY_MS, milliseconds(latency))?;
        }
        foreign::set_int(self.id, option::CONNECT_TIMEOUT_MS, 5000)?;
        foreign::set_int(
            self.id,
            option::PEER_IDLE_MS,
            milliseconds(options.peer_idle),
        )
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        foreign::close(self.id);
    }
}
