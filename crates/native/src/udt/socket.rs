//! A UDT socket: bound, connected, read and written, with what the library counts of it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::state::State;
use crate::udt::error::{Error, Kind};
use crate::udt::options::{Options, RateControl};
use crate::udt::ports::HeldPort;
use crate::udt::threads::Threads;
use crate::udt::{Library, foreign};

/// UDT's options by their places in `enum UDTOpt`, `udt.h`.
mod option {
    pub(super) const PACKET_BYTES: i32 = 0;
    pub(super) const SEND_WAITS: i32 = 1;
    pub(super) const RECEIVE_WAITS: i32 = 2;
    pub(super) const FLIGHT_PACKETS: i32 = 4;
    pub(super) const SEND_BUFFER: i32 = 5;
    pub(super) const RECEIVE_BUFFER: i32 = 6;
    pub(super) const REUSE_ADDRESS: i32 = 15;
    pub(super) const UNSENT_PACKETS: i32 = 19;
}

/// A UDT socket: listening, connecting or connected.
///
/// It may be used by several threads at once, as one that sends and one that
/// waits to receive. Dropped, it is closed.
#[derive(Debug)]
pub struct Socket {
    id: i32,
    library: Library,
    threads: Arc<Threads>,
    port: OnceLock<Arc<HeldPort>>,
}

/// How a socket carries what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whole messages (`SOCK_DGRAM`).
    Messages,
    /// A stream of bytes (`SOCK_STREAM`).
    Stream,
}

/// Whether a message waits for those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It does.
    Kept,
    /// It is delivered as soon as it is whole.
    Free,
}

/// What UDT knows of a connection, since it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Data packets sent, those that were sent again included.
    pub sent_packets: u64,
    /// Data packets received.
    pub received_packets: u64,
    /// Data packets sent again.
    pub resent_packets: u64,
    /// Packets in flight.
    pub flight_packets: u32,
    /// Packets that the rate control allows in flight.
    pub window_packets: u32,
    /// The time that the rate control puts between two packets.
    pub period: Duration,
    /// UDT's estimate of the round trip.
    pub round_trip: Duration,
}

impl Socket {
    /// Makes a socket for addresses of IPv6 or IPv4.
    ///
    /// # Errors
    ///
    /// [`Kind::BadArgument`] when an option is out of its range,
    /// [`Kind::System`] when memory is short.
    pub fn new(
        library: &Library,
        mode: Mode,
        ipv6: bool,
        options: &Options,
    ) -> Result<Self, Error> {
        let socket = Self {
            id: foreign::socket(ipv6, mode == Mode::Messages)?,
            library: library.clone(),
            threads: Arc::default(),
            port: OnceLock::new(),
        };
        socket.set(options)?;
        Ok(socket)
    }

    /// Gives the socket its UDP socket, which must be bound, and makes its
    /// threads. They belong to the network namespace of the calling thread; the
    /// UDP socket should, too.
    ///
    /// # Errors
    ///
    /// [`Kind::BadArgument`] when the socket is bound already,
    /// [`Kind::PortTaken`] when another socket of this process has the same port
    /// number, [`Kind::System`] when there can be no more threads.
    pub fn bind(&self, udp: UdpSocket) -> Result<(), Error> {
        let address = udp.local_addr().map_err(|error| {
            Error::new("binding", Kind::System(error.raw_os_error().unwrap_or(0)))
        })?;
        let port = HeldPort::take(address.port())
            .ok_or_else(|| Error::new("binding", Kind::PortTaken(address.port())))?;
        self.threads.of(|| foreign::bind(self.id, udp))?;
        // A second bind has failed above, so there is none yet.
        let _ = self.port.set(Arc::new(port));
        Ok(())
    }

    /// Waits for connections, of which `backlog` may be unaccepted at a time.
    ///
    /// # Errors
    ///
    /// [`Kind::BadArgument`] when the socket is not bound or is connected.
    pub fn listen(&self, backlog: u16) -> Result<(), Error> {
        foreign::listen(self.id, backlog.into())
    }

    /// Takes the next connection, and who it is with.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldBlock`] when there is none and the socket does not wait.
    pub fn accept(&self) -> Result<(Self, Option<SocketAddr>), Error> {
        let (id, peer) = foreign::accept(self.id)?;
        let accepted = Self {
            id,
            library: self.library.clone(),
            threads: Arc::clone(&self.threads),
            port: self.port.clone(),
        };
        Ok((accepted, peer))
    }

    /// Asks for a connection. A socket whose receiving does not wait returns at
    /// once, and [`Socket::state`] says when there is one. UDT asks for three
    /// seconds, and then gives up without a word.
    ///
    /// # Errors
    ///
    /// [`Kind::NoServer`] and [`Kind::Rejected`] where it waits;
    /// [`Kind::BadArgument`] when the address is of the other family.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), Error> {
        foreign::connect(self.id, peer)
    }

    /// Whether receiving waits from now on for something to arrive.
    ///
    /// # Errors
    ///
    /// [`Kind::Lost`] when there is no connection any more.
    pub fn set_receive_waits(&self, waits: bool) -> Result<(), Error> {
        foreign::set_bool(self.id, option::RECEIVE_WAITS, waits)
    }

    /// Sends bytes of a stream, as many as there is room for, and says how
    /// many.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldBlock`] when there is no room, [`Kind::Lost`] and
    /// [`Kind::NotConnected`] when there is no connection.
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Error> {
        foreign::send(self.id, bytes)
    }

    /// Sends a message that is not empty. Where `lifetime` is given, it is
    /// given up when it would be sent again after that time.
    ///
    /// # Errors
    ///
    /// As [`Socket::send`], and [`Kind::TooLarge`] when it is larger than the
    /// send buffer.
    pub fn send_message(
        &self,
        message: &[u8],
        lifetime: Option<Duration>,
        order: Order,
    ) -> Result<(), Error> {
        let lifetime_ms = lifetime.map_or(-1, |lifetime| {
            i32::try_from(lifetime.as_millis()).unwrap_or(i32::MAX)
        });
        match foreign::send_message(self.id, message, lifetime_ms, order == Order::Kept) {
            Ok(0) if !message.is_empty() => Err(Error::new("sending", Kind::WouldBlock)),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Receives bytes of a stream and says how many.
    ///
    /// # Errors
    ///
    /// [`Kind::WouldBlock`] when there are none and the socket does not wait,
    /// [`Kind::Lost`] and [`Kind::NotConnected`] when there is no connection.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        foreign::receive(self.id, buffer)
    }

    /// Receives the next message and says how long it is. What does not fit
    /// into `buffer` is lost.
    ///
    /// # Errors
    ///
    /// As [`Socket::receive`].
    pub fn receive_message(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        foreign::receive_message(self.id, buffer)
    }

    /// Where the socket is in its life.
    #[must_use]
    pub fn state(&self) -> State {
        State::from_code(foreign::state(self.id))
    }

    /// How many packets the send buffer holds: sent and not acknowledged, or
    /// not sent. Nought when there is no connection.
    #[must_use]
    pub fn unacknowledged_packets(&self) -> u32 {
        foreign::get_int(self.id, option::UNSENT_PACKETS)
            .ok()
            .and_then(|packets| u32::try_from(packets).ok())
            .unwrap_or(0)
    }

    /// What UDT knows of the connection.
    ///
    /// # Errors
    ///
    /// [`Kind::NotConnected`] and [`Kind::Lost`] when there is none.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        let raw = foreign::statistics(self.id)?;
        Ok(Statistics {
            sent_packets: raw.sent_packets.max(0) as u64,
            received_packets: raw.received_packets.max(0) as u64,
            resent_packets: u64::from(raw.resent_packets.max(0) as u32),
            flight_packets: raw.flight_packets.max(0) as u32,
            window_packets: raw.window_packets.max(0) as u32,
            period: Duration::try_from_secs_f64(raw.period_us / 1e6).unwrap_or_default(),
            round_trip: Duration::try_from_secs_f64(raw.round_trip_ms / 1e3).unwrap_or_default(),
        })
    }

    /// The processor time of the threads that UDT made for this socket's UDP
    /// socket. Accepted connections share those of their listener. Of a thread
    /// that has ended, what it had used when it was last asked for or when a
    /// socket was closed.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.threads.cpu()
    }

    /// How many threads of this socket's UDP socket are alive.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.threads.alive()
    }

    /// Closes the socket; whoever waits in one of its calls is sent back with
    /// an error, as is every later call.
    pub fn close(&self) {
        // Its threads end soon after, and with them their clocks.
        self.threads.cpu();
        foreign::close(self.id);
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    fn set(&self, options: &Options) -> Result<(), Error> {
        let set = |option, value: u32| {
            foreign::set_int(self.id, option, i32::try_from(value).unwrap_or(i32::MAX))
        };
        // The packet size first, then what may be in flight: UDT counts the
        // buffers in the one and bounds them by the other.
        set(option::PACKET_BYTES, options.packet_bytes)?;
        set(option::FLIGHT_PACKETS, options.flight_packets)?;
        set(option::SEND_BUFFER, options.send_buffer_bytes)?;
        set(option::RECEIVE_BUFFER, options.receive_buffer_bytes)?;
        foreign::set_bool(self.id, option::SEND_WAITS, false)?;
        self.set_receive_waits(options.receive_waits)?;
        // Each socket has a UDP socket and threads of its own.
        foreign::set_bool(self.id, option::REUSE_ADDRESS, false)?;
        foreign::set_linger(self.id, 0)?;
        match options.rate_control {
            RateControl::Library => Ok(()),
            RateControl::Release410 => foreign::set_rate_control_4_10(self.id),
            RateControl::FixedWindow {
                window_packets,
                timeout,
                repeats_reports,
            } => foreign::set_fixed_window(
                self.id,
                i32::try_from(window_packets).unwrap_or(i32::MAX),
                timeout.map_or(0, |timeout| {
                    i32::try_from(timeout.as_micros()).unwrap_or(i32::MAX)
                }),
                repeats_reports,
            ),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.close();
    }
}
