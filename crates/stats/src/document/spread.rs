//! How a lane's figures vary: from seed to seed, or from stretch to stretch of
//! a single run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CensoredQuantiles, MessageCounts, Milliseconds};

/// Figures of one run drawn anew many times from its own stretches: lanes of
/// one run draw the same stretches, so the n-th values of two lanes are a
/// pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resamples {
    /// How many stretches the run was cut into.
    pub blocks: u32,
    /// Length of a stretch in seconds.
    pub block_s: f64,
    /// For each metric, by its name as in a budget's result, its value in
    /// each draw; null where it was infinite, a quantile that was lost.
    pub values: BTreeMap<String, Vec<Option<f64>>>,
}

/// One seed's figures for one lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeedFigures {
    /// The seed.
    pub seed: u64,
    /// Messages and what became of them.
    pub messages: MessageCounts,
    /// Round trips from the intended send time, of all intended messages.
    pub rtt_ms: CensoredQuantiles,
    /// Share of all intended messages within so many milliseconds, as for
    /// the lane.
    pub within: BTreeMap<Milliseconds, f64>,
    /// Number of lag episodes.
    pub episodes: u64,
    /// The longest episode, in milliseconds.
    pub worst_episode_ms: f64,
    /// Wire overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
}
