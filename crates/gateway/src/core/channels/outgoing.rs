//! Sending messages to connections.

use std::sync::Arc;

use bytes::Bytes;
use lagometer_protocol::{FromGateway, MAX_MESSAGE_LEN, MessagePack};
use serde::{Deserialize, Serialize};

use crate::core::bus::{CloseReason, ToConnections};
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, Peer, SideId};

use super::tables::Tables;

/// What a message bears beside its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) channel: ChannelId,
    pub(crate) stub_id: u32,
    pub(crate) broadcast: u32,
}

impl Envelope {
    /// Of a message that answers none.
    pub(super) fn from(channel: ChannelId) -> Self {
        Self {
            channel,
            stub_id: 0,
            broadcast: 0,
        }
    }

    /// Of the copy that a third party gets.
    pub(crate) fn copy(self) -> Self {
        Self { stub_id: 0, ..self }
    }

    pub(super) fn of_channel(self, channel: ChannelId) -> Self {
        Self { channel, ..self }
    }
}

/// Encodes a message as one of a packet's.
pub(crate) fn encode(envelope: Envelope, message: &FromGateway) -> Vec<u8> {
    let mut body = Vec::new();
    message.encode_body(&mut body);
    let mut out = Vec::with_capacity(body.len() + 32);
    pack(envelope, message.msg_type() as u32, &body).encode_in_packet(&mut out);
    out
}

/// A message with its envelope.
pub(super) fn pack(envelope: Envelope, msg_type: u32, body: &[u8]) -> MessagePack<'_> {
    MessagePack {
        channel_id: envelope.channel.0,
        broadcast: envelope.broadcast,
        stub_id: envelope.stub_id,
        msg_type,
        body,
    }
}

impl Tables {
    /// Sends a message to one connection, if it is there.
    pub(super) fn send(&mut self, to: ConnId, envelope: Envelope, message: &FromGateway) {
        let encoded = self.out.encode(envelope, message);
        self.send_encoded(to, envelope.channel, encoded);
    }

    /// Sends one message to several connections, at the cost of whoever asked for
    /// it.
    pub(super) fn send_to_all(
        &mut self,
        to: impl IntoIterator<Item = ConnId>,
        channel: ChannelId,
        message: &Bytes,
    ) -> usize {
        let to: Vec<ConnId> = to.into_iter().collect();
        self.charge_cause(message.len(), to.len());
        self.pass_to_all(to, channel, message)
    }

    /// Passes a peer's own message on to several. Returns to how many.
    pub(super) fn pass_to_all(
        &mut self,
        mut to: Vec<ConnId>,
        channel: ChannelId,
        message: &Bytes,
    ) -> usize {
        if self.is_too_long(channel, message) {
            return 0;
        }
        let mut count = 0;
        if self.client_cause().is_some() {
            // To servers one by one, so that it counts as the client's there.
            to.retain(|&id| {
                let is_caused = self.is_caused(id);
                if is_caused {
                    count += usize::from(self.pass(id, channel, message.clone()));
                }
                !is_caused
            });
        }
        for (side, ids) in self.by_side(to) {
            count += ids.len();
            let message = ToConnections::SendMany {
                to: ids,
                message: message.clone(),
            };
            self.out.push(side, message);
        }
        count
    }

    /// Sends an encoded message, at the cost of whoever asked for it.
    pub(super) fn send_encoded(&mut self, to: ConnId, channel: ChannelId, message: Bytes) {
        self.charge_cause(message.len(), 1);
        self.pass(to, channel, message);
    }

    /// Passes a peer's own message on, which costs no more than to have sent it.
    /// Returns whether the connection is there and the message fits a frame.
    pub(super) fn pass(&mut self, to: ConnId, channel: ChannelId, message: Bytes) -> bool {
        let Some(connection) = self.connections.get(to) else {
            return false;
        };
        let (side, peer) = (connection.side, connection.peer);
        if self.is_too_long(channel, &message) {
            return false;
        }
        let message = match self.client_cause().filter(|_| peer == Peer::Server) {
            Some(cause) => ToConnections::Forward {
                cause,
                source_prefix: self.source_prefix_of(cause),
                to,
                message,
            },
            None => ToConnections::Send { to, message },
        };
        self.out.push(side, message);
        true
    }

    /// Sorts connections by the side they are on; each side's are in order if
    /// all were.
    pub(super) fn by_side(
        &self,
        ids: impl IntoIterator<Item = ConnId>,
    ) -> Vec<(SideId, Arc<[ConnId]>)> {
        let mut sides: Vec<(SideId, Vec<ConnId>)> = Vec::new();
        for id in ids {
            let Some(connection) = self.connections.get(id) else {
                continue;
            };
            match sides.iter_mut().find(|(side, _)| *side == connection.side) {
                Some((_, ids)) => ids.push(id),
                None => sides.push((connection.side, vec![id])),
            }
        }
        sides
            .into_iter()
            .map(|(side, ids)| (side, ids.into()))
            .collect()
    }

    /// Asks the connection's side to close it; from now on nothing of it
    /// counts.
    pub(super) fn close_connection(&mut self, id: ConnId, why: CloseReason) {
        if let Some(connection) = self.connections.any_mut(id) {
            let (side, key) = (connection.side, connection.key);
            self.out.push(side, ToConnections::Close { key, why });
        }
    }

    fn is_too_long(&mut self, channel: ChannelId, message: &Bytes) -> bool {
        // Beside the message itself its key and length in the packet.
        let is_too_long = message.len() > MAX_MESSAGE_LEN + 4;
        if is_too_long {
            self.report_too_long(channel, message.len());
        }
        is_too_long
    }

    /// Counts and reports something that no message can hold, so that it is
    /// not sent.
    pub(super) fn report_too_long(&mut self, channel: ChannelId, size_bytes: usize) {
        self.telemetry.counters.too_long += 1;
        self.telemetry.event(Event::TooLong {
            channel,
            size_bytes,
        });
    }
}
