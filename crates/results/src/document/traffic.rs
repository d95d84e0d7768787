//! What each direction of a lane carried, where its messages are not echoes.

use serde::{Deserialize, Serialize};

use super::{CensoredQuantiles, Lasted};

/// What each direction of a lane carried, where messages are not echoed: a recording
/// played again, a stream, or requests and answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Traffic {
    /// What the lane's figures of round trips (`rtt_ms`, `within`, `lag`, `episodes`,
    /// `histogram`) are of.
    pub delay: DelayOf,
    /// From how late on a message is of no use, in milliseconds.
    pub within_ms: f64,
    /// What went from the client to the server; absent where nothing was meant to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Flow>,
    /// What went from the server to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Flow>,
}

/// What a lane's delays are of, where messages are not echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DelayOf {
    /// Of messages of both directions, each from its intended send to its arrival.
    OneWay,
    /// Of requests, each from its intended send until its answer has come whole.
    Answer,
}

/// One direction of a lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flow {
    /// Messages that were meant to be sent.
    pub intended: u64,
    /// Those that arrived.
    pub delivered: u64,
    /// Share of all that were meant to be sent that came while they were of use, between 0
    /// and 1.
    pub on_time: f64,
    /// From the intended send to the arrival; of answers, from the intended send of the
    /// request. One that never came is infinitely late.
    pub delay_ms: CensoredQuantiles,
    /// Freezes in a minute: stretches in which the oldest message newer than all that had
    /// come was due for longer than messages are of use. Pauses below 250 ms are counted
    /// in.
    pub freezes_per_min: f64,
    /// Seconds of a minute in such stretches.
    pub frozen_s_per_min: f64,
    /// The longest freeze; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_freeze: Option<Lasted>,
    /// Payload that came within the time of play, over that time.
    pub kbit_per_s: f64,
}
