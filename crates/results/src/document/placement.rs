//! Where the two ends of an instrument ran, and who decided so.

use serde::{Deserialize, Serialize};

/// Where the two ends ran. On machines whose idle processors sleep deeply, the
/// placement alone can change an echo's rate twentyfold, so no figure goes
/// without it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Placement {
    /// In a few words: `same core`, `cross core`, `left to the scheduler`.
    pub name: String,
    /// The local end's processor; absent where it was left to the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_cpu: Option<u32>,
    /// The remote end's processor; absent where it was left to the scheduler of
    /// its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_cpu: Option<u32>,
    /// The user asked for it; otherwise it was the best of those tried.
    pub asked: bool,
    /// The placements that were tried before measuring, in the order tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<PlacementTrial>,
}

/// A placement that was tried, and what it gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlacementTrial {
    /// In a few words.
    pub name: String,
    /// The local end's processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_cpu: Option<u32>,
    /// The remote end's processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_cpu: Option<u32>,
    /// What it gave: echoes each second for a latency, megabits each second
    /// for a bandwidth.
    pub rate: f64,
}

impl Placement {
    /// Its name with its processors: `same core (processor 3)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let cpus = match (self.near_cpu, self.far_cpu) {
            (Some(local), Some(remote)) if local == remote => format!(" (processor {local})"),
            (Some(local), Some(remote)) => format!(" (processors {local} and {remote})"),
            (Some(local), None) => format!(" (processor {local})"),
            (None, _) => String::new(),
        };
        format!("{}{cpus}", self.name)
    }
}
