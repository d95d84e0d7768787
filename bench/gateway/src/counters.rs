//! What the players of a run have seen.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Counts and distributions that all players of a run fill together.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Whether what arrives counts: not while the players join or leave.
    pub(crate) is_measuring: bool,
    /// Updates of channel data that players received.
    pub(crate) windows: u64,
    /// States in them.
    pub(crate) states: u64,
    /// States that came again, or after a newer one of the same player.
    pub(crate) stale: u64,
    /// States that never came by themselves: merged into newer ones, or lost.
    pub(crate) skipped: u64,
    /// Bytes of channel data.
    pub(crate) data_bytes: u64,
    /// Microseconds between two windows of one player.
    pub(crate) gaps_us: Histogram<u64>,
    /// Microseconds from a state's intended sending to its arrival.
    pub(crate) latency_us: Histogram<u64>,
    /// Microseconds by which the generator sent too late.
    pub(crate) late_us: Histogram<u64>,
    /// Messages of the game's own that arrived.
    pub(crate) user_messages: u64,
    /// Channel data that was none.
    pub(crate) malformed: u64,
    /// What could not be sent, for as much as may wait did already: the gateway did not read.
    pub(crate) unsent: u64,
}

/// A distribution in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// The median.
    pub(crate) p50: f64,
    /// Exceeded by one in a hundred.
    pub(crate) p99: f64,
    /// The worst.
    pub(crate) max: f64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            is_measuring: false,
            windows: 0,
            states: 0,
            stale: 0,
            skipped: 0,
            data_bytes: 0,
            gaps_us: microseconds(),
            latency_us: microseconds(),
            late_us: microseconds(),
            user_messages: 0,
            malformed: 0,
            unsent: 0,
        }
    }
}

/// A histogram from a microsecond to a minute with two digits.
pub(crate) fn microseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 2).expect("bounds are sound")
}

impl From<&Histogram<u64>> for Spread {
    fn from(histogram: &Histogram<u64>) -> Self {
        let ms = |us: u64| us as f64 / 1000.0;
        Self {
            p50: ms(histogram.value_at_quantile(0.5)),
            p99: ms(histogram.value_at_quantile(0.99)),
            max: ms(histogram.max()),
        }
    }
}
