//! TCP between two hosts beside the lane's: transfers of a given length or
//! without an end.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lagometer_link::Direction;
use lagometer_link::cross::{Control, Cross};
use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::{Config, Connection, ConnectionId, EcnMode, Endpoint, Instant, State};
use lagometer_units::{Time, mix};

use super::{CrossPacket, Load};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
const PORT: u16 = 443;

/// Bytes written or read at once.
const PIECE: usize = 64 << 10;

/// Two hosts and the transfers between them.
#[derive(Debug)]
pub(super) struct Hosts {
    client: Host,
    server: Host,
    /// Where the data go.
    direction: Direction,
    /// What each server's connection is still to send, in the order in which
    /// they are accepted.
    to_serve: u64,
    received: u64,
    piece: Box<[u8]>,
}

#[derive(Debug)]
struct Host {
    endpoint: Endpoint,
    /// Those that are not over, by their connections.
    transfers: BTreeMap<ConnectionId, Transfer>,
}

/// One end of a transfer.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// Bytes to be written; `None` where this end receives.
    left: Option<u64>,
    /// What the connection had not got acknowledged when it was last written to.
    unacknowledged: usize,
}

impl Hosts {
    pub(super) fn new(cross: &Cross, seed: u64) -> Self {
        let config = Config {
            congestion: match cross.control.unwrap_or_default() {
                Control::Cubic => Algorithm::Cubic,
                Control::Reno => Algorithm::Reno,
                Control::Bbr => Algorithm::Bbr,
            },
            ecn: if cross.ecn == Some(true) {
                EcnMode::Always
            } else {
                EcnMode::WhenAsked
            },
            // A host that uploads more pages than it has ports needs it; one in its
            // default finds none for a minute.
            reuse_time_wait: true,
            ..Config::default()
        };
        let mut server = Endpoint::new(SERVER, config.clone(), mix(seed ^ 2));
        server.listen(PORT, 64);
        Self {
            client: Host {
                endpoint: Endpoint::new(CLIENT, config, mix(seed ^ 1)),
                transfers: BTreeMap::new(),
            },
            server: Host {
                endpoint: server,
                transfers: BTreeMap::new(),
            },
            direction: cross.direction.into(),
            to_serve: 0,
            received: 0,
            piece: vec![0; PIECE].into_boxed_slice(),
        }
    }

    /// Opens `connections`, over each of which `bytes` are to go; fewer where the
    /// client has not as many ports left.
    pub(super) fn open(&mut self, now: Time, connections: u32, bytes: u64) {
        self.to_serve = bytes;
        for _ in 0..connections {
            let address = SocketAddr::new(SERVER, PORT);
            let Ok(id) = self.client.endpoint.connect(instant(now), address) else {
                return;
            };
            let left = (self.direction == Direction::Up).then_some(bytes);
            self.client.transfers.insert(id, Transfer::new(left));
        }
    }

    /// Gives up all transfers at once, at both ends.
    pub(super) fn abort(&mut self, now: Time) {
        for host in [&mut self.client, &mut self.server] {
            for id in std::mem::take(&mut host.transfers).into_keys() {
                host.endpoint
                    .with(id, |connection| connection.abort(instant(now)));
                host.endpoint.forget(id);
            }
        }
    }

    /// Transfers that are not over, as the client sees them.
    pub(super) fn open_transfers(&self) -> u32 {
        self.client.transfers.len() as u32
    }

    pub(super) const fn received_bytes(&self) -> u64 {
        self.received
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let hosts = [&self.client, &self.server];
        let deadlines = hosts
            .iter()
            .filter_map(|host| host.endpoint.next_deadline());
        deadlines
            .min()
            .map(|deadline| Time::from_nanos(deadline.as_nanos()))
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        for host in [&mut self.client, &mut self.server] {
            if host
                .endpoint
                .next_deadline()
                .is_some_and(|deadline| deadline <= instant(now))
            {
                host.endpoint.handle_deadline(instant(now));
            }
        }
        self.serve(now);
    }

    /// A packet that went in `direction` arrives.
    pub(super) fn receive(&mut self, now: Time, direction: Direction, packet: &[u8]) {
        let host = match direction {
            Direction::Up => &mut self.server,
            Direction::Down => &mut self.client,
        };
        // What is damaged is no packet, and sent again.
        let _ = host.endpoint.receive(instant(now), packet);
        if direction == Direction::Up {
            while let Some(id) = self.server.endpoint.accept(PORT) {
                let left = (self.direction == Direction::Down).then_some(self.to_serve);
                self.server.transfers.insert(id, Transfer::new(left));
            }
        }
        self.serve(now);
    }

    pub(super) fn poll(&mut self) -> Option<CrossPacket> {
        let (direction, packet) = match self.client.endpoint.poll_transmit() {
            Some(packet) => (Direction::Up, packet),
            None => (Direction::Down, self.server.endpoint.poll_transmit()?),
        };
        Some(CrossPacket {
            direction,
            flow: client_port(direction, &packet),
            load: Load::Ip(packet),
        })
    }

    /// Writes and reads what there is room for and what there is, where anything
    /// happened.
    fn serve(&mut self, now: Time) {
        for host in [&mut self.client, &mut self.server] {
            while let Some(id) = host.endpoint.poll_woken() {
                self.received += host.serve(id, now, &mut self.piece);
            }
        }
    }
}

impl Host {
    /// Goes on with one transfer; returns how many bytes it received.
    fn serve(&mut self, id: ConnectionId, now: Time, piece: &mut [u8]) -> u64 {
        let Some(transfer) = self.transfers.get_mut(&id) else {
            return 0;
        };
        let mut received = 0;
        if transfer.left.is_some() {
            transfer.write(&mut self.endpoint, id, now, piece);
        } else {
            received = read(&mut self.endpoint, id, now, piece);
        }
        if transfer.is_over(&self.endpoint, id) {
            self.transfers.remove(&id);
            self.endpoint.close(instant(now), id);
        }
        received
    }
}

impl Transfer {
    const fn new(left: Option<u64>) -> Self {
        Self {
            left,
            unacknowledged: 0,
        }
    }

    fn write(&mut self, endpoint: &mut Endpoint, id: ConnectionId, now: Time, piece: &[u8]) {
        let Some(connection) = endpoint.get(id) else {
            return;
        };
        // The buffer has room again only where something was acknowledged.
        let unacknowledged = connection.unacknowledged();
        let is_stuck = unacknowledged > 0 && unacknowledged == self.unacknowledged;
        if self.left == Some(0) || is_stuck || !connection.state().can_write() {
            return;
        }
        let left = &mut self.left;
        endpoint.with(id, |connection| {
            while let Some(bytes) = left.filter(|&bytes| bytes > 0) {
                let most = piece
                    .len()
                    .min(usize::try_from(bytes).unwrap_or(usize::MAX));
                let written = connection.write(instant(now), &piece[..most]);
                if written == 0 {
                    return;
                }
                *left = Some(bytes - written as u64);
            }
            connection.finish(instant(now));
        });
        self.unacknowledged = endpoint.get(id).map_or(0, Connection::unacknowledged);
    }

    /// Whether nothing more will come of it; the connection then ends by itself.
    fn is_over(&self, endpoint: &Endpoint, id: ConnectionId) -> bool {
        endpoint.get(id).is_none_or(|connection| {
            let state = connection.state();
            let is_received = self.left.is_none() && connection.is_finished();
            let is_acknowledged = matches!(state, State::FinWait2 | State::TimeWait);
            let is_sent = self.left == Some(0) && is_acknowledged;
            state == State::Closed || is_received || is_sent
        })
    }
}

/// Reads all there is and says how much that was.
fn read(endpoint: &mut Endpoint, id: ConnectionId, now: Time, piece: &mut [u8]) -> u64 {
    let readable = endpoint.get(id).map_or(0, Connection::readable);
    if readable == 0 {
        return 0;
    }
    let mut sum = 0;
    endpoint.with(id, |connection| {
        loop {
            let length = connection.read(instant(now), piece);
            if length == 0 {
                break;
            }
            sum += length as u64;
        }
    });
    sum
}

/// The port of the client of a packet, which tells flows apart.
fn client_port(direction: Direction, packet: &[u8]) -> u32 {
    // Behind an IPv4 header without options the source's port comes first.
    let at = match direction {
        Direction::Up => 20,
        Direction::Down => 22,
    };
    let port = packet.get(at..at + 2).unwrap_or(&[0, 0]);
    u32::from(u16::from_be_bytes([port[0], port[1]]))
}

/// The instant on the engine's clock.
const fn instant(time: Time) -> Instant {
    Instant::from_nanos(time.as_nanos())
}

#[cfg(test)]
mod tests;
