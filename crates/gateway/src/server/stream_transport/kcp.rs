//! KCP conversations that share one UDP socket: the streams are the transport
//! crate's, here they meet the socket and the outbox.
//!
//! Whoever sends a datagram can put any address on it. Until a peer has shown
//! that it receives what is sent to its address, by returning a
//! [cookie](cookie) or by acknowledging a segment under the time at which it was
//! sent (the clock of each conversation is offset by a number nobody can
//! foresee), it is sent at most three times what came from it, as QUIC has it
//! (RFC 9000, section 8.1), and its conversation stands in a
//! [table](unproven::Unproven) from which the oldest are evicted. It may log in, and
//! what it sends after that waits: it would be held against the address.

mod cookie;
mod counters;
mod unproven;

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use lagometer_transport::kcp::{AddressProof, Stream, StreamProfile};
use lagometer_transport::{ByteStream as _, State};
use lagometer_units::Time;

use crate::core::{CloseReason, ConnKey, ConnectionManager, Peer};

use super::{Reading, Writing};
use cookie::CookieKey;
pub(in crate::server) use counters::{KcpCounters, KcpEvent};
pub(in crate::server) use unproven::{Unproven, UnprovenId};

/// What an unproven peer may be sent for each byte that came from it (RFC 9000,
/// section 8.1).
const AMPLIFICATION: usize = 3;

/// What a segment with nothing in it has on the wire.
const HEADER_BYTES: usize = lagometer_kcp::HEADER_BYTES;

/// A UDP socket and who is spoken to over it.
#[derive(Debug)]
pub(in crate::server) struct KcpPort {
    pub(in crate::server) socket: Arc<UdpSocket>,
    pub(in crate::server) peer: Peer,
    profile: StreamProfile,
    key: CookieKey,
    counters: Arc<KcpCounters>,
    /// Conversations by address and number: one address may have an old one
    /// and, until that is proven, a new one.
    pub(in crate::server) peers: BTreeMap<(SocketAddr, u32), ConnKey>,
}

/// One conversation.
#[derive(Debug)]
pub(in crate::server) struct KcpSession {
    /// Which of the loop's ports it belongs to.
    pub(in crate::server) port: usize,
    pub(in crate::server) peer: SocketAddr,
    stream: Stream,
    wire: Wire,
    /// When it is to be woken, as the loop has noted it.
    pub(in crate::server) noted: Option<Time>,
    /// Which of the unproven it is, while it is one.
    pub(in crate::server) unproven: Option<UnprovenId>,
    last_received: Time,
    silent_at_most: Duration,
    next_probe: Time,
    /// Bytes of datagrams that came.
    received_bytes: usize,
    /// Its peer has logged in.
    is_authenticated: bool,
    /// The stream's resending flushes when it was last looked.
    resending_flushes: u32,
}

/// Where a conversation's datagrams go, and how many may.
#[derive(Debug)]
struct Wire {
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    counters: Arc<KcpCounters>,
    /// What an unproven peer may be sent still, in bytes; `None`: proven.
    budget_bytes: Option<usize>,
}

impl Wire {
    /// Sends a datagram. One that finds no room is lost like any other, and so
    /// is one that an unproven peer may not be sent.
    fn send(&mut self, datagram: &[u8]) {
        if let Some(budget) = &mut self.budget_bytes {
            let Some(left) = budget.checked_sub(datagram.len()) else {
                self.counters.count(KcpEvent::HeldBack);
                return;
            };
            *budget = left;
        }
        let _ = self.socket.send_to(datagram, self.peer);
    }
}

impl KcpPort {
    pub(in crate::server) fn new(
        socket: UdpSocket,
        profile: StreamProfile,
        peer: Peer,
        counters: Arc<KcpCounters>,
    ) -> Self {
        Self {
            socket: Arc::new(socket),
            peer,
            profile,
            key: CookieKey::generate(),
            counters,
            peers: BTreeMap::new(),
        }
    }

    /// A conversation with a peer that was not known, and is not proven.
    pub(in crate::server) fn open(
        &self,
        port: usize,
        peer: SocketAddr,
        conversation: u32,
        now: Time,
        silent_at_most: Duration,
    ) -> KcpSession {
        let offset_ms = self.key.clock_offset_ms(now, peer, conversation);
        KcpSession {
            port,
            peer,
            stream: Stream::with_clock(conversation, &self.profile.config(), now, offset_ms),
            wire: Wire {
                socket: Arc::clone(&self.socket),
                peer,
                counters: Arc::clone(&self.counters),
                budget_bytes: Some(0),
            },
            noted: None,
            unproven: None,
            last_received: now,
            silent_at_most,
            next_probe: now + silent_at_most / 2,
            received_bytes: 0,
            is_authenticated: false,
            resending_flushes: 0,
        }
    }

    /// Answers a hello with a cookie, of which nothing is kept. Whether a
    /// message proves its sender's address for a conversation, whose number is
    /// then returned.
    pub(in crate::server) fn prove(
        &self,
        now: Time,
        peer: SocketAddr,
        message: AddressProof,
    ) -> Option<u32> {
        match message {
            AddressProof::Hello { conversation } => {
                let challenge = AddressProof::Challenge {
                    conversation,
                    cookie: self.key.cookie(now, peer, conversation),
                };
                self.counters.count(KcpEvent::Challenged);
                let _ = self.socket.send_to(&challenge.to_bytes(), peer);
                None
            }
            AddressProof::Answer {
                conversation,
                cookie,
            } => {
                let is_good = self.key.is_good(now, peer, conversation, cookie);
                self.counters.count(if is_good {
                    KcpEvent::ProvenByCookie
                } else {
                    KcpEvent::BadCookie
                });
                is_good.then_some(conversation)
            }
            AddressProof::Challenge { .. } => None,
        }
    }

    /// The conversations of an address other than that one.
    pub(in crate::server) fn others(&self, peer: SocketAddr, conversation: u32) -> Vec<ConnKey> {
        self.peers
            .range((peer, 0)..=(peer, u32::MAX))
            .filter(|((_, number), _)| *number != conversation)
            .map(|(_, key)| *key)
            .collect()
    }
}

impl KcpSession {
    pub(in crate::server) fn conversation(&self) -> u32 {
        self.stream.conversation()
    }

    /// Whether the peer was shown to receive what is sent to it.
    pub(in crate::server) fn is_proven(&self) -> bool {
        self.wire.budget_bytes.is_none()
    }

    /// The peer has logged in.
    pub(super) fn authenticated(&mut self) {
        self.is_authenticated = true;
    }

    /// Nothing more of the peer is handed on until it has shown where it is: it has
    /// logged in, perhaps under another's address, and what it does from now on is
    /// held against the address. Who receives the answer to its login shows it by
    /// acknowledging it.
    pub(in crate::server) fn waits_for_proof(&self) -> bool {
        self.is_authenticated && !self.is_proven()
    }

    /// Nothing comes over it any more.
    pub(in crate::server) fn is_closed(&self) -> bool {
        matches!(self.stream.state(), State::Closed(_))
    }

    /// The peer was shown to receive what is sent to it.
    pub(in crate::server) fn set_proven(&mut self) {
        self.wire.budget_bytes = None;
        self.stream.set_peer_proven();
        self.stream.limit_writes(None);
    }

    /// Bytes that have come and wait for earlier ones.
    pub(super) fn unread_bytes(&self) -> usize {
        self.stream.unread_bytes()
    }

    /// Bytes of memory that what has come takes.
    pub(super) fn held_bytes(&self) -> usize {
        self.stream.held_bytes()
    }

    /// A datagram of so many bytes has come. Returns how many came in all.
    pub(in crate::server) fn count_received(&mut self, bytes: usize) -> usize {
        self.received_bytes = self.received_bytes.saturating_add(bytes);
        self.received_bytes
    }

    /// Takes a datagram of the peer. What is not of this conversation is
    /// passed over. Returns whether the peer is shown by it, for the first
    /// time, to receive what is sent to it.
    pub(in crate::server) fn take(&mut self, now: Time, datagram: &[u8]) -> bool {
        self.last_received = now;
        self.next_probe = now + self.silent_at_most / 2;
        if let Some(budget) = &mut self.wire.budget_bytes {
            *budget = budget.saturating_add(AMPLIFICATION * datagram.len());
        }
        let Self { stream, wire, .. } = self;
        stream.input(now, datagram, &mut |bytes| wire.send(bytes));
        if self.is_proven() || !self.stream.is_peer_proven() {
            return false;
        }
        self.set_proven();
        true
    }

    /// Hands on what has arrived in order.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8])) -> Reading {
        self.stream.read(&mut take);
        if self.is_closed() {
            Reading::Ended(CloseReason::TransportFailed)
        } else {
            Reading::Done
        }
    }

    /// Takes what waits, as far as the window has room, and sends it. For an
    /// unproven peer that is what fits one datagram of what it may be sent, an
    /// acknowledgement beside it.
    pub(super) fn write(
        &mut self,
        now: Time,
        side: &mut ConnectionManager,
        key: ConnKey,
    ) -> Writing {
        if let Some(budget) = self.wire.budget_bytes {
            let room = budget.saturating_sub(2 * HEADER_BYTES);
            self.stream.limit_writes(Some(room));
        }
        let (taken, writing) = super::fill(&mut self.stream, now, side, key);
        if taken > 0 {
            let Self { stream, wire, .. } = self;
            stream.send(now, &mut |bytes| wire.send(bytes));
        }
        writing
    }

    /// Does what is due. Returns whether the peer has been silent for too long.
    pub(in crate::server) fn tick(&mut self, now: Time) -> bool {
        let Self { stream, wire, .. } = self;
        stream.tick(now, &mut |bytes| wire.send(bytes));
        if now.since(self.last_received) >= self.silent_at_most {
            self.wire.counters.count(KcpEvent::Vanished);
            return true;
        }
        if now >= self.next_probe {
            self.next_probe = now + self.silent_at_most / 8;
            self.wire.counters.count(KcpEvent::Probed);
            self.stream.ask_for_sign_of_life();
        }
        false
    }

    /// Whether something was sent again since this was last asked.
    pub(in crate::server) fn has_resent(&mut self) -> bool {
        let flushes = self.stream.resending_flushes();
        std::mem::replace(&mut self.resending_flushes, flushes) != flushes
    }

    /// When [`tick`](Self::tick) has something to do, if nothing comes before.
    pub(in crate::server) fn deadline(&mut self, now: Time) -> Time {
        let silence = self
            .next_probe
            .min(self.last_received + self.silent_at_most);
        let stream = self.stream.next_deadline(now);
        stream.map_or(silence, |due| due.min(silence))
    }
}
