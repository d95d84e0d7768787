//! Buffers used again: in the steady state no segment costs an allocation.
//!
//! The one freed first is used first. A large window is then written and read
//! in the order in which it lies in memory, lap after lap, which the processor
//! foresees; the other way round each lap would run against the last.

use std::collections::VecDeque;

/// A queue of empty buffers.
#[derive(Debug)]
pub struct Pool {
    free: VecDeque<Vec<u8>>,
    most: usize,
    held_bytes: usize,
}

impl Pool {
    /// A pool that keeps at most `most` buffers.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            free: VecDeque::new(),
            most,
            held_bytes: 0,
        }
    }

    /// Bytes of memory that the empty buffers take.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes + self.free.capacity() * size_of::<Vec<u8>>()
    }

    /// Changes how many buffers are kept.
    pub(crate) fn keep(&mut self, most: usize) {
        self.most = most;
        self.free.truncate(most);
        self.held_bytes = self.free.iter().map(Vec::capacity).sum();
    }

    /// An empty buffer with room for `bytes`.
    #[inline]
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        match self.free.pop_front() {
            Some(mut buffer) => {
                self.held_bytes -= buffer.capacity();
                buffer.reserve(bytes);
                buffer
            }
            None => Vec::with_capacity(bytes),
        }
    }

    /// Takes a buffer back.
    #[inline]
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() != 0 && self.free.len() < self.most {
            buffer.clear();
            self.held_bytes += buffer.capacity();
            self.free.push_back(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted() {
        let mut pool = Pool::new(2);
        for bytes in [100, 200, 300] {
            pool.give(Vec::with_capacity(bytes));
        }
        assert_eq!(pool.held_bytes, 300, "the third was not kept");
        assert!(pool.held_bytes() >= 300, "and room for the list of them");
        let taken = pool.take(1000);
        assert_eq!(pool.held_bytes, 200);
        pool.give(taken);
        pool.keep(1);
        assert_eq!(pool.held_bytes, 200);
    }
}
