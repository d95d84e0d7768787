//! Memory that the kernel is fast to fill and to read.

use std::ops::{Deref, DerefMut};

/// Bytes of a page.
const PAGE: usize = 4096;

/// A buffer that begins in the middle of a page.
///
/// The kernel copies to and from a process by string copies (`rep movsb`). On
/// some processors, Zen 3 among them, these move 3 GB/s in place of 50 where
/// the target lies 1 to 31 bytes behind the source, the distance counted
/// modulo a page. What the kernel keeps of a socket begins on a page or, with
/// headers in front, shortly behind; what an allocator has from the kernel
/// begins 16 bytes behind one. Half a page is far from both.
#[derive(Debug)]
pub struct MidPageBuffer {
    /// Longer by a page than what is used.
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl MidPageBuffer {
    /// So many zeros.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + PAGE];
        let into_page = memory.as_ptr() as usize % PAGE;
        Self {
            memory,
            start: (PAGE + PAGE / 2 - into_page) % PAGE,
            bytes,
        }
    }
}

impl From<&[u8]> for MidPageBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::new(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

/// The copy lies elsewhere, again in the middle of a page.
impl Clone for MidPageBuffer {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl Deref for MidPageBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.bytes]
    }
}

impl DerefMut for MidPageBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_and_its_copies_begin_in_the_middle_of_a_page() {
        for bytes in [0, 1, 100, PAGE, 65_536, 1 << 20] {
            let mut buffer = MidPageBuffer::new(bytes);
            assert_eq!(buffer.len(), bytes);
            buffer.fill(7);
            let copy = buffer.clone();
            assert_eq!(*copy, *buffer);
            for start in [buffer.as_ptr(), copy.as_ptr()] {
                assert_eq!(start as usize % PAGE, PAGE / 2);
            }
        }
    }
}
