//! What the link did: the truth beneath every lane's figures.

use serde::{Deserialize, Serialize};

/// What the link did, the same for every lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Impairments {
    /// From the client to the remote end.
    pub up: DirectionImpairments,
    /// From the remote end to the client.
    pub down: DirectionImpairments,
}

/// What one direction of the link did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionImpairments {
    /// Disturbances in order of their start.
    pub disturbances: Vec<Disturbance>,
    /// Seconds between two samples of the series below.
    pub step_s: f64,
    /// Delay of a packet that meets no queue, at each step.
    pub delay_ms: Vec<f64>,
    /// Probability of losing a packet, at each step, per cent.
    pub loss_pct: Vec<f64>,
    /// Rate of the bottleneck at each step; empty when it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_kbit_per_s: Vec<f64>,
}

/// A stretch of impairment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Disturbance {
    /// What kind: `outage` (drops), `stall` (holds), `burst` (loses).
    pub kind: String,
    /// Start, in seconds since measuring began.
    pub start_s: f64,
    /// End, in seconds since measuring began.
    pub end_s: f64,
}
