//! The round-trip estimator and the retransmission timeout drawn from it.

use crate::rules::{RtoMargin, RttSampling};

/// The longest retransmission timeout before backoff, in milliseconds.
const LONGEST_RTO_MS: u32 = 60_000;
/// The timeout before the first sample, in milliseconds.
pub const FIRST_RTO_MS: u32 = 200;

/// Smoothed round-trip time, its deviation, and the timeout.
///
/// The arithmetic is the reference's to the bit, its integer divisions and,
/// on absurd samples (an acknowledgement forged with an ancient timestamp),
/// its wrap-around included.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    smoothed: i32,
    deviation: i32,
    timeout: u32,
    shortest: u32,
    margin: RtoMargin,
    sampling: RttSampling,
}

impl RoundTrip {
    pub(crate) fn new(shortest_ms: u32, margin: RtoMargin, sampling: RttSampling) -> Self {
        Self {
            smoothed: 0,
            deviation: 0,
            timeout: FIRST_RTO_MS,
            shortest: shortest_ms,
            margin,
            sampling,
        }
    }

    /// Takes a sample of `rtt` milliseconds. `interval` is the time between
    /// two flushes, below which the reference does not let the margin fall.
    pub(crate) fn sample(&mut self, rtt: i32, interval: u32) {
        // A smoothed value of zero means "no sample yet", and so a path of
        // less than a millisecond stays at its first sample.
        if self.smoothed == 0 {
            self.smoothed = rtt;
            // Never negative: the same as kcp-go's shift.
            self.deviation = rtt / 2;
        } else if self.sampling == RttSampling::LastInDatagram {
            self.smooth_by_shifts(rtt);
        } else {
            // The reference computes this sum in `long`, after a product in
            // `int`.
            let error = (i64::from(rtt) - i64::from(self.smoothed)).abs();
            let weighted = i64::from(self.deviation.wrapping_mul(3));
            self.deviation = ((weighted + error) / 4) as i32;
            self.smoothed = self.smoothed.wrapping_mul(7).wrapping_add(rtt) / 8;
            self.smoothed = self.smoothed.max(1);
        }
        let least = match self.margin {
            RtoMargin::Interval => interval,
            RtoMargin::OneMillisecond => 1,
        };
        let margin = self.deviation.wrapping_mul(4).cast_unsigned().max(least);
        let timeout = self.smoothed.cast_unsigned().wrapping_add(margin);
        // Not `clamp`: a floor above the ceiling is not an error here.
        self.timeout = timeout.max(self.shortest).min(LONGEST_RTO_MS);
    }

    /// kcp-go's `update_ack`: a sample far below the mean says that the path
    /// got better, not that it varies.
    fn smooth_by_shifts(&mut self, rtt: i32) {
        let difference = rtt.wrapping_sub(self.smoothed);
        self.smoothed = self.smoothed.wrapping_add(difference >> 3);
        let error = difference.wrapping_abs().wrapping_sub(self.deviation);
        let is_low = rtt < self.smoothed.wrapping_sub(self.deviation);
        let step = error >> if is_low { 5 } else { 2 };
        self.deviation = self.deviation.wrapping_add(step);
    }

    /// The timeout for a segment sent now, in milliseconds.
    #[inline]
    pub(crate) const fn timeout_ms(&self) -> u32 {
        self.timeout
    }

    /// The smoothed round-trip time in milliseconds; 0 before the first
    /// sample.
    pub(crate) const fn smoothed_ms(&self) -> u32 {
        self.smoothed.cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_samples() {
        let mut path = RoundTrip::new(30, RtoMargin::Interval, RttSampling::default());
        assert_eq!(path.timeout_ms(), 200);
        path.sample(40, 10);
        // 40 + 4 * 20
        assert_eq!(path.timeout_ms(), 120);
        for _ in 0..50 {
            path.sample(40, 10);
        }
        assert_eq!(path.timeout_ms(), 50, "the interval is the least margin");
        let mut old = RoundTrip::new(30, RtoMargin::OneMillisecond, RttSampling::default());
        for _ in 0..50 {
            old.sample(40, 10);
        }
        assert_eq!(old.timeout_ms(), 41);
    }

    #[test]
    fn absurd_samples_do_not_panic() {
        let mut path = RoundTrip::new(30, RtoMargin::Interval, RttSampling::default());
        for rtt in [i32::MAX, 0, i32::MAX, i32::MAX, 1] {
            path.sample(rtt, 10);
            assert!(path.timeout_ms() <= LONGEST_RTO_MS);
        }
    }
}
