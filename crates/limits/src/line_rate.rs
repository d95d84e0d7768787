//! Log lines of one kind, held to a rate: what peers can cause without end is
//! not to become lines without end.

use std::time::Duration;

/// Decides which lines of one kind are written, and counts the others.
///
/// Times are counted from any instant, always the same.
#[derive(Clone, Copy, Debug)]
pub struct LineRate {
    lines_per_s: u32,
    second: u64,
    written: u32,
    left_out: u64,
}

impl LineRate {
    /// So many lines in each second of the clock.
    #[must_use]
    pub const fn new(lines_per_s: u32) -> Self {
        Self {
            lines_per_s,
            second: 0,
            written: 0,
            left_out: 0,
        }
    }

    /// There is a line to be written. `None` if it is to be left out; otherwise
    /// how many were since the last that was written.
    pub fn due(&mut self, now: Duration) -> Option<u64> {
        self.turn_to(now);
        if self.written >= self.lines_per_s {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }

    /// How many lines were left out in seconds that are over, if any were and
    /// that was not reported yet: a flood may end with them.
    pub fn take_left_out(&mut self, now: Duration) -> Option<u64> {
        if self.second == now.as_secs() || self.left_out == 0 {
            return None;
        }
        self.turn_to(now);
        Some(std::mem::take(&mut self.left_out))
    }

    /// Whether lines were left out that were not reported yet.
    #[must_use]
    pub fn has_left_out(&self) -> bool {
        self.left_out > 0
    }

    fn turn_to(&mut self, now: Duration) {
        if self.second != now.as_secs() {
            self.second = now.as_secs();
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_so_many_lines_a_second_and_the_rest_is_counted() {
        let mut rate = LineRate::new(3);
        let mut reported = Vec::new();
        for ms in 0..2_500 {
            reported.extend(rate.due(Duration::from_millis(ms)));
        }
        assert_eq!(reported, [0, 0, 0, 997, 0, 0, 997, 0, 0]);
        // It ends: what was left out last is reported with the next second.
        assert!(rate.has_left_out());
        assert_eq!(rate.take_left_out(Duration::from_millis(2_999)), None);
        assert_eq!(rate.take_left_out(Duration::from_secs(3)), Some(497));
        assert_eq!(rate.take_left_out(Duration::from_secs(9)), None);
    }
}
