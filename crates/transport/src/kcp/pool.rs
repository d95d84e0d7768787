//! Buffers used again, the most recently freed first: in the steady state no
//! segment costs an allocation, and a small window stays within a small cache.

/// A stack of empty buffers.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
    most: usize,
}

impl Pool {
    /// A pool that keeps at most `most` buffers.
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            free: Vec::new(),
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
        match self.free.pop() {
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
            self.free.push(buffer);
        }
    }
}
