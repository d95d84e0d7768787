//! Buffers used again: in the steady state no segment costs an allocation.
//!
//! The one freed first is used first. A large window is then written and read
//! in the order in which it lies in memory, lap after lap, which the processor
//! foresees; the other way round each lap would run against the last.

use std::collections::VecDeque;

/// A queue of empty buffers.
#[derive(Debug)]
pub(crate) struct Pool {
    free: VecDeque<Vec<u8>>,
    most: usize,
}

impl Pool {
    /// A pool that keeps at most `most` buffers.
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            free: VecDeque::new(),
            most,
        }
    }

    /// Changes how many buffers are kept.
    pub(crate) fn keep(&mut self, most: usize) {
        self.most = most;
        self.free.truncate(most);
    }

    /// An empty buffer with room for `bytes`.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        match self.free.pop_front() {
            Some(mut buffer) => {
                buffer.reserve(bytes);
                buffer
            }
            None => Vec::with_capacity(bytes),
        }
    }

    /// Takes a buffer back.
    #[inline]
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() != 0 && self.free.len() < self.most {
            buffer.clear();
            self.free.push_back(buffer);
        }
    }
}
