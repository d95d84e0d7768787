//! KCP conversations in the loop: datagrams in, and the times they are due.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lagometer_transport::kcp::{AddressProof, Stream};
use lagometer_units::Time;

use crate::core::{Budget, CloseReason, ConnKey, Peer};
use crate::server::stream_transport::{KcpEvent, StreamTransport};

use super::ConnectionLoop;
use super::traffic::LOOK_AT_CLOCK_EVERY;

/// Datagrams taken from one port before others have their turn.
const AT_ONCE: usize = 512;

/// The longest datagram that is looked at. kcp-go reads no longer ones, and a
/// window of segments as long as UDP permits would hold megabytes.
const DATAGRAM_BYTES: usize = 1500;

/// What may come from a peer before it has shown where it is: a login with its
/// resends, and what it sends at once when it is let in. Segments that wait for an earlier one lie in the conversation, where
/// no budget of those who have logged in counts them.
const UNPROVEN_BYTES: usize = 32 << 10;

impl ConnectionLoop {
    /// Takes the datagrams that have come to a port.
    pub(super) fn read_kcp(&mut self, now: Time, port: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut touched = Vec::new();
        for _ in 0..AT_ONCE {
            let Some(socket) = self
                .kcp_ports
                .get(port)
                .map(|port| Arc::clone(&port.socket))
            else {
                break;
            };
            // Errors of one peer, as when its port is closed, say nothing of
            // the others; the end of what waits is one of them.
            let Ok((bytes, peer)) = socket.recv_from(&mut buffer) else {
                break;
            };
            if let Some(key) = self.take_datagram(now, port, peer, &buffer[..bytes])
                && !touched.contains(&key)
            {
                touched.push(key);
            }
        }
        self.buffer = buffer;
        let mut may_read = true;
        for (at, key) in touched.into_iter().enumerate() {
            let slot = key.slot();
            if at % LOOK_AT_CLOCK_EVERY == LOOK_AT_CLOCK_EVERY - 1 {
                may_read &= !self.is_late(now) && !self.bus.is_full();
            }
            if may_read {
                self.read(now, slot);
            } else {
                // What has come lies in its conversation until the next turn.
                self.list_unread(slot);
            }
            if self.sockets.get(key).is_some_and(|socket| socket.blocked) {
                self.write(now, slot);
            }
            self.note_kcp(now, slot);
        }
    }

    /// Finds the conversation of a datagram, which it may open.
    fn take_datagram(
        &mut self,
        now: Time,
        port: usize,
        peer: SocketAddr,
        datagram: &[u8],
    ) -> Option<ConnKey> {
        if datagram.len() > DATAGRAM_BYTES {
            self.shared.kcp.count(KcpEvent::Ignored);
            return None;
        }
        if let Some(message) = AddressProof::parse(datagram) {
            let conversation = self.kcp_ports.get(port)?.prove(now, peer, message)?;
            let key = self.conversation(now, port, peer, conversation)?;
            return self.prove_kcp(now, key).then_some(key);
        }
        let known = Stream::conversation_of(datagram).and_then(|number| {
            self.kcp_ports
                .get(port)?
                .peers
                .get(&(peer, number))
                .copied()
        });
        let key = match known {
            Some(key) => key,
            None if Stream::opens(datagram) => {
                let conversation = Stream::conversation_of(datagram)?;
                self.conversation(now, port, peer, conversation)?
            }
            None => {
                self.shared.kcp.count(KcpEvent::Ignored);
                return None;
            }
        };
        self.hand_over(now, key, datagram)
    }

    /// Hands a datagram to its conversation, unless more came than may come so
    /// early: that ends it.
    fn hand_over(&mut self, now: Time, key: ConnKey, datagram: &[u8]) -> Option<ConnKey> {
        let login_bytes = self.config.connections.before_login.bytes;
        let socket = self.sockets.get(key)?;
        let StreamTransport::Kcp(session) = &mut socket.transport else {
            return None;
        };
        let limit_bytes = match (session.is_proven(), socket.is_unauthenticated) {
            (false, _) => UNPROVEN_BYTES.min(login_bytes),
            (true, true) => login_bytes,
            (true, false) => usize::MAX,
        };
        if session.count_received(datagram.len()) > limit_bytes {
            let budget = Budget::LoginBytes;
            self.side.over_budget(now, key, budget);
            self.end(now, key, CloseReason::OverBudget(budget));
            return None;
        }
        if !self.pays_for_datagram(now, key, datagram.len()) {
            return None;
        }
        let StreamTransport::Kcp(session) = &mut self.sockets.get(key)?.transport else {
            return None;
        };
        if session.take(now, datagram) {
            self.shared.kcp.count(KcpEvent::ProvenByAcknowledgement);
            return self.prove_kcp(now, key).then_some(key);
        }
        Some(key)
    }

    /// Whether a datagram is looked at: whatever is in it, a client that has logged in
    /// may send so many. One port is everybody's, so that the others are read and
    /// thrown away, as a full path would.
    fn pays_for_datagram(&mut self, now: Time, key: ConnKey, bytes: usize) -> bool {
        let rates = self.rates.of_datagrams();
        let Some(socket) = self.sockets.get(key) else {
            return false;
        };
        if socket.is_unauthenticated || socket.peer != Peer::Client {
            return true;
        }
        let Some(too_fast) = socket.datagram_pace.too_fast(now) else {
            socket.datagram_pace.spend(now, rates, 1, bytes);
            return true;
        };
        self.side.over_budget(now, key, too_fast.budget());
        false
    }

    /// The conversation so numbered of an address, which begins now if it has
    /// not yet. Whoever begins one is unproven, and takes no place of others
    /// than of the unproven.
    fn conversation(
        &mut self,
        now: Time,
        port: usize,
        peer: SocketAddr,
        conversation: u32,
    ) -> Option<ConnKey> {
        let at = self.kcp_ports.get(port)?;
        if let Some(key) = at.peers.get(&(peer, conversation)) {
            return Some(*key);
        }
        let (kind, address) = (at.peer, peer.ip().to_canonical());
        let limits = self.config.kcp;
        if self.drain.is_some() || self.shared.admission.turns_away(address) {
            return None;
        }
        let evicted =
            self.kcp_unproven
                .to_evict(address, limits.unproven, limits.unproven_per_address);
        if let Some(evicted) = evicted {
            self.shared.kcp.count(KcpEvent::Evicted);
            // Nothing more is sent to whoever it is.
            self.end(now, evicted, CloseReason::TransportFailed);
        }
        let permit = self.shared.admission.unproven(kind);
        let at = self.kcp_ports.get(port)?;
        let session = at.open(port, peer, conversation, now, limits.silent_at_most);
        let transport = StreamTransport::Kcp(Box::new(session));
        let key = self.insert(now, kind, address, transport, permit)?;
        self.shared.kcp.count(KcpEvent::Opened);
        self.shared.loads[self.number].fetch_add(1, Ordering::Relaxed);
        self.side.set_address_forgeable(key, true);
        self.kcp_ports[port].peers.insert((peer, conversation), key);
        let id = self.kcp_unproven.insert(key, address);
        if let Some(socket) = self.sockets.get(key)
            && let StreamTransport::Kcp(session) = &mut socket.transport
        {
            session.unproven = Some(id);
        }
        Some(key)
    }

    /// A peer was shown to receive what is sent to it: its conversation takes
    /// one of the places that are limited, and that of any conversation its
    /// address had before. Returns whether there was a place.
    fn prove_kcp(&mut self, now: Time, key: ConnKey) -> bool {
        let Some(socket) = self.sockets.get(key) else {
            return false;
        };
        let kind = socket.peer;
        let StreamTransport::Kcp(session) = &mut socket.transport else {
            return false;
        };
        session.set_proven();
        let Some(id) = session.unproven.take() else {
            return true;
        };
        let (port, peer, conversation) = (session.port, session.peer, session.conversation());
        self.kcp_unproven.remove(id);
        self.side.set_address_forgeable(key, false);
        let address = peer.ip().to_canonical();
        let Some(permit) = self.shared.admit(now, kind, address, self.number) else {
            self.end(now, key, CloseReason::TransportFailed);
            return false;
        };
        if !self.set_permit(now, key, permit) {
            self.end(now, key, CloseReason::Evicted);
            return false;
        }
        for old in self.kcp_ports[port].others(peer, conversation) {
            let is_proven = self.sockets.get(old).is_some_and(
                |socket| matches!(&socket.transport, StreamTransport::Kcp(session) if session.is_proven()),
            );
            if is_proven {
                self.shared.kcp.count(KcpEvent::Replaced);
                self.end(now, old, CloseReason::PeerClosed);
            }
        }
        // What it sent since it logged in has waited for this.
        self.list_unread(key.slot());
        true
    }

    /// Notes when a conversation is due next.
    pub(super) fn note_kcp(&mut self, now: Time, slot: usize) {
        if let Some(socket) = self.sockets.at(slot)
            && let StreamTransport::Kcp(session) = &mut socket.transport
        {
            if let Some(noted) = session.noted.take() {
                self.kcp_due.remove(&(noted, slot));
            }
            let due = session.deadline(now);
            session.noted = Some(due);
            if session.has_resent() {
                self.kcp_resent_at = Some(now);
            }
            self.kcp_due.insert((due, slot));
        }
    }

    /// Does what is due.
    pub(super) fn tick_kcp(&mut self, now: Time) {
        while let Some(&(due, slot)) = self.kcp_due.first()
            && due <= now
        {
            self.kcp_due.remove(&(due, slot));
            if let Some(socket) = self.sockets.at(slot)
                && let StreamTransport::Kcp(session) = &mut socket.transport
            {
                session.noted = None;
                if session.tick(now) {
                    let key = socket.key;
                    self.end(now, key, CloseReason::Silent);
                    continue;
                }
            }
            self.read(now, slot);
            self.note_kcp(now, slot);
        }
    }

    /// A conversation has ended.
    pub(super) fn forget_kcp(&mut self, transport: &StreamTransport, key: ConnKey) {
        if let StreamTransport::Kcp(session) = transport {
            if let Some(noted) = session.noted {
                self.kcp_due.remove(&(noted, key.slot()));
            }
            if let Some(id) = session.unproven {
                self.kcp_unproven.remove(id);
            }
            let name = (session.peer, session.conversation());
            if let Some(port) = self.kcp_ports.get_mut(session.port)
                && port.peers.get(&name) == Some(&key)
            {
                port.peers.remove(&name);
            }
        }
    }
}
