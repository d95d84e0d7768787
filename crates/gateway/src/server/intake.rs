//! What one connection may have taken in of it in one turn of its loop.
//!
//! Whoever sends as fast as it can is read as often as everybody else and no
//! longer: a turn reads a bounded number of bytes from its socket, hands on a
//! bounded number of messages, of the transport's (frames of a WebSocket and
//! records of TLS may be empty) and of the protocol's (a short frame may unpack to
//! thousands), and takes a bounded time. Both count when the connection is charged
//! for what was taken in. What was read and not handed on lies in the
//! connection's backlog, which is no longer than one reading, and comes first
//! in the next turn.

use std::time::Duration;

use lagometer_units::Time;

use crate::core::{ConnKey, ConnectionManager, Peer};

use super::clock::Clock;

/// How long one connection may keep its loop, looked at between two readings.
const TIME: Duration = Duration::from_millis(1);

/// One connection's share of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes read from the socket.
    pub(super) bytes: usize,
    /// Messages of the protocol; the frame that goes beyond is taken whole.
    pub(super) messages: usize,
    /// Messages of the transport, whether anything is in them or not, looked at
    /// between two readings.
    pub(super) transport_messages: usize,
}

impl Share {
    /// Enough for a login.
    const UNAUTHENTICATED: Self = Self {
        bytes: 16 << 10,
        messages: 64,
        transport_messages: 64,
    };

    /// A client says little at a time.
    const CLIENT: Self = Self {
        bytes: 64 << 10,
        messages: 1024,
        transport_messages: 1024,
    };

    /// A server speaks for many.
    const SERVER: Self = Self {
        bytes: 128 << 10,
        messages: 16_384,
        transport_messages: 4096,
    };

    pub(super) fn of(peer: Peer, is_unauthenticated: bool) -> Self {
        match peer {
            _ if is_unauthenticated => Self::UNAUTHENTICATED,
            Peer::Client => Self::CLIENT,
            Peer::Server => Self::SERVER,
        }
    }
}

/// What has been taken in of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TakenIn {
    /// Messages, of the protocol or of the transport, whichever were more.
    pub(super) messages: usize,
    /// Bytes, of the wire or unpacked, whichever were more.
    pub(super) bytes: usize,
}

/// Takes in what one connection has sent, as far as its share goes.
pub(super) struct Intake<'a> {
    now: Time,
    side: &'a mut ConnectionManager,
    key: ConnKey,
    backlog: &'a mut Vec<u8>,
    left: Share,
    clock: Clock,
    until: Time,
    taken: TakenIn,
    /// Of the transport.
    transport: TakenIn,
}

impl<'a> Intake<'a> {
    pub(super) fn new(
        now: Time,
        clock: Clock,
        side: &'a mut ConnectionManager,
        key: ConnKey,
        backlog: &'a mut Vec<u8>,
        share: Share,
    ) -> Self {
        Self {
            now,
            side,
            key,
            backlog,
            left: share,
            clock,
            until: clock.now() + TIME,
            taken: TakenIn::default(),
            transport: TakenIn::default(),
        }
    }

    /// Bytes that may still be read.
    pub(super) fn bytes_left(&self) -> usize {
        self.left.bytes
    }

    /// Nothing more is to be read in this turn.
    pub(super) fn is_full(&self) -> bool {
        self.has_backlog()
            || self.left.bytes == 0
            || self.left.messages == 0
            || self.transport.messages >= self.left.transport_messages
            || self.clock.now() >= self.until
    }

    /// Something was read and not handed on.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    pub(super) fn taken(&self) -> TakenIn {
        TakenIn {
            messages: self.taken.messages.max(self.transport.messages),
            bytes: self.taken.bytes.max(self.transport.bytes),
        }
    }

    /// Takes what was left of the turn before.
    pub(super) fn take_backlog(&mut self) {
        if !self.backlog.is_empty() {
            let bytes = std::mem::take(self.backlog);
            self.hand_on(&bytes);
        }
    }

    /// Takes bytes that have been read.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.left.bytes = self.left.bytes.saturating_sub(bytes.len());
        if self.backlog.is_empty() {
            self.hand_on(bytes);
        } else {
            self.backlog.extend_from_slice(bytes);
        }
    }

    /// So many bytes, and messages of the transport in them, were read in this turn
    /// so far, whether or not anything came of them.
    pub(super) fn note_transport(&mut self, (bytes, messages): (usize, usize)) {
        self.transport = TakenIn { messages, bytes };
    }

    fn hand_on(&mut self, bytes: &[u8]) {
        if self.left.messages == 0 {
            self.backlog.extend_from_slice(bytes);
            return;
        }
        let received = self
            .side
            .receive_some(self.now, self.key, bytes, self.left.messages);
        self.left.messages = self.left.messages.saturating_sub(received.messages);
        self.taken.messages += received.messages;
        self.taken.bytes += received.taken_bytes.max(received.packet_bytes);
        self.backlog
            .extend_from_slice(&bytes[received.taken_bytes..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{AuthPolicy, ChannelManager, ChannelSettings, ConnectionSettings, SideId};
    use lagometer_protocol::{FrameBuilder, MessagePack};

    /// Sides with one client that has logged in.
    fn logged_in() -> (ConnectionManager, ConnKey) {
        let mut side = ConnectionManager::new(ConnectionSettings::default());
        let mut channels = ChannelManager::new(ChannelSettings {
            auth: AuthPolicy::AdmitAll,
            ..ChannelSettings::default()
        });
        let key = side.open(Time::ZERO, Peer::Client, None).unwrap();
        let login = b"CH\x00\x12\x00\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";
        side.receive(Time::ZERO, key, login);
        while let Some(message) = side.poll_bus() {
            channels.handle(Time::ZERO, SideId(0), message);
        }
        while let Some((_, message)) = channels.poll_bus() {
            side.handle(Time::ZERO, message);
        }
        assert!(side.is_admitted(key));
        (side, key)
    }

    fn frame(messages: usize) -> Vec<u8> {
        let mut builder = FrameBuilder::new();
        for _ in 0..messages {
            let message = MessagePack {
                msg_type: 100,
                ..MessagePack::default()
            };
            builder.push(&message).unwrap();
        }
        builder.finish().unwrap().to_vec()
    }

    #[test]
    fn a_flood_of_frames_is_taken_in_shares_and_none_is_lost() {
        let (mut side, key) = logged_in();
        let flood = frame(100).repeat(50);
        let share = Share {
            messages: 1000,
            ..Share::CLIENT
        };
        let clock = Clock::start();
        let (mut backlog, mut turns, mut messages) = (Vec::new(), 0, 0);
        loop {
            let mut intake = Intake::new(Time::ZERO, clock, &mut side, key, &mut backlog, share);
            match turns {
                0 => intake.take(&flood),
                _ => intake.take_backlog(),
            }
            assert!(intake.taken().messages <= 1000);
            messages += intake.taken().messages;
            turns += 1;
            if !intake.has_backlog() {
                break;
            }
        }
        assert_eq!((turns, messages), (5, 5000));
    }

    #[test]
    fn empty_messages_of_the_transport_fill_a_share_too() {
        let (mut side, key) = logged_in();
        let mut backlog = Vec::new();
        let share = Share::CLIENT;
        let clock = Clock::start();
        let mut intake = Intake::new(Time::ZERO, clock, &mut side, key, &mut backlog, share);
        intake.until = Time::from_secs(1 << 30);
        for messages in 1..share.transport_messages {
            intake.note_transport((6 * messages, messages));
            assert!(!intake.is_full());
        }
        intake.note_transport((6 * share.transport_messages, share.transport_messages));
        assert!(intake.is_full());
        let taken = TakenIn {
            messages: share.transport_messages,
            bytes: 6 * share.transport_messages,
        };
        assert_eq!(intake.taken(), taken);
    }
}
