//! A smoltcp interface with one TCP socket: a stream of bytes over IP packets.

use lagometer_units::Time;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::packets::{Card, Segment, segment, smoltcp_instant, time};
use super::{CongestionControl, Settings};
use crate::{ByteStream, Carrier, Closed, State, seed};

const CLIENT: IpAddress = IpAddress::v4(10, 0, 0, 1);
const SERVER: IpAddress = IpAddress::v4(10, 0, 0, 2);
const CLIENT_PORT: u16 = 49_152;
const SERVER_PORT: u16 = 7;

/// One side of a TCP connection.
pub struct Connection {
    interface: Interface,
    card: Card,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// The last instant at which smoltcp was called.
    now: Time,
    was_open: bool,
    was_reset: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// The side that connects, with its request on the way. What is drawn at
    /// random follows from `seed`, the same for both sides.
    #[must_use]
    pub fn client(settings: &Settings, seed: u64, start: Time) -> Self {
        let mut client = Self::new(settings, CLIENT, seed::derive(seed, 1), start);
        let socket = client.sockets.get_mut::<tcp::Socket<'_>>(client.socket);
        let requested = socket.connect(
            client.interface.context(),
            (SERVER, SERVER_PORT),
            (CLIENT, CLIENT_PORT),
        );
        debug_assert_eq!(requested, Ok(()), "a new socket can connect");
        client.poll(start);
        client
    }

    /// The side that is connected to.
    #[must_use]
    pub fn server(settings: &Settings, seed: u64, start: Time) -> Self {
        let mut server = Self::new(settings, SERVER, seed::derive(seed, 2), start);
        let listening = server.socket_mut().listen(SERVER_PORT);
        debug_assert_eq!(listening, Ok(()), "a new socket can listen");
        server
    }

    fn new(settings: &Settings, address: IpAddress, seed: u64, start: Time) -> Self {
        let mut card = Card::new(settings.mtu.bytes() as usize);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut card, smoltcp_instant(start));
        interface.update_ip_addrs(|addresses| {
            let added = addresses.push(IpCidr::new(address, 24));
            debug_assert_eq!(added, Ok(()), "a new interface has room for an address");
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
            interface,
            card,
            sockets,
            socket,
            now: start,
            was_open: false,
            was_reset: false,
        }
    }

    /// Takes in an IP packet and says what segment it was, if it was one.
    pub(super) fn take_packet(&mut self, now: Time, packet: &[u8]) -> Option<Segment> {
        let segment = segment(packet);
        self.was_reset |= segment.is_some_and(|segment| segment.is_reset);
        self.card.incoming = Some(packet.to_vec());
        self.poll(now);
        segment
    }

    /// Takes the next packet for the wire out.
    pub(super) fn next_packet(&mut self) -> Option<Vec<u8>> {
        self.card.outgoing.pop_front()
    }

    /// Lets smoltcp take in what waits on the card and send what it must.
    pub(super) fn poll(&mut self, now: Time) {
        self.now = now;
        self.interface
            .poll(smoltcp_instant(now), &mut self.card, &mut self.sockets);
        self.was_open |= self.socket().state() == tcp::State::Established;
    }

    /// When [`poll`](Self::poll) must be called.
    pub(super) fn poll_at(&mut self) -> Option<Time> {
        let now = smoltcp_instant(self.now);
        let deadline = self.interface.poll_at(now, &self.sockets)?;
        Some(time(deadline).max(self.now))
    }

    pub(super) fn socket_mut(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    pub(super) fn socket(&self) -> &tcp::Socket<'static> {
        self.sockets.get(self.socket)
    }

    fn drain(&mut self, output: &mut dyn FnMut(&[u8])) {
        while let Some(packet) = self.next_packet() {
            output(&packet);
        }
    }
}

impl ByteStream for Connection {
    fn write(&mut self, bytes: &[u8]) -> usize {
        // A connection that is not open, or no more, takes nothing.
        self.socket_mut().send_slice(bytes).unwrap_or(0)
    }

    fn send(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        self.poll(now);
        self.drain(output);
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) {
        let socket = self.socket_mut();
        // The buffer is a ring: what wraps comes in two pieces.
        while socket.can_recv() {
            let read = socket.recv(|bytes| {
                take(bytes);
                (bytes.len(), ())
            });
            if read.is_err() {
                return;
            }
        }
    }

    fn input(&mut self, now: Time, datagram: &[u8], output: &mut dyn FnMut(&[u8])) {
        self.take_packet(now, datagram);
        self.drain(output);
    }

    fn next_deadline(&mut self, _now: Time) -> Option<Time> {
        self.poll_at()
    }

    fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        self.send(now, output);
    }

    fn state(&self) -> State {
        match self.socket().state() {
            tcp::State::Established => State::Ready,
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

    fn carrier(&self) -> Carrier {
        Carrier::Ip
    }
}
