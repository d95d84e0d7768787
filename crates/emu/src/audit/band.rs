//! What the emulator's own errors may be in a run that is valid.

use serde::Serialize;

use super::Audit;

/// Limits of the emulator's own errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    /// Median release error, in microseconds.
    pub release_p50_us: f64,
    /// 99th percentile of the release error, in microseconds.
    pub release_p99_us: f64,
    /// How far realised and asked mean delay may be apart, in milliseconds.
    pub mean_delay_ms: f64,
    /// How far realised and asked loss may be apart, in percentage points.
    pub loss_points: f64,
    /// The longest absence of the router, in milliseconds.
    pub absence_ms: f64,
}

impl Default for Band {
    /// Limits below which an error cannot be mistaken for a difference
    /// between transports, whose delays are tens of milliseconds: a tenth of
    /// a millisecond in the middle, one at the edge, one packet in ten
    /// thousand, and no absence half as long as the shortest delay that is
    /// called a lag episode.
    fn default() -> Self {
        Self {
            release_p50_us: 100.0,
            release_p99_us: 1000.0,
            mean_delay_ms: 0.2,
            loss_points: 0.01,
            absence_ms: 50.0,
        }
    }
}

impl Band {
    /// What of `audit` is outside the band, each in a sentence.
    pub(super) fn faults(&self, audit: &Audit) -> Vec<String> {
        let mut faults = Vec::new();
        let error = &audit.release_error_us;
        let mut hold = |value: f64, limit: f64, what: &str, unit: &str| {
            if value > limit {
                faults.push(format!(
                    "{what} {value:.2} {unit}, more than {limit} {unit}"
                ));
            }
        };
        hold(error.p50, self.release_p50_us, "median release error", "us");
        hold(
            error.p99,
            self.release_p99_us,
            "99th percentile of the release error",
            "us",
        );
        hold(
            (audit.realised.delay_ms.mean - audit.asked.delay_ms.mean).abs(),
            self.mean_delay_ms,
            "mean delay differs from what was asked by",
            "ms",
        );
        hold(
            (audit.realised.loss_pct - audit.asked.loss_pct).abs(),
            self.loss_points,
            "loss differs from what was asked by",
            "percentage points",
        );
        hold(
            audit.longest_absence_us / 1000.0,
            self.absence_ms,
            "the router was away for",
            "ms",
        );
        let malformed: u64 = audit
            .lanes
            .iter()
            .map(|lane| lane.up.malformed + lane.down.malformed)
            .sum();
        if malformed > 0 {
            faults.push(format!(
                "{malformed} packets were longer than the MTU or of another length than they said"
            ));
        }
        faults
    }
}
