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
    /// The local end's processor, counted from 0; absent where it was left to the
    /// scheduler. `near_cpu` in documents from before it had this name.
    #[serde(default, alias = "near_cpu", skip_serializing_if = "Option::is_none")]
    pub local_cpu: Option<u32>,
    /// The remote end's processor, counted from 0; absent where it was left to the
    /// scheduler of its machine. `far_cpu` in documents from before it had this name.
    #[serde(default, alias = "far_cpu", skip_serializing_if = "Option::is_none")]
    pub remote_cpu: Option<u32>,
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
    /// In a few words, as [`Placement::name`].
    pub name: String,
    /// The local end's processor, as [`Placement::local_cpu`].
    #[serde(default, alias = "near_cpu", skip_serializing_if = "Option::is_none")]
    pub local_cpu: Option<u32>,
    /// The remote end's processor, as [`Placement::remote_cpu`].
    #[serde(default, alias = "far_cpu", skip_serializing_if = "Option::is_none")]
    pub remote_cpu: Option<u32>,
    /// What it gave: echoes each second for a latency, megabits each second
    /// for a bandwidth.
    pub rate: f64,
}

impl Placement {
    /// Its name with its processors: `same core (processor 3)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let cpus = match (self.local_cpu, self.remote_cpu) {
            (Some(local), Some(remote)) if local == remote => format!(" (processor {local})"),
            (Some(local), Some(remote)) => format!(" (processors {local} and {remote})"),
            (Some(local), None) => format!(" (processor {local})"),
            (None, _) => String::new(),
        };
        format!("{}{cpus}", self.name)
    }
}
