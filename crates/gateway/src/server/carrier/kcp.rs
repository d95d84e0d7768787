//! KCP conversations that share one UDP socket.
//!
//! There is no handshake: a conversation begins with the first datagram of an
//! unknown address, under the number that is in it. There is no goodbye either:
//! a peer that is silent while something was sent to it counts as gone once a
//! segment was sent as often as the profile allows.
//!
//! The frames are cut into pieces of a segment each, which the peer joins; the
//! borders of its own pieces mean nothing here.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use lagometer_transport::kcp::{Config, Engine, HEADER_BYTES, Rules, Work};
use lagometer_units::{Span, Time};

use crate::core::{CloseReason, ConnKey, ConnectionSide, Peer};

use super::{Reading, Writing};

/// How conversations behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum KcpProfile {
    /// As kcp-go is where nothing is set, which is what channeld's peers speak
    /// to: a flush every 100 ms, windows of 32 segments, congestion control.
    Default,
    /// For play: a flush every 10 ms, resends after two skips, no congestion
    /// control, windows of 256 segments.
    Tuned,
}

impl KcpProfile {
    fn config(self) -> Config {
        match self {
            Self::Default => Config {
                send_window: 32,
                receive_window: 32,
                rules: Rules {
                    receive_window_floor: 1,
                    first_remote_window: 32,
                    ..Rules::default()
                },
                ..Config::default()
            },
            Self::Tuned => Config {
                nodelay: 1,
                interval_ms: 10,
                resend: 2,
                congestion_control: false,
                send_window: 256,
                receive_window: 256,
                dead_link: 40,
                rules: Rules {
                    first_probe: Span(Duration::from_millis(500)),
                    longest_probe: Span(Duration::from_secs(5)),
                    ..Rules::default()
                },
                ..Config::default()
            },
        }
    }
}

/// A UDP socket and who is spoken to over it.
#[derive(Debug)]
pub(in crate::server) struct KcpPort {
    pub(in crate::server) socket: Arc<UdpSocket>,
    pub(in crate::server) peer: Peer,
    profile: KcpProfile,
    pub(in crate::server) peers: BTreeMap<SocketAddr, ConnKey>,
}

/// One conversation.
#[derive(Debug)]
pub(in crate::server) struct KcpSession {
    /// Which of the loop's ports it belongs to.
    pub(in crate::server) port: usize,
    pub(in crate::server) peer: SocketAddr,
    engine: Engine,
    conversation: u32,
    socket: Arc<UdpSocket>,
    segment_bytes: usize,
    window: usize,
    message: Vec<u8>,
    /// When it is to be woken, as the loop has noted it.
    pub(in crate::server) noted: Option<Time>,
}

/// The number of the conversation a datagram is of, and whether it opens one.
pub(in crate::server) fn kcp_opening(datagram: &[u8]) -> Option<(u32, bool)> {
    let header = datagram.get(..HEADER_BYTES)?;
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    Some((word(0), word(12) == 0))
}

impl KcpPort {
    pub(in crate::server) fn new(socket: UdpSocket, profile: KcpProfile, peer: Peer) -> Self {
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
        let config = self.profile.config();
        let mut engine = Engine::new(conversation, &config);
        engine.update(millis(now), |_| {});
        KcpSession {
            port,
            peer,
            engine,
            conversation,
            socket: Arc::clone(&self.socket),
            segment_bytes: config.mtu - HEADER_BYTES,
            window: usize::from(config.send_window),
            message: Vec::new(),
            noted: None,
        }
    }
}

impl KcpSession {
    pub(in crate::server) fn conversation(&self) -> u32 {
        self.conversation
    }

    /// Takes a datagram of the peer. What is not of this conversation is
    /// passed over.
    pub(in crate::server) fn take(&mut self, now: Time, datagram: &[u8]) {
        self.engine.set_clock(millis(now));
        // The pieces before a bad one have been taken; the rest is noise.
        let _ = self.engine.input(now, datagram);
    }

    /// Hands on what has arrived in order.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8])) -> Reading {
        while self.engine.receive(&mut self.message).is_some() {
            take(&self.message);
        }
        if self.engine.is_dead() {
            return Reading::Ended(CloseReason::TransportFailed);
        }
        Reading::Done
    }

    /// Takes what waits, as far as the window has room, and sends it.
    pub(super) fn write(&mut self, now: Time, side: &mut ConnectionSide, key: ConnKey) -> Writing {
        let mut taken = 0;
        let mut blocked = false;
        'slices: for slice in side.output(key) {
            for piece in slice.chunks(self.segment_bytes) {
                if self.engine.waiting() >= self.window || self.engine.send(piece).is_err() {
                    blocked = true;
                    break 'slices;
                }
                taken += piece.len();
            }
        }
        side.wrote(now, key, taken);
        self.engine.set_clock(millis(now));
        if taken > 0 {
            let (socket, peer) = (&self.socket, self.peer);
            // A datagram that finds no room is lost like any other.
            self.engine.flush(|datagram| {
                let _ = socket.send_to(datagram, peer);
            });
        }
        if blocked {
            Writing::Blocked
        } else {
            Writing::Done
        }
    }

    /// Does what is due.
    pub(in crate::server) fn tick(&mut self, now: Time) {
        let (socket, peer) = (&self.socket, self.peer);
        self.engine.update(millis(now), |datagram| {
            let _ = socket.send_to(datagram, peer);
        });
    }

    /// When [`tick`](Self::tick) has something to do, if nothing comes before.
    pub(in crate::server) fn deadline(&mut self, now: Time) -> Option<Time> {
        if self.engine.next_work() == Work::Never {
            return None;
        }
        let wait = self.engine.next_flush().unwrap_or(0);
        Some(now + Duration::from_millis(u64::from(wait.max(1))))
    }
}

/// KCP's clock: it may wrap.
fn millis(now: Time) -> u32 {
    now.as_millis() as u32
}
