//! Which request a message comes of: who pays for it, and the back-pressure that
//! follows from it.
//!
//! Whatever is sent because of a request, to whomever, is charged to whoever asks:
//! some requests of a few bytes are answered with many, to many. Beyond
//! [`ANSWERS_A_PACKET`] nothing more of a packet is worked on, whoever sent it.
//!
//! Whatever a server is sent because of a client counts as that client's when
//! the server cannot keep up: its messages, and the notices of its login, its
//! subscriptions, its channels. The client whose request is being handled is
//! noted, so that no place that sends has to think of it. Windows of channel
//! data are nobody's; they are merged where their reader is slow.
//!
//! How pauses go is described in the connection manager's `congestion`.

use std::net::IpAddr;
use std::time::Duration;

use lagometer_limits::source_prefix;
use lagometer_units::Time;

use crate::core::budget::Budget;
use crate::core::bus::{CloseReason, ToConnections};
use crate::core::ids::{ConnId, Peer, SideId};

use super::ChannelManager;
use super::accounts::BYTES_PER_UNIT;
use super::tables::Tables;

/// Bytes of answers that the requests of one packet may come to. What servers do
/// at once is far below it: thousands of subscriptions with their notices are
/// less than one MiB.
const ANSWERS_A_PACKET: usize = 16 << 20;

/// Bytes of a client's messages that may be dropped before a full server, as
/// many as a frame that is not compressed holds, before the client is closed.
const UNDELIVERED_BYTES: usize = 64 << 10;

/// Whose requests are being handled, and what they have come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    id: ConnId,
    is_client: bool,
    now: Time,
    /// Bytes of what was sent because of them.
    answers: usize,
}

impl Cause {
    /// Whether no more may be sent because of them.
    pub(super) fn is_spent(&self) -> bool {
        self.answers >= ANSWERS_A_PACKET
    }
}

impl ChannelManager {
    /// Does something because of a connection's requests.
    pub(super) fn because_of(&mut self, now: Time, id: ConnId, act: impl FnOnce(&mut Self)) {
        let before = self.tables.cause;
        self.tables.cause = self.tables.connections.any(id).map(|connection| Cause {
            id,
            is_client: connection.peer == Peer::Client,
            now,
            answers: 0,
        });
        act(self);
        self.tables.cause = before;
    }
}

impl Tables {
    /// So many bytes are sent to so many because of the requests being handled:
    /// whoever asks pays.
    pub(super) fn charge_cause(&mut self, bytes: usize, recipients: usize) {
        if let Some(cause) = &mut self.cause {
            cause.answers = cause.answers.saturating_add(bytes);
            let (now, id) = (cause.now, cause.id);
            self.charge(now, id, (recipients + bytes / BYTES_PER_UNIT) as u64);
        }
    }

    /// The connection whose request is being handled.
    pub(super) fn cause_id(&self) -> Option<ConnId> {
        self.cause.map(|cause| cause.id)
    }

    /// The client whose request is being handled.
    pub(super) fn client_cause(&self) -> Option<ConnId> {
        let cause = self.cause.filter(|cause| cause.is_client)?;
        Some(cause.id)
    }

    /// Whether a message to a connection counts as that of the client whose
    /// request is being handled.
    pub(super) fn is_caused(&self, to: ConnId) -> bool {
        self.client_cause().is_some()
            && self
                .connections
                .get(to)
                .is_some_and(|it| it.peer == Peer::Server)
    }

    /// What a client caused waits for a server that cannot keep up.
    pub(super) fn congested(&mut self, sender: ConnId, receiver: ConnId, pause: Duration) {
        if let Some(side) = self.side_of(sender) {
            let pause = ToConnections::Pause {
                id: sender,
                receiver,
                pause,
            };
            self.out.push(side, pause);
        }
    }

    /// A client's pause has ended. A server that is gone is not congested.
    pub(super) fn ask_congestion(&mut self, sender: ConnId, receiver: ConnId) {
        match self.side_of(receiver) {
            Some(side) => {
                let ask = ToConnections::AskCongestion { sender, receiver };
                self.out.push(side, ask);
            }
            None => self.relieved(sender, receiver),
        }
    }

    /// A server is not congested with what a client caused.
    pub(super) fn relieved(&mut self, sender: ConnId, receiver: ConnId) {
        if let Some(side) = self.side_of(sender) {
            let resume = ToConnections::Resume {
                id: sender,
                receiver,
            };
            self.out.push(side, resume);
        }
    }

    /// A server got no word of what a client has caused. A message of the game may
    /// be lost to a full server, though not one after another; a notice may not,
    /// or the server would take the client for another than it is.
    pub(super) fn undelivered(&mut self, sender: ConnId, bytes: usize, is_notice: bool) {
        let Some(connection) = self.connections.any_mut(sender) else {
            return;
        };
        let sum = connection.undelivered_bytes.saturating_add(bytes);
        connection.undelivered_bytes = sum;
        if is_notice || sum > UNDELIVERED_BYTES {
            self.close_connection(sender, CloseReason::OverBudget(Budget::ServerBacklog));
        }
    }

    /// Where a client comes from, if it is known to be there.
    pub(super) fn source_prefix_of(&self, client: ConnId) -> Option<IpAddr> {
        let address = self.connections.any(client)?.proven_address();
        address.map(source_prefix)
    }

    /// Where a connection is, whether it was let in or not.
    fn side_of(&self, id: ConnId) -> Option<SideId> {
        self.connections.any(id).map(|connection| connection.side)
    }
}
