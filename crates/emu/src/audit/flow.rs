//! How much passed in how long: the mean rate, and the highest over a short
//! while.

use std::time::Duration;

use lagometer_units::Time;

/// The while over which the highest rate is taken.
const WHILE: Duration = Duration::from_millis(100);

/// Bytes as they pass, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    bytes: u64,
    first: Option<Time>,
    last: Time,
    while_number: u64,
    while_bytes: u64,
    most_in_a_while: u64,
}

impl Flow {
    /// `bytes` pass at `now`. An instant before the latest so far counts as
    /// the latest.
    pub(crate) fn pass(&mut self, now: Time, bytes: usize) {
        let bytes = bytes as u64;
        self.last = self.last.max(now);
        self.first.get_or_insert(now);
        self.bytes += bytes;
        let number = self.last.as_nanos() / WHILE.as_nanos() as u64;
        if number != self.while_number {
            self.while_number = number;
            self.while_bytes = 0;
        }
        self.while_bytes += bytes;
        self.most_in_a_while = self.most_in_a_while.max(self.while_bytes);
    }

    /// The mean rate from the first to the last of it, in Mbit/s; zero for
    /// less than a tenth of a second.
    pub(crate) fn mean_mbit_per_s(&self) -> f64 {
        let lasted = self.last.since(self.first.unwrap_or(self.last));
        if lasted < WHILE {
            return 0.0;
        }
        self.bytes as f64 * 8.0 / lasted.as_secs_f64() / 1e6
    }

    /// The highest rate over a tenth of a second, in Mbit/s.
    pub(crate) fn peak_mbit_per_s(&self) -> f64 {
        self.most_in_a_while as f64 * 8.0 / WHILE.as_secs_f64() / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_raises_the_peak_more_than_the_mean() {
        let mut flow = Flow::default();
        for tenth in 0..=10 {
            flow.pass(Time::from_millis(tenth * 100), 1250);
        }
        flow.pass(Time::from_millis(1050), 11_250);
        assert!((flow.peak_mbit_per_s() - 1.0).abs() < 1e-9);
        assert!((flow.mean_mbit_per_s() - 0.2).abs() < 0.02);
    }
}
