//! A host: listeners, connections by their addresses, one queue of packets and
//! one deadline for all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use crate::config::Config;
use crate::connection::{Connection, Earlier, Given, Origin};
use crate::outbox::Outbox;
use crate::random::{Random, keyed};
use crate::state::State;
use crate::wire::{self, Ecn, Flags, IpHeader, ParseError, Segment, TcpOptions};
use crate::{Instant, Seq};

/// Names a connection of an [`Endpoint`]; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

/// The ports given to connections opened here (Linux
/// `net.ipv4.ip_local_port_range`).
const PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Why a connection cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The address is of another family than the host's.
    #[error("peer {0} is of another address family than this host: use an address of the same")]
    Family(SocketAddr),
    /// No port is free.
    #[error("no local port is free for peer {0}: close connections to it first")]
    NoPort(SocketAddr),
}

#[derive(Debug)]
struct Listener {
    backlog: usize,
    /// Handshakes under way.
    pending: BTreeSet<ConnectionId>,
    ready: VecDeque<ConnectionId>,
}

/// A host with one address.
#[derive(Debug)]
pub struct Endpoint {
    address: IpAddr,
    config: Config,
    random: Random,
    connections: BTreeMap<ConnectionId, Connection>,
    by_address: BTreeMap<(u16, SocketAddr), ConnectionId>,
    listeners: BTreeMap<u16, Listener>,
    deadlines: BTreeSet<(Instant, ConnectionId)>,
    armed: BTreeMap<ConnectionId, Instant>,
    /// Closed by the application, which knows them no more.
    orphans: BTreeSet<ConnectionId>,
    /// What a packet came for or a timer fired of, since it was last reported.
    woken: BTreeSet<ConnectionId>,
    outbox: Outbox,
    next_id: u64,
    /// The key of what a forger would have to guess.
    secret: u64,
}

impl Endpoint {
    /// A host with this address and no connection. All that is random follows
    /// from `seed`: sequence numbers, ports and the offsets of time stamps, which are
    /// what a forger off the path must guess (RFC 5961). They are a keyed function of it
    /// (RFC 6528), so that peers who see their own learn nothing of others'. Where peers
    /// are real, `seed` must be random and secret; one that is known serves simulations
    /// alone.
    #[must_use]
    pub const fn new(address: IpAddr, config: Config, seed: u64) -> Self {
        Self {
            address,
            random: Random::new(seed),
            connections: BTreeMap::new(),
            by_address: BTreeMap::new(),
            listeners: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            armed: BTreeMap::new(),
            orphans: BTreeSet::new(),
            woken: BTreeSet::new(),
            outbox: Outbox::new(config.transmit_queue_packets),
            next_id: 0,
            secret: seed,
            config,
        }
    }

    /// Takes connections on a port; at most `backlog` wait to be accepted, and
    /// as many handshakes are under way. A port listened on already gets the
    /// new backlog.
    pub fn listen(&mut self, port: u16, backlog: usize) {
        self.listeners
            .entry(port)
            .and_modify(|listener| listener.backlog = backlog)
            .or_insert_with(|| Listener {
                backlog,
                pending: BTreeSet::new(),
                ready: VecDeque::new(),
            });
    }

    /// The next connection a peer opened on a port.
    pub fn accept(&mut self, port: u16) -> Option<ConnectionId> {
        self.listeners.get_mut(&port)?.ready.pop_front()
    }

    /// Opens a connection from a port that is free: from which none to the same peer
    /// is open, nor in TIME-WAIT unless [`Config::reuse_time_wait`] allows it.
    ///
    /// # Errors
    ///
    /// When the peer's address is of another family, or no port is free.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
    ) -> Result<ConnectionId, ConnectError> {
        if remote.is_ipv4() != self.address.is_ipv4() {
            return Err(ConnectError::Family(remote));
        }
        let count = u32::from(*PORTS.end() - *PORTS.start()) + 1;
        let drawn = self.random.next_u64();
        let first = (self.secret_number(remote.ip(), drawn) % u64::from(count)) as u32;
        let port = (0..count)
            .map(|i| PORTS.start() + ((first + i) % count) as u16)
            .find(|port| self.is_free(now, *port, remote))
            .ok_or(ConnectError::NoPort(remote))?;
        let local = SocketAddr::new(self.address, port);
        let earlier = self.replace(port, remote);
        let origin = self.origin(remote.ip(), earlier);
        let connection = Connection::connect_from(&self.config, local, remote, origin, now);
        Ok(self.add(connection))
    }

    /// Whether a connection may be opened between these ports (Linux 6.1
    /// `__inet_check_established`).
    fn is_free(&self, now: Instant, port: u16, remote: SocketAddr) -> bool {
        let id = self.by_address.get(&(port, remote));
        id.and_then(|id| self.connections.get(id))
            .is_none_or(|connection| {
                connection.state() == State::Closed
                    || (self.config.reuse_time_wait && connection.may_be_replaced(now))
            })
    }

    /// Takes their ports from the connection that had them, which is closed or in
    /// TIME-WAIT; what that leaves to the next.
    fn replace(&mut self, port: u16, remote: SocketAddr) -> Option<Earlier> {
        let id = self.by_address.remove(&(port, remote))?;
        let earlier = self.with(id, Connection::give_way)?;
        if self.connections.contains_key(&id) {
            self.woken.insert(id);
        }
        earlier
    }

    /// What a connection with a peer begins with. The offset of time stamps is the
    /// same for all with one address, so that they distinguish a new connection from an old
    /// one (Linux 6.1 `secure_tcp_ts_off`).
    fn origin(&mut self, remote: IpAddr, earlier: Option<Earlier>) -> Origin {
        let seed = self.random.next_u64();
        let drawn = self.secret_number(remote, seed);
        let given = Given {
            iss: Seq((drawn >> 32) as u32),
            ts_offset: self.secret_number(remote, 0) as u32,
            identification: drawn as u16,
        };
        Origin::of_host(seed, given, earlier)
    }

    /// A number that who knows others of this host cannot reckon.
    fn secret_number(&self, remote: IpAddr, index: u64) -> u64 {
        let address = match remote {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let words = [(address >> 64) as u64, address as u64, index];
        keyed((self.secret, !self.secret), &words)
    }

    fn add(&mut self, connection: Connection) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let key = (connection.local().port(), connection.remote());
        self.by_address.insert(key, id);
        self.connections.insert(id, connection);
        self.settle(id);
        id
    }

    /// A connection to look at.
    #[must_use]
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(&id)
    }

    /// Does something with a connection; what it sends is then polled here.
    /// None when it is gone.
    pub fn with<R>(
        &mut self,
        id: ConnectionId,
        action: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let result = action(self.connections.get_mut(&id)?);
        self.settle(id);
        Some(result)
    }

    /// Closes a connection and leaves it to the host, as `close` does with a socket:
    /// it ends by itself ([`Connection::close`]), TIME-WAIT included, and is forgotten
    /// as soon as it has.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        if self.connections.contains_key(&id) {
            self.orphans.insert(id);
            self.with(id, |connection| connection.close(now));
        }
    }

    /// The next connection that a packet came for, or of which a timer fired, since
    /// it was last reported: what an application can do with others has not changed. Each
    /// is reported once however much happened.
    pub fn poll_woken(&mut self) -> Option<ConnectionId> {
        self.woken.pop_first()
    }

    /// Forgets a connection that is closed; false while it is not.
    pub fn forget(&mut self, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get(&id) else {
            return false;
        };
        if connection.state() != State::Closed {
            return false;
        }
        let key = (connection.local().port(), connection.remote());
        if self.by_address.get(&key) == Some(&id) {
            self.by_address.remove(&key);
        }
        self.connections.remove(&id);
        self.orphans.remove(&id);
        self.woken.remove(&id);
        if let Some(deadline) = self.armed.remove(&id) {
            self.deadlines.remove(&(deadline, id));
        }
        true
    }

    /// Takes an IP packet.
    ///
    /// # Errors
    ///
    /// When the bytes are no TCP packet, nor an ICMP message that a packet was
    /// too big; nothing has changed then.
    pub fn receive(&mut self, now: Instant, packet: &[u8]) -> Result<(), ParseError> {
        let (header, segment) = match wire::parse_packet(packet) {
            Ok(parsed) => parsed,
            Err(error) => return self.receive_icmp(now, packet).ok_or(error),
        };
        if header.destination != self.address {
            return Ok(());
        }
        let remote = SocketAddr::new(header.source, segment.source_port);
        let key = (segment.destination_port, remote);
        if let Some(id) = self.by_address.get(&key).copied()
            && !self.is_reopened(id, &segment)
        {
            self.with(id, |connection| connection.receive(now, &header, &segment));
            self.on_progress(id);
            return Ok(());
        }
        self.on_unknown(now, &header, &segment);
        Ok(())
    }

    /// A packet for no connection: a listener's, or an error of the peer's.
    fn on_unknown(&mut self, now: Instant, header: &IpHeader, segment: &Segment<'_>) {
        let remote = SocketAddr::new(header.source, segment.source_port);
        let port = segment.destination_port;
        let is_syn = segment.has(Flags::SYN) && !segment.has(Flags::ACK);
        if is_syn
            && !segment.has(Flags::RST)
            && let Some(listener) = self.listeners.get(&port)
        {
            let is_full = listener.pending.len() >= listener.backlog.max(1)
                || listener.ready.len() > listener.backlog;
            let earlier = self.replace(port, remote);
            if segment.has(Flags::FIN) || is_full {
                return;
            }
            let local = SocketAddr::new(self.address, port);
            let origin = self.origin(remote.ip(), earlier);
            let accepted =
                Connection::accept_from(&self.config, local, remote, segment, origin, now);
            if let Some(connection) = accepted {
                let id = self.add(connection);
                if let Some(listener) = self.listeners.get_mut(&port) {
                    listener.pending.insert(id);
                }
            }
            return;
        }
        if !segment.has(Flags::RST) {
            let answer = IpHeader {
                source: header.destination,
                destination: header.source,
                ecn: Ecn::NotCapable,
            };
            self.outbox.push(reset_for(&answer, segment));
        }
    }

    /// Whether a SYN to a listener reopens a connection in TIME-WAIT (RFC 6191; Linux
    /// 6.1 `tcp_timewait_state_process`), or its state is gone.
    fn is_reopened(&self, id: ConnectionId, segment: &Segment<'_>) -> bool {
        let is_syn = segment.has(Flags::SYN)
            && segment.flags.0 & (Flags::ACK.0 | Flags::RST.0) == 0
            && self.listeners.contains_key(&segment.destination_port);
        self.connections
            .get(&id)
            .is_none_or(|connection| match connection.state() {
                State::Closed => true,
                State::TimeWait => is_syn && connection.is_newer_than_seen(segment),
                _ => false,
            })
    }

    fn receive_icmp(&mut self, now: Instant, packet: &[u8]) -> Option<()> {
        let refused = wire::too_big(packet)?;
        if refused.local.ip() == self.address
            && let Some(id) = self
                .by_address
                .get(&(refused.local.port(), refused.remote))
                .copied()
        {
            self.with(id, |connection| {
                connection.on_packet_too_big(now, refused.seq, refused.mtu);
            });
            self.on_progress(id);
        }
        Some(())
    }

    /// Something happened to a connection, of which the application learns; a
    /// handshake may have ended.
    fn on_progress(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if !self.orphans.contains(&id) {
            self.woken.insert(id);
        }
        let (port, state) = (connection.local().port(), connection.state());
        if state == State::SynReceived {
            return;
        }
        if let Some(listener) = self.listeners.get_mut(&port)
            && listener.pending.remove(&id)
        {
            if state == State::Closed {
                self.forget(id);
            } else {
                listener.ready.push_back(id);
            }
        }
    }

    /// Collects what a connection wants sent and when it is to be woken.
    fn settle(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        while let Some(packet) = connection.poll_transmit() {
            self.outbox.push(packet);
        }
        let next = connection.next_deadline();
        if connection.state() == State::Closed && self.orphans.contains(&id) {
            self.forget(id);
            return;
        }
        if self.armed.get(&id).copied() == next {
            return;
        }
        if let Some(armed) = self.armed.remove(&id) {
            self.deadlines.remove(&(armed, id));
        }
        if let Some(next) = next {
            self.armed.insert(id, next);
            self.deadlines.insert((next, id));
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop()
    }

    /// Packets dropped because too many waited to be polled
    /// ([`Config::transmit_queue_packets`]).
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.outbox.overflows()
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Handles every timer that has fired by `now`.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some((deadline, id)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.with(id, |connection| connection.handle_deadline(now));
            self.on_progress(id);
        }
    }

    /// Connections there are, closed ones that were not forgotten among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }
}

/// The reset that answers a segment (RFC 9293, section 3.5.2): with its own
/// acknowledgement as sequence number, or else acknowledging it.
pub(crate) fn reset_for(answer: &IpHeader, segment: &Segment<'_>) -> Vec<u8> {
    let (seq, ack, flags) = if segment.has(Flags::ACK) {
        (segment.ack, Seq(0), Flags::RST)
    } else {
        (Seq(0), segment.end(), Flags::RST.with(Flags::ACK))
    };
    let reset = Segment {
        source_port: segment.destination_port,
        destination_port: segment.source_port,
        seq,
        ack,
        flags,
        window: 0,
        options: TcpOptions::default(),
        payload: &[],
    };
    wire::build_packet(answer, 0, &reset, (&[], &[]))
}
