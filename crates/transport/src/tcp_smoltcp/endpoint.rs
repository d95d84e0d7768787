//! A smoltcp interface with one TCP socket, driven as an [`Endpoint`].

use lagometer_units::Time;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::packets::{Card, segment, smoltcp_instant, time};
use super::stream::{Front, LENGTH_BYTES, Partial, length_of};
use super::{CongestionControl, Settings};
use crate::arrivals::Arrivals;
use crate::{Closed, Endpoint, Message, Refused, State, Transport, seed};

const CLIENT: IpAddress = IpAddress::v4(10, 0, 0, 1);
const SERVER: IpAddress = IpAddress::v4(10, 0, 0, 2);
const CLIENT_PORT: u16 = 49_152;
const SERVER_PORT: u16 = 7;

/// One side of a TCP connection.
pub(super) struct Tcp {
    settings: Settings,
    interface: Interface,
    card: Card,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// The last instant at which smoltcp was called.
    now: Time,
    was_open: bool,
    was_reset: bool,
    /// The number of the first byte the peer sends, once known.
    first_sequence: Option<u32>,
    arrivals: Arrivals,
    partial: Partial,
    stream_is_damaged: bool,
}

impl Tcp {
    /// The side that connects, with its request on the way.
    pub(super) fn client(settings: &Settings, seed: u64, start: Time) -> Self {
        let mut client = Self::new(settings, CLIENT, seed::derive(seed, 1), start);
        let socket = client.sockets.get_mut::<tcp::Socket<'_>>(client.socket);
        socket
            .connect(
                client.interface.context(),
                (SERVER, SERVER_PORT),
                (CLIENT, CLIENT_PORT),
            )
            .expect("a new socket can connect to a fixed address");
        client.poll(start);
        client
    }

    /// The side that is connected to.
    pub(super) fn server(settings: &Settings, seed: u64, start: Time) -> Self {
        let mut server = Self::new(settings, SERVER, seed::derive(seed, 2), start);
        server
            .socket_mut()
            .listen(SERVER_PORT)
            .expect("a new socket can listen on a port that is not zero");
        server
    }

    fn new(settings: &Settings, address: IpAddress, seed: u64, start: Time) -> Self {
        let mut card = Card::new(settings.mtu.bytes() as usize);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut card, smoltcp_instant(start));
        interface.update_ip_addrs(|addresses| {
            addresses
                .push(IpCidr::new(address, 24))
                .expect("a new interface has room for an address");
        });
        let buffer = |bytes: u64| tcp::SocketBuffer::new(vec![0; bytes as usize]);
        let mut socket = tcp::Socket::new(
            buffer(settings.receive_buffer.bytes()),
            buffer(settings.send_buffer.bytes()),
        );
        socket.set_congestion_control(match settings.congestion_control {
            CongestionControl::Reno => tcp::CongestionControl::Reno,
            CongestionControl::Cubic => tcp::CongestionControl::Cubic,
        });
        socket.set_nagle_enabled(!settings.no_delay);
        let ack_delay = settings.ack_delay.0;
        socket.set_ack_delay((!ack_delay.is_zero()).then(|| ack_delay.into()));
        socket.set_timeout(Some(settings.timeout.0.into()));
        socket.set_keep_alive(Some(settings.keep_alive.0.into()));
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let socket = sockets.add(socket);
        Self {
            settings: settings.clone(),
            interface,
            card,
            sockets,
            socket,
            now: start,
            was_open: false,
            was_reset: false,
            first_sequence: None,
            arrivals: Arrivals::default(),
            partial: Partial::default(),
            stream_is_damaged: false,
        }
    }

    /// Lets smoltcp take in what waits on the card and send what it must.
    fn poll(&mut self, now: Time) {
        self.now = now;
        self.interface
            .poll(smoltcp_instant(now), &mut self.card, &mut self.sockets);
        self.was_open |= self.socket().state() == tcp::State::Established;
    }

    /// Notes which bytes of the peer's stream came, if they are within the
    /// receive window.
    fn note_arrival(&mut self, packet: &[u8], now: Time) {
        let Some(segment) = segment(packet) else {
            return;
        };
        self.was_reset |= segment.is_reset;
        if segment.is_syn {
            self.first_sequence
                .get_or_insert(segment.sequence.wrapping_add(1));
            return;
        }
        let Some(first_sequence) = self.first_sequence else {
            return;
        };
        let wrapped = segment.sequence.wrapping_sub(first_sequence);
        let start = self.arrivals.place_of(wrapped, 32);
        let end = start + segment.length as u64;
        let unread = self.socket().recv_queue() as u64;
        let window_end =
            self.arrivals.delivered_until() + unread + self.settings.receive_buffer.bytes();
        if end <= window_end {
            self.arrivals.heard(start..end, now);
        }
    }

    /// Moves up to `len` bytes from the socket to the message that is being
    /// put together, and says whether there were any.
    fn read(&mut self, len: usize) -> bool {
        let partial = &mut self.partial;
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        socket
            .recv(|bytes| {
                let taken = bytes.len().min(len);
                partial.extend(&bytes[..taken]);
                (taken, taken != 0)
            })
            // Not open yet, or closed and read to the end.
            .unwrap_or(false)
    }

    fn socket_mut(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn socket(&self) -> &tcp::Socket<'static> {
        self.sockets.get(self.socket)
    }
}

impl Endpoint for Tcp {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        if self.state() != State::Ready {
            return Err(Refused::NotOpen);
        }
        let limit_bytes = self.settings.largest_message_bytes();
        if message.len() > limit_bytes {
            return Err(Refused::TooLarge {
                size_bytes: message.len(),
                limit_bytes,
            });
        }
        let socket = self.socket_mut();
        let free_bytes = socket.send_capacity() - socket.send_queue();
        if LENGTH_BYTES + message.len() > free_bytes {
            return Err(Refused::BufferFull);
        }
        for part in [&length_of(message), message] {
            let taken = socket.send_slice(part).map_err(|_| Refused::NotOpen)?;
            debug_assert_eq!(taken, part.len(), "there is room for it");
        }
        self.poll(now);
        Ok(())
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        let limit_bytes = self.settings.largest_message_bytes();
        loop {
            match self.partial.front(limit_bytes) {
                Front::Needs(missing) => {
                    if !self.read(missing) {
                        return None;
                    }
                }
                Front::Complete => {
                    let bytes = self.partial.take();
                    let length = (LENGTH_BYTES + bytes.len()) as u64;
                    let blocked = Some(self.arrivals.delivered(length, now));
                    return Some(Message { bytes, blocked });
                }
                Front::TooLong => {
                    self.stream_is_damaged = true;
                    self.socket_mut().abort();
                    return None;
                }
            }
        }
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        self.note_arrival(datagram, now);
        self.card.incoming = Some(datagram.to_vec());
        self.poll(now);
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        match self.card.outgoing.pop_front() {
            Some(packet) => {
                *buffer = packet;
                true
            }
            None => false,
        }
    }

    fn next_deadline(&mut self) -> Option<Time> {
        let now = smoltcp_instant(self.now);
        let deadline = self.interface.poll_at(now, &self.sockets)?;
        Some(time(deadline).max(self.now))
    }

    fn handle_deadline(&mut self, now: Time) {
        self.poll(now);
    }

    fn state(&self) -> State {
        match self.socket().state() {
            tcp::State::Established => State::Ready,
            tcp::State::Closed if self.stream_is_damaged => {
                State::Closed(Closed::Failed("the stream is damaged".to_owned()))
            }
            // This side never closes: it was reset, or it has timed out.
            tcp::State::Closed if !self.was_reset => State::Closed(Closed::DeadLink),
            tcp::State::Listen | tcp::State::SynSent | tcp::State::SynReceived
                if !self.was_open =>
            {
                State::Connecting
            }
            _ => State::Closed(Closed::ByPeer),
        }
    }
}
