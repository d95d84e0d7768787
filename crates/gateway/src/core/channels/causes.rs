//! Which client a message to a server comes of, and the back-pressure that
//! follows from it.
//!
//! Whatever a server is sent because of a client counts as that client's when
//! the server cannot keep up: its messages, and the notices of its login, its
//! subscriptions, its channels. The client whose request is being handled is
//! noted, so that no place that sends has to think of it. Windows of channel
//! data are nobody's; they are merged where their reader is slow.
//!
//! How pauses go is told in the connection manager's `congestion`.

use std::time::Duration;

use crate::core::bus::ToConnections;
use crate::core::ids::{ConnId, Peer, SideId};

use super::ChannelManager;

impl ChannelManager {
    /// Does something because of a connection's request.
    pub(super) fn because_of(&mut self, id: ConnId, act: impl FnOnce(&mut Self)) {
        let before = self.cause;
        let connection = self.connections.any(id);
        self.cause = connection
            .is_some_and(|connection| connection.peer == Peer::Client)
            .then_some(id);
        act(self);
        self.cause = before;
    }

    /// Whether a message to a connection counts as that of the client whose
    /// request is being handled.
    pub(super) fn is_caused(&self, to: ConnId) -> bool {
        self.cause.is_some()
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
            self.to_connections.push_back((side, pause));
        }
    }

    /// A client's pause has ended. A server that is gone is not congested.
    pub(super) fn ask_congestion(&mut self, sender: ConnId, receiver: ConnId) {
        match self.side_of(receiver) {
            Some(side) => {
                let ask = ToConnections::AskCongestion { sender, receiver };
                self.to_connections.push_back((side, ask));
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
            self.to_connections.push_back((side, resume));
        }
    }

    /// Where a connection is, whether it was let in or not.
    fn side_of(&self, id: ConnId) -> Option<SideId> {
        self.connections.any(id).map(|connection| connection.side)
    }
}
