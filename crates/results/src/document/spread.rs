//! How a lane's figures vary: from seed to seed, or from stretch to stretch of
//! a single run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::resample::{FEWEST_BLOCKS, FEWEST_SEEDS};

use super::{CensoredQuantiles, Game, Lag, MessageCounts, Milliseconds, SeedCost};

/// What is drawn anew as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResampleUnit {
    /// Everything that was played under one seed.
    Seed,
    /// Some seconds of a run.
    #[default]
    Stretch,
}

/// Figures of a run drawn anew many times from its own seeds or stretches:
/// lanes of one run draw the same, so the n-th values of two lanes are a pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resamples {
    /// What was drawn.
    #[serde(default)]
    pub unit: ResampleUnit,
    /// How many of them there are.
    pub blocks: u32,
    /// Length of one in seconds; of seeds that differ, of the longest.
    pub block_s: f64,
    /// For each metric, by its name as in a budget's result, its value in
    /// each draw; null where it was infinite, a quantile that was lost.
    pub values: BTreeMap<String, Vec<Option<f64>>>,
    /// For each metric that adds up what is bad (late or lost messages, lag, freezes), by
    /// its name as in a budget's result, how much of the lane's figure the worst unit
    /// brought, in the metric's unit. Empty in documents before it was known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worst_unit: BTreeMap<String, f64>,
}

impl Resamples {
    /// Whether there are enough independent units to say anything by.
    #[must_use]
    pub const fn suffice(&self) -> bool {
        match self.unit {
            ResampleUnit::Seed => self.blocks as usize >= FEWEST_SEEDS,
            ResampleUnit::Stretch => self.blocks as u64 >= FEWEST_BLOCKS,
        }
    }
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
    /// Lag, without its freezes one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
    /// What a player felt, where the lane carried a game.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<Game>,
    /// Number of lag episodes.
    pub episodes: u64,
    /// The longest episode, in milliseconds.
    pub worst_episode_ms: f64,
    /// Wire overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
    /// What a player's hour takes and costs; absent in documents before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<SeedCost>,
}
