//! A host of the engine's with the one connection of a lane's side.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lagometer_tcp::{CloseReason, Config, Connection, ConnectionId, Endpoint, Instant, State};
use lagometer_units::Time;

use crate::{Closed, seed};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// The server's port.
const PORT: u16 = 7;

/// A host that opened a connection, or waits for one.
#[derive(Debug)]
pub(super) struct Host {
    endpoint: Endpoint,
    /// None until a client's has come.
    connection: Option<ConnectionId>,
    /// The next packet for the wire was taken from the endpoint already.
    next_packet: Option<Vec<u8>>,
}

impl Host {
    /// The host of the client, its SYN on the way. What is drawn at random
    /// follows from `seed`, the same for both sides.
    pub(super) fn client(config: Config, seed: u64, start: Time) -> Self {
        let mut endpoint = Endpoint::new(CLIENT, config, seed::derive(seed, 1));
        let connection = endpoint
            .connect(instant(start), SocketAddr::new(SERVER, PORT))
            .expect("a new host has free ports, and both addresses are IPv4");
        Self {
            endpoint,
            connection: Some(connection),
            next_packet: None,
        }
    }

    /// The host of the server, which takes one connection.
    pub(super) fn server(config: Config, seed: u64) -> Self {
        let mut endpoint = Endpoint::new(SERVER, config, seed::derive(seed, 2));
        endpoint.listen(PORT, 1);
        Self {
            endpoint,
            connection: None,
            next_packet: None,
        }
    }

    /// Takes in an IP packet. Whether it was one, undamaged.
    pub(super) fn receive(&mut self, now: Time, packet: &[u8]) -> bool {
        let is_sound = self.endpoint.receive(instant(now), packet).is_ok();
        if self.connection.is_none() {
            self.connection = self.endpoint.accept(PORT);
        }
        is_sound
    }

    /// The connection, once there is one.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.endpoint.get(self.connection?)
    }

    /// Does something with the connection, once there is one.
    pub(super) fn with<R>(&mut self, action: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        self.endpoint.with(self.connection?, action)
    }

    /// Takes out the next packet for the wire.
    pub(super) fn next_packet(&mut self) -> Option<Vec<u8>> {
        self.next_packet
            .take()
            .or_else(|| self.endpoint.poll_transmit())
    }

    /// Whether a packet waits to be taken out.
    pub(super) fn has_packets(&mut self) -> bool {
        if self.next_packet.is_none() {
            self.next_packet = self.endpoint.poll_transmit();
        }
        self.next_packet.is_some()
    }

    /// When [`handle_deadline`](Self::handle_deadline) must be called.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let deadline = self.endpoint.next_deadline()?;
        Some(Time::from_nanos(deadline.as_nanos()))
    }

    /// Lets every timer that is due fire.
    pub(super) fn handle_deadline(&mut self, now: Time) {
        self.endpoint.handle_deadline(instant(now));
    }

    /// Whether bytes are carried, and if not, why. What a peer that has ended
    /// its stream left behind can still be read.
    pub(super) fn state(&self) -> crate::State {
        let Some(connection) = self.connection() else {
            return crate::State::Connecting;
        };
        match connection.state() {
            State::SynSent | State::SynReceived => crate::State::Connecting,
            State::Closed => crate::State::Closed(reason(connection.close_reason())),
            _ if connection.is_finished() => crate::State::Closed(Closed::ByPeer),
            _ => crate::State::Ready,
        }
    }
}

fn reason(reason: Option<CloseReason>) -> Closed {
    match reason {
        Some(CloseReason::TimedOut) => Closed::DeadLink,
        Some(CloseReason::Reset | CloseReason::Finished) | None => Closed::ByPeer,
        Some(why @ (CloseReason::Refused | CloseReason::Aborted)) => {
            Closed::Failed(why.to_string())
        }
    }
}

/// The instant on the engine's clock.
pub(super) const fn instant(time: Time) -> Instant {
    Instant::from_nanos(time.as_nanos())
}
