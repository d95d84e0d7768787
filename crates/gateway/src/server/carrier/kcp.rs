//! KCP conversations that share one UDP socket: the streams are the transport
//! crate's, here they meet the socket and the outbox.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use lagometer_transport::kcp::{Stream, StreamProfile};
use lagometer_transport::{ByteStream as _, State};
use lagometer_units::Time;

use crate::core::{CloseReason, ConnKey, ConnectionSide, Peer};

use super::{Reading, Writing};

/// A UDP socket and who is spoken to over it.
#[derive(Debug)]
pub(in crate::server) struct KcpPort {
    pub(in crate::server) socket: Arc<UdpSocket>,
    pub(in crate::server) peer: Peer,
    profile: StreamProfile,
    pub(in crate::server) peers: BTreeMap<SocketAddr, ConnKey>,
}

/// One conversation.
#[derive(Debug)]
pub(in crate::server) struct KcpSession {
    /// Which of the loop's ports it belongs to.
    pub(in crate::server) port: usize,
    pub(in crate::server) peer: SocketAddr,
    stream: Stream,
    socket: Arc<UdpSocket>,
    /// When it is to be woken, as the loop has noted it.
    pub(in crate::server) noted: Option<Time>,
}

impl KcpPort {
    pub(in crate::server) fn new(socket: UdpSocket, profile: StreamProfile, peer: Peer) -> Self {
        Self {
            socket: Arc::new(socket),
            peer,
            profile,
            peers: BTreeMap::new(),
        }
    }

    /// A conversation with a peer that was not known.
    pub(in crate::server) fn open(
        &self,
        port: usize,
        peer: SocketAddr,
        conversation: u32,
        now: Time,
    ) -> KcpSession {
        KcpSession {
            port,
            peer,
            stream: Stream::new(conversation, self.profile, now),
            socket: Arc::clone(&self.socket),
            noted: None,
        }
    }
}

impl KcpSession {
    pub(in crate::server) fn conversation(&self) -> u32 {
        self.stream.conversation()
    }

    /// Takes a datagram of the peer. What is not of this conversation is
    /// passed over.
    pub(in crate::server) fn take(&mut self, now: Time, datagram: &[u8]) {
        let mut output = sender(&self.socket, self.peer);
        self.stream.input(now, datagram, &mut output);
    }

    /// Hands on what has arrived in order.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8])) -> Reading {
        self.stream.read(&mut take);
        match self.stream.state() {
            State::Closed(_) => Reading::Ended(CloseReason::TransportFailed),
            _ => Reading::Done,
        }
    }

    /// Takes what waits, as far as the window has room, and sends it.
    pub(super) fn write(&mut self, now: Time, side: &mut ConnectionSide, key: ConnKey) -> Writing {
        let (taken, writing) = super::fill(&mut self.stream, now, side, key);
        if taken > 0 {
            self.stream.send(now, &mut sender(&self.socket, self.peer));
        }
        writing
    }

    /// Does what is due.
    pub(in crate::server) fn tick(&mut self, now: Time) {
        self.stream.tick(now, &mut sender(&self.socket, self.peer));
    }

    /// When [`tick`](Self::tick) has something to do, if nothing comes before.
    pub(in crate::server) fn deadline(&mut self, now: Time) -> Option<Time> {
        self.stream.next_deadline(now)
    }
}

/// Sends datagrams to a peer. One that finds no room is lost like any other.
fn sender(socket: &UdpSocket, peer: SocketAddr) -> impl FnMut(&[u8]) + '_ {
    move |datagram| {
        let _ = socket.send_to(datagram, peer);
    }
}
