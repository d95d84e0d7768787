//! How connections come in: listeners are opened, a socket is accepted, gets a permit, and joins a loop.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lagometer_units::Time;
use rustix::io::Errno;
use rustls::{ServerConnection, StreamOwned};
use tracing::{error, info};

use crate::core::{ConnKey, Peer};
use crate::server::accept_queue::Wait;
use crate::server::admission_control::Permit;
use crate::server::command::{Accepted, Command};
use crate::server::config::Wire;
use crate::server::pace::Pace;
use crate::server::poller::{FOR_STREAMS, Interest};
use crate::server::sockets::Socket;
use crate::server::stream_transport::{
    Beneath, KcpPort, Metered, SecureStream, StreamTransport, UnitCounter, tcp_options,
};

use super::{BEING_CLOSED, ConnectionLoop, KCP_PORTS, LISTENERS, NO_ROOM, TIMEOUT_CHECKS};

/// Connections accepted at one listener before others have their turn.
const AT_ONCE: usize = 64;

impl ConnectionLoop {
    /// Opens the listeners for one kind of peer.
    pub(super) fn open_listeners(&mut self, peer: Peer) -> Result<(), Errno> {
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            if listener.peer != peer {
                continue;
            }
            if let Err(error) = listener.open() {
                // A gateway that nobody can reach is none.
                error!(address = %listener.name, %error, "cannot listen");
                return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
            }
            if self.number == 0 {
                info!(address = %listener.name, %peer, "listening");
            }
            if let Some((socket, profile)) = listener.take_udp() {
                let token = KCP_PORTS | self.kcp_ports.len() as u64;
                self.poller.add(&socket, token, Interest::Read)?;
                self.kcp_ports.push(KcpPort::new(
                    socket,
                    profile,
                    peer,
                    Arc::clone(&self.shared.kcp),
                ));
            } else if let Some(socket) = listener.tcp() {
                let token = LISTENERS | index as u64;
                self.poller.add(socket, token, Interest::Read)?;
                self.shared.accept_queues.listens(socket, peer);
            }
        }
        Ok(())
    }

    /// Opens the listeners for clients once they may come.
    pub(super) fn open_client_listeners_if_owned(&mut self) -> Result<(), Errno> {
        if self.clients_may_come || self.drain.is_some() {
            return Ok(());
        }
        if self.bus.has_owner() {
            self.shared.owned.store(true, Ordering::SeqCst);
        }
        if self.shared.owned.load(Ordering::SeqCst) {
            self.clients_may_come = true;
            self.open_listeners(Peer::Client)?;
        }
        Ok(())
    }

    /// Accepts nobody at one listener for a while; who comes waits there. The
    /// others, game servers' above all, have nothing to do with it.
    fn rest_listener(&mut self, index: usize, until: Time) {
        if let Some(listener) = self.listeners.get_mut(index)
            && let Some(socket) = listener.tcp()
        {
            // If it cannot be unwatched, it is only reported again.
            let token = LISTENERS | index as u64;
            let _ = self.poller.change(socket, token, Interest::Nothing);
            listener.rests_until = Some(until);
        }
        self.note_rests();
    }

    /// Accepts again at the listeners that have rested.
    pub(super) fn wake_listeners(&mut self, now: Time) -> Result<(), Errno> {
        if self.accept_again_at.is_none_or(|at| now < at) {
            return Ok(());
        }
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            if listener
                .rests_until
                .take_if(|until| *until <= now)
                .is_some()
                && let Some(socket) = listener.tcp()
            {
                let token = LISTENERS | index as u64;
                self.poller.change(socket, token, Interest::Read)?;
            }
        }
        self.note_rests();
        Ok(())
    }

    fn note_rests(&mut self) {
        let rests = self.listeners.iter().filter_map(|it| it.rests_until);
        self.accept_again_at = rests.min();
    }

    /// Accepts those who wait at a listener, at least one, until then.
    pub(super) fn accept(&mut self, now: Time, index: usize, until: Time) {
        self.spare_files.refill();
        for nth in 0..AT_ONCE {
            if nth > 0 && self.shared.clock.now() >= until {
                return;
            }
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            let (peer, wire) = (listener.peer, listener.wire);
            if !self.shared.admission.has_file_for(peer) {
                self.shared.accept_queues.count(peer, Wait::BeingClosed);
                self.rest_listener(index, now + BEING_CLOSED);
                return;
            }
            let (stream, address) = match listener.accept() {
                Ok(Some((stream, address))) => (stream, address.ip().to_canonical()),
                Ok(None) => return,
                Err(_) if peer == Peer::Server && self.spare_files.give_up() => continue,
                Err(error) => {
                    // Files or memory have run out: those inside go first.
                    self.shared.accept_queues.count(peer, Wait::NoFile);
                    self.journal.cannot_accept(now, &listener.name, &error);
                    self.rest_listener(index, now + NO_ROOM);
                    return;
                }
            };
            let on_loop = self.idlest();
            let Some(permit) = self.shared.admit(now, peer, address, on_loop) else {
                continue;
            };
            // Counted here, for those on their way count too.
            self.shared.loads[on_loop].fetch_add(1, Ordering::Relaxed);
            let accepted = Accepted {
                stream,
                peer,
                wire,
                address,
                permit,
            };
            let other = self.shared.loops.get().and_then(|loops| loops.get(on_loop));
            match other {
                Some(commands) if on_loop != self.number => {
                    commands.give(Command::Adopt(accepted));
                }
                _ => self.adopt(now, accepted),
            }
        }
    }

    /// The loop with the fewest connections.
    fn idlest(&self) -> usize {
        let loads = self.shared.loads.iter().enumerate();
        let idlest = loads.min_by_key(|(_, load)| load.load(Ordering::Relaxed));
        idlest.map_or(self.number, |(number, _)| number)
    }

    /// Takes over a connection that was accepted and counted.
    pub(super) fn adopt(&mut self, now: Time, accepted: Accepted) {
        let Accepted {
            stream,
            peer,
            wire,
            address,
            permit,
        } = accepted;
        let is_wanted = self.drain.is_none() && !permit.is_evicted();
        let is_ready = match wire {
            Wire::Unix => stream.set_nonblocking(true),
            _ => tcp_options(&stream, &self.config.tcp),
        };
        let transport = (is_wanted && is_ready.is_ok())
            .then(|| self.transport(stream, wire))
            .flatten();
        let adopted =
            transport.and_then(|transport| self.insert(now, peer, address, transport, permit));
        let Some(key) = adopted else {
            self.shared.loads[self.number].fetch_sub(1, Ordering::Relaxed);
            return;
        };
        self.weigh(now, key.slot());
        // What a handshake has read already the poller does not report.
        if !matches!(wire, Wire::Tcp | Wire::Unix) {
            self.list_unread(key.slot());
        }
    }

    fn transport(&self, stream: TcpStream, wire: Wire) -> Option<StreamTransport> {
        let secure = |stream| -> Option<Box<SecureStream>> {
            let identity = self.config.tls.as_ref()?;
            let session = ServerConnection::new(Arc::clone(&identity.config)).ok()?;
            Some(Box::new(StreamOwned::new(
                session,
                Metered::new(stream, UnitCounter::tls()),
            )))
        };
        let message_bytes = self.config.connections.logins.unfinished_bytes();
        Some(match wire {
            Wire::Tcp | Wire::Unix | Wire::Kcp | Wire::KcpTuned => StreamTransport::Tcp(stream),
            Wire::Tls => StreamTransport::Tls(secure(stream)?),
            Wire::Ws => StreamTransport::websocket(Beneath::plain(stream), message_bytes),
            Wire::Wss => {
                StreamTransport::websocket(Beneath::secure(secure(stream)?), message_bytes)
            }
        })
    }

    /// Makes a transport a connection. `None` if the core does not want it.
    pub(super) fn insert(
        &mut self,
        now: Time,
        peer: Peer,
        address: IpAddr,
        transport: StreamTransport,
        permit: Permit,
    ) -> Option<ConnKey> {
        let key = self.side.open(now, peer, Some(address)).ok()?;
        // What stands between a socket and the outbox, such as TLS, may have
        // something to do of which the socket reports nothing.
        let interest = match transport {
            StreamTransport::Tcp(_) => FOR_STREAMS,
            _ => Interest::Read,
        };
        if let Some(socket) = transport.socket()
            && self
                .poller
                .add(socket, key.slot() as u64, interest)
                .is_err()
        {
            self.side
                .close(key, crate::core::CloseReason::TransportFailed);
            return None;
        }
        if peer == Peer::Client {
            self.shared.clients.fetch_add(1, Ordering::Relaxed);
        }
        self.check_timeouts_at.get_or_insert(now + TIMEOUT_CHECKS);
        self.unauthenticated.insert(permit.id(), key);
        self.sockets.insert(Socket {
            key,
            peer,
            transport,
            permit,
            opened: now,
            is_unauthenticated: true,
            backlog: Vec::new(),
            is_listed: false,
            read_in_turn: None,
            has_ended: false,
            paused_until: None,
            is_held_back: false,
            pace: Pace::default(),
            datagram_pace: Pace::default(),
            login_work: Duration::ZERO,
            blocked: false,
            interest,
        });
        Some(key)
    }
}
