//! Buffers that connections write into while they have something to write, used
//! again and again: an idle connection holds none.
//!
//! What an hour of calm does not need is not kept: buffers that nobody took for a
//! while are freed, and one that has grown in a burst shrinks when it comes back
//! from less.

use std::time::Duration;

use lagometer_units::Time;

/// The most that are kept, and how large one may be to be kept.
const MOST: usize = 4096;
const MOST_BYTES: usize = 128 << 10;

/// So often those are freed that nobody took since.
const TRIM_EVERY: Duration = Duration::from_secs(5);

/// A buffer shrinks only where it has so many times the room that it needed, and
/// more than that: others would grow again at once.
const ROOM: usize = 4;
const ROOM_BYTES: usize = 8 << 10;

/// Buffers that nobody uses now.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers {
    /// The one that came last is taken first.
    buffers: Vec<Vec<u8>>,
    /// How many nobody has taken since the last trim: the first.
    idle: usize,
    trim_at: Time,
}

impl SpareBuffers {
    /// An empty one, if there is any.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop();
        self.idle = self.idle.min(self.buffers.len());
        buffer
    }

    /// Takes back an empty one that had at most so many bytes in it.
    pub(super) fn give(&mut self, now: Time, mut buffer: Vec<u8>, used_bytes: usize) {
        if now >= self.trim_at {
            self.trim_at = now + TRIM_EVERY;
            self.buffers.drain(..self.idle);
            self.idle = self.buffers.len();
        }
        let capacity = buffer.capacity();
        if capacity > ROOM_BYTES && capacity / ROOM >= used_bytes {
            buffer.shrink_to(used_bytes.max(ROOM_BYTES) * 2);
        }
        if self.buffers.len() < MOST && buffer.capacity() <= MOST_BYTES {
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One tick: so many connections write so many bytes each.
    fn tick(spare: &mut SpareBuffers, now: Time, connections: usize, bytes: usize) -> usize {
        let mut grown = 0;
        let mut lent: Vec<Vec<u8>> = (0..connections)
            .map(|_| spare.take().unwrap_or_default())
            .collect();
        for mut buffer in lent.drain(..) {
            let before = buffer.capacity();
            buffer.resize(bytes, 0);
            grown += usize::from(buffer.capacity() != before);
            buffer.clear();
            spare.give(now, buffer, bytes);
        }
        grown
    }

    #[test]
    fn what_a_burst_took_is_freed_and_an_even_load_allocates_nothing() {
        let mut spare = SpareBuffers::default();
        let held =
            |spare: &SpareBuffers| -> usize { spare.buffers.iter().map(Vec::capacity).sum() };
        tick(&mut spare, Time::ZERO, 1000, 100 << 10);
        assert!(held(&spare) >= 1000 * (100 << 10));
        let mut grown = 0;
        for ms in (20..60_000).step_by(20) {
            grown = tick(&mut spare, Time::from_millis(ms), 200, 3000);
        }
        assert_eq!(spare.buffers.len(), 200);
        assert!(held(&spare) <= 200 * 2 * ROOM_BYTES, "{}", held(&spare));
        assert_eq!(grown, 0);
    }

    #[test]
    fn windows_of_uneven_size_do_not_shrink_what_the_next_one_needs() {
        let mut spare = SpareBuffers::default();
        let sizes = [40_000, 12_000, 25_000, 11_000];
        tick(&mut spare, Time::ZERO, 10, sizes[0]);
        for (turn, bytes) in (1..1000).zip(sizes.into_iter().cycle()) {
            let grown = tick(&mut spare, Time::from_millis(turn * 20), 10, bytes);
            assert_eq!(grown, 0, "turn {turn}");
        }
    }
}
