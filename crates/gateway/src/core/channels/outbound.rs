//! What goes out to the connection managers: the queue of the bus, and the memory
//! that messages are encoded into.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::Bytes;
use lagometer_protocol::FromGateway;
use lagometer_units::Time;

use crate::core::arena::Arena;
use crate::core::burst_queue::BurstQueue;
use crate::core::bus::ToConnections;
use crate::core::ids::SideId;

use super::outgoing::{Envelope, pack};

/// Messages for the connection managers, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    queue: BurstQueue<(SideId, ToConnections)>,
    /// The connection managers that take part.
    sides: BTreeSet<SideId>,
    body: Vec<u8>,
    head: Vec<u8>,
    /// Messages of the game's own are copied into this.
    arena: Arena,
}

impl Outbound {
    /// Nothing is to go out, and these connection managers take part.
    pub(super) fn restore(sides: BTreeSet<SideId>) -> Self {
        Self {
            sides,
            ..Self::default()
        }
    }

    /// The connection managers that take part: those that have said something.
    pub(super) fn sides(&self) -> &BTreeSet<SideId> {
        &self.sides
    }

    /// A connection manager takes part from now on. Returns whether it did not before.
    pub(super) fn add_side(&mut self, side: SideId) -> bool {
        self.sides.insert(side)
    }

    /// A connection manager takes part no longer.
    pub(super) fn remove_side(&mut self, side: SideId) {
        self.sides.remove(&side);
    }

    /// Sends a message to one connection manager.
    pub(super) fn push(&mut self, side: SideId, message: ToConnections) {
        self.queue.push_back((side, message));
    }

    /// Has all of them accept no client from an address until then.
    pub(super) fn ban(&mut self, address: IpAddr, until: Time) {
        for &side in &self.sides {
            let ban = ToConnections::Ban { address, until };
            self.queue.push_back((side, ban));
        }
    }

    /// The message that was sent first.
    pub(super) fn pop(&mut self) -> Option<(SideId, ToConnections)> {
        self.queue.pop_front()
    }

    /// Encodes a message as one of a packet's.
    pub(super) fn encode(&mut self, envelope: Envelope, message: &FromGateway) -> Bytes {
        let msg_type = message.msg_type() as u32;
        self.encode_with(envelope, msg_type, |body| message.encode_body(body))
    }

    /// Encodes a message whose body `write` appends, as one of a packet's.
    pub(super) fn encode_with(
        &mut self,
        envelope: Envelope,
        msg_type: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Bytes {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        write(&mut body);
        let encoded = self.encode_body(envelope, msg_type, &body);
        self.body = body;
        encoded
    }

    /// Encodes a message with a body that is encoded already, as one of a packet's.
    pub(super) fn encode_body(&mut self, envelope: Envelope, msg_type: u32, body: &[u8]) -> Bytes {
        self.head.clear();
        pack(envelope, msg_type, &[]).encode_head_in_packet(body.len(), &mut self.head);
        self.arena.keep(&[&self.head, body])
    }
}
