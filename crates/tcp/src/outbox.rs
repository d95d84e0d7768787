//! Packets that wait to be polled: as many as a device's queue takes.

use std::collections::VecDeque;

/// A queue that drops what finds no room (Linux's `pfifo` of `txqueuelen` packets).
#[derive(Debug)]
pub(crate) struct Outbox {
    packets: VecDeque<Vec<u8>>,
    limit: usize,
    overflows: u64,
}

impl Outbox {
    /// At most `limit` packets.
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            packets: VecDeque::new(),
            limit,
            overflows: 0,
        }
    }

    /// Takes a packet, unless there is no room for it.
    pub(crate) fn push(&mut self, packet: Vec<u8>) {
        if self.packets.len() < self.limit {
            self.packets.push_back(packet);
        } else {
            self.overflows += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    /// Packets that found no room so far.
    pub(crate) const fn overflows(&self) -> u64 {
        self.overflows
    }
}
