//! How many packets are taken from a port at a time.

use lagometer_units::Time;

/// How many packets are taken from one port before others have their turn and
/// what is due is released.
pub(super) const BATCH: usize = 16;

/// How many packets a port is expected to have, so that it need not be read once more
/// to learn that it has no further one: reading in vain costs as much as a packet does
/// in virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    expected: usize,
    /// When as many as expected were last taken, or are to be.
    at: Option<Time>,
}

impl Burst {
    pub(super) const fn new() -> Self {
        Self {
            expected: 1,
            at: None,
        }
    }

    /// How many to take at `now`: twice as many as before where the port had more.
    pub(super) fn batch_at(&mut self, now: Time) -> usize {
        if self.at.replace(now) == Some(now) {
            self.expected = (self.expected * 2).min(BATCH);
        }
        self.expected
    }

    /// The port had so many and no further one.
    pub(super) fn ended_after(&mut self, taken: usize) {
        self.expected = taken.max(1);
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_one_packet_at_a_time_are_read_once_and_others_in_batches() {
        let mut burst = Burst::new();
        for ms in 0..10 {
            assert_eq!(burst.batch_at(Time::from_millis(ms)), 1);
        }
        let now = Time::from_millis(10);
        let batches: Vec<usize> = (0..6).map(|_| burst.batch_at(now)).collect();
        assert_eq!(batches, [1, 2, 4, 8, BATCH, BATCH]);
        burst.ended_after(3);
        assert_eq!(burst.batch_at(now), 3);
        burst.ended_after(0);
        assert_eq!(burst.batch_at(now), 1);
    }
}
