//! Files kept in reserve, for when the system has none left to give.

use lagometer_platform::Reserve;

/// File descriptors that nothing is done with, so that one can be given up when
/// the process has run out of them and somebody important comes.
#[derive(Debug)]
pub struct SpareFiles {
    files: Vec<Reserve>,
    most: usize,
}

impl SpareFiles {
    /// Keeps so many, or as many as the system gives.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let mut spare = Self {
            files: Vec::new(),
            most,
        };
        spare.refill();
        spare
    }

    /// Takes back those that were given up, as far as there are any to have.
    pub fn refill(&mut self) {
        while self.files.len() < self.most
            && let Ok(file) = Reserve::take()
        {
            self.files.push(file);
        }
    }

    /// Gives one up: the next file that anybody opens may have its place.
    /// Returns whether there was one.
    pub fn give_up(&mut self) -> bool {
        self.files.pop().is_some()
    }
}
