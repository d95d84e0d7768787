//! What a foreign log says about itself, by its own conventions.

use serde::{Deserialize, Serialize};

/// The statistics of a log of echoes that carries no send times: everything is
/// counted in samples, each standing for one sending interval.
///
/// An *episode* is a maximal run of round trips above three times the median,
/// runs with fewer than five good samples between them being one. It lasts as
/// many sending intervals as it has samples, the good ones within it
/// included. Its *recovery* is counted likewise, from its largest round trip
/// to its end. Quantiles are nearest-rank; the median of an even number of
/// episodes is the longer of the middle two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportedStatistics {
    /// Round trips in the log.
    pub samples: u64,
    /// The sending interval that was assumed, in milliseconds.
    pub spacing_ms: f64,
    /// What the log's clock says, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockSpan>,
    /// Shares of samples above fixed limits.
    pub over: Vec<ShareOver>,
    /// Three times the median, in milliseconds.
    pub threshold_ms: u64,
    /// Number of episodes.
    pub episodes: u64,
    /// Episodes of a second or more.
    pub episodes_from_1s: u64,
    /// Share of all samples that lie in episodes, between 0 and 1.
    pub share_in_episodes: f64,
    /// Median duration of an episode; zero without one, as are all below.
    pub median_episode_ms: f64,
    /// The longest episode.
    pub worst_episode_ms: f64,
    /// Median recovery.
    pub median_recovery_ms: f64,
    /// The longest recovery.
    pub worst_recovery_ms: f64,
    /// Episodes by a fixed threshold of 500 ms.
    pub episodes_500ms: u64,
    /// The longest of those.
    pub worst_episode_500ms_ms: f64,
    /// Lines that were neither round trips nor empty: headers and strays.
    pub stray_lines: u64,
    /// Lines whose own maximum is not that of their round trips.
    pub damaged_lines: u64,
}

/// The time a log covers by its own clock, which has no date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClockSpan {
    /// The first stamp, as `15:09:22`.
    pub first: String,
    /// The last stamp.
    pub last: String,
    /// Seconds from the first stamp to the last.
    pub seconds: u64,
    /// Round trips logged between the two.
    pub samples: u64,
}

impl ClockSpan {
    /// Round trips for each second; none where no time passed.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        (self.seconds > 0).then(|| self.samples as f64 / self.seconds as f64)
    }
}

/// The share of samples above a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShareOver {
    /// The limit in milliseconds.
    pub limit_ms: u32,
    /// The share above it, between 0 and 1.
    pub share: f64,
}
