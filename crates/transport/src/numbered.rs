//! Datagrams that carry one message each behind a checksum and a number: the
//! wire of the plainest transports.
//!
//! A datagram is a CRC-32 bound to the connection, a 32-bit sequence number
//! (both little-endian) and the message. The number serves only to drop
//! duplicates.

use std::time::Duration;

use crate::Message;
use crate::byte_queue::ByteQueue;
use crate::integrity::{CHECK_BYTES, Integrity};
use crate::replay_window::ReplayWindow;

/// Checksum and sequence number.
pub(crate) const HEADER_BYTES: usize = CHECK_BYTES + 4;

/// Makes datagrams of messages.
#[derive(Debug)]
pub(crate) struct NumberedSender {
    outbound: Integrity,
    next_sequence: u32,
}

impl NumberedSender {
    /// Numbers from 0 on.
    pub(crate) const fn new(outbound: Integrity) -> Self {
        Self {
            outbound,
            next_sequence: 0,
        }
    }

    /// The datagram of `message`, under the next number. The number is not used
    /// up before [`sent`](Self::sent).
    pub(crate) fn datagram(&self, message: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(HEADER_BYTES + message.len());
        datagram.extend_from_slice(&[0; CHECK_BYTES]);
        datagram.extend_from_slice(&self.next_sequence.to_le_bytes());
        datagram.extend_from_slice(message);
        self.outbound.seal(&mut datagram);
        datagram
    }

    /// The datagram was taken: the next gets another number.
    pub(crate) const fn sent(&mut self) {
        self.next_sequence = self.next_sequence.wrapping_add(1);
    }
}

/// Makes messages of datagrams, each once, and keeps them until they are read.
#[derive(Debug)]
pub(crate) struct NumberedReceiver {
    inbound: Integrity,
    seen: ReplayWindow,
    arrived: ByteQueue<Message>,
}

impl NumberedReceiver {
    /// Keeps up to `buffer_bytes` of messages; what arrives beyond is dropped.
    pub(crate) const fn new(inbound: Integrity, buffer_bytes: usize) -> Self {
        Self {
            inbound,
            seen: ReplayWindow::new(),
            arrived: ByteQueue::new(buffer_bytes),
        }
    }

    /// Takes in what came from the wire. What is not the peer's, or was there
    /// before, changes nothing.
    pub(crate) fn handle_datagram(&mut self, datagram: &[u8]) {
        let Some(body) = self.inbound.open(datagram) else {
            return;
        };
        let Some((sequence, message)) = body.split_first_chunk() else {
            return;
        };
        if self.seen.accept(u32::from_le_bytes(*sequence)) {
            self.arrived.push(Message {
                bytes: message.to_vec(),
                blocked: Some(Duration::ZERO),
            });
        }
    }

    /// The next message that has arrived.
    pub(crate) fn receive(&mut self) -> Option<Message> {
        self.arrived.pop()
    }
}
