//! Packets in the order they came.

use std::collections::VecDeque;

use super::Waiting;

/// Packets in the order they came, and their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.packet.bytes;
        self.packets.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= waiting.packet.bytes;
        Some(waiting)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}
