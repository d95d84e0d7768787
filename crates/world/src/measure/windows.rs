//! Whether a player's windows came when they should.

use std::time::Duration;

use hdrhistogram::Histogram;
use lagometer_units::Time;

/// The times between the windows of one channel that one player received.
#[derive(Clone, Debug)]
pub struct Windows {
    last: Option<Time>,
    /// Microseconds between two.
    gaps_us: Histogram<u32>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            last: None,
            gaps_us: empty(),
        }
    }
}

/// Two significant digits are enough for a gap, and thousands of players have
/// a histogram each; it grows with the longest gap.
fn empty() -> Histogram<u32> {
    let mut gaps_us = Histogram::new(2).unwrap_or_else(|_| unreachable!("two digits are allowed"));
    gaps_us.auto(true);
    gaps_us
}

impl Windows {
    /// A window has come.
    pub fn note(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            let gap_us = now.since(last).as_micros() as u64;
            // It grows as needed, so every gap has room.
            let _ = self.gaps_us.record(gap_us);
        }
    }

    /// How many gaps were seen.
    #[must_use]
    pub fn gaps(&self) -> u64 {
        self.gaps_us.len()
    }

    /// The gap that `share` of all gaps, 0 to 1, do not exceed; `None` before
    /// there are any.
    #[must_use]
    pub fn gap(&self, share: f64) -> Option<Duration> {
        (self.gaps() > 0).then(|| Duration::from_micros(self.gaps_us.value_at_quantile(share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_between_windows() {
        let mut windows = Windows::default();
        assert_eq!(windows.gap(0.5), None);
        for at_ms in [100, 120, 140, 200] {
            windows.note(Time::from_nanos(at_ms * 1_000_000));
        }
        assert_eq!(windows.gaps(), 3);
        let gap = |share| windows.gap(share).unwrap().as_millis();
        assert!((20..=20).contains(&gap(0.5)), "{}", gap(0.5));
        assert!((60..=61).contains(&gap(1.0)), "{}", gap(1.0));
    }
}
