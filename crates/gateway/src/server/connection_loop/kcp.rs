//! KCP conversations in the loop: datagrams in, and the times they are due.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lagometer_transport::kcp::Stream;
use lagometer_units::Time;

use crate::core::{CloseReason, ConnKey};
use crate::server::carrier::Carrier;

use super::ConnectionLoop;

/// Datagrams taken from one port before others have their turn.
const AT_ONCE: usize = 512;

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
        for key in touched {
            let slot = key.slot();
            self.read(now, slot);
            if self.sockets.get(key).is_some_and(|socket| socket.blocked) {
                self.write(now, slot);
            }
            self.note_kcp(now, slot);
        }
    }

    /// Hands a datagram to its conversation, which it may open.
    fn take_datagram(
        &mut self,
        now: Time,
        port: usize,
        peer: SocketAddr,
        datagram: &[u8],
    ) -> Option<ConnKey> {
        let (conversation, is_first) = Stream::opening(datagram)?;
        let mut known = self.kcp_ports.get(port)?.peers.get(&peer).copied();
        if let Some(key) = known
            && is_first
            && let Some(socket) = self.sockets.get(key)
            && let Carrier::Kcp(session) = &socket.carrier
            && session.conversation() != conversation
        {
            // The peer has begun again.
            self.end(now, key, CloseReason::PeerClosed);
            known = None;
        }
        let key = match known {
            Some(key) => key,
            None => self.open_kcp(now, port, peer, conversation)?,
        };
        if let Some(socket) = self.sockets.get(key)
            && let Carrier::Kcp(session) = &mut socket.carrier
        {
            session.take(now, datagram);
        }
        Some(key)
    }

    fn open_kcp(
        &mut self,
        now: Time,
        port: usize,
        peer: SocketAddr,
        conversation: u32,
    ) -> Option<ConnKey> {
        if self.drain.is_some() {
            return None;
        }
        let kind = self.kcp_ports.get(port)?.peer;
        let address = peer.ip().to_canonical();
        let pass = self.shared.gatekeeper.admit(now, kind, address).ok()?;
        let session = self.kcp_ports[port].open(port, peer, conversation, now);
        let carrier = Carrier::Kcp(Box::new(session));
        let key = self.insert(now, kind, address, carrier, pass)?;
        self.shared.loads[self.number].fetch_add(1, Ordering::Relaxed);
        self.kcp_ports[port].peers.insert(peer, key);
        Some(key)
    }

    /// Notes when a conversation is due next.
    pub(super) fn note_kcp(&mut self, now: Time, slot: usize) {
        if let Some(socket) = self.sockets.at(slot)
            && let Carrier::Kcp(session) = &mut socket.carrier
        {
            if let Some(noted) = session.noted.take() {
                self.kcp_due.remove(&(noted, slot));
            }
            session.noted = session.deadline(now);
            if let Some(due) = session.noted {
                self.kcp_due.insert((due, slot));
            }
        }
    }

    /// Does what is due.
    pub(super) fn tick_kcp(&mut self, now: Time) {
        while let Some(&(due, slot)) = self.kcp_due.first()
            && due <= now
        {
            self.kcp_due.remove(&(due, slot));
            if let Some(socket) = self.sockets.at(slot)
                && let Carrier::Kcp(session) = &mut socket.carrier
            {
                session.noted = None;
                session.tick(now);
            }
            self.read(now, slot);
            self.note_kcp(now, slot);
        }
    }

    /// A conversation has ended.
    pub(super) fn forget_kcp(&mut self, carrier: &Carrier, key: ConnKey) {
        if let Carrier::Kcp(session) = carrier {
            if let Some(noted) = session.noted {
                self.kcp_due.remove(&(noted, key.slot()));
            }
            if let Some(port) = self.kcp_ports.get_mut(session.port)
                && port.peers.get(&session.peer) == Some(&key)
            {
                port.peers.remove(&session.peer);
            }
        }
    }
}
