//! What a player of a game felt of a lane, where it carried one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CensoredQuantiles, Milliseconds, Quantiles};

/// What a player felt of a lane that carried a game's traffic: inputs up, snapshots
/// down, events both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Game {
    /// How the game's streams were laid on the transport: `one pipe`, `datagrams`,
    /// `channels`, `stream + datagrams`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub streams: String,
    /// The interpolation delay in milliseconds: how far behind the server's time the client
    /// shows the world, as the fastest snapshots have that time.
    pub interpolation_ms: f64,
    /// Freezes of the view in a minute: stretches of time in which the newest snapshot
    /// was older than the fastest one's way and the interpolation delay, so that there was
    /// nothing to show next.
    pub freezes_per_min: f64,
    /// Seconds of a minute in which the view stood still so.
    pub frozen_s_per_min: f64,
    /// The least interpolation delay, in milliseconds, from which on the view would freeze
    /// at most once a minute.
    pub interpolation_needed_ms: f64,
    /// Freezes of the view in a minute, were the interpolation delay so many milliseconds;
    /// of the delays that budgets ask for alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub freezes_per_min_at: BTreeMap<Milliseconds, f64>,
    /// How old what the client has of the world is: over all the time played, now minus
    /// the simulation time of the newest snapshot.
    pub view_age_ms: Quantiles,
    /// How old the newest input is that the server has, at each of its steps.
    pub input_age_ms: Quantiles,
    /// From an event's intended send to its arrival, of all events both ways; one that
    /// never came is infinitely late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_ms: Option<CensoredQuantiles>,
    /// How many events there were, both ways; absent in documents before it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Share of the events that arrived within so many milliseconds; of the limits that
    /// budgets ask for alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events_within: BTreeMap<Milliseconds, f64>,
    /// Frames that had to be played again when an input came, of the inputs of both
    /// sides, where the game rolls back. An input that never came is infinitely late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_frames: Option<CensoredQuantiles>,
    /// Share of inputs for which the game had to stop and wait, since they would have
    /// rolled it back by more frames than it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_stalled: Option<f64>,
    /// Share of voice frames that never came, or later than a conversation bears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_late: Option<f64>,
}
