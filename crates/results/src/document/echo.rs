//! What the instrument `echo` found.

use serde::{Deserialize, Serialize};

use super::{Placement, Quantiles};

/// Echo rate, delay and round trips of one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Echo {
    /// `udp` or `tcp`.
    pub transport: String,
    /// The remote end's address; `own` where the local end started it itself.
    #[serde(alias = "far")]
    pub remote: String,
    /// Payload of a message and of its echo, in bytes.
    pub size_bytes: u32,
    /// Messages on their way at once.
    pub outstanding: u32,
    /// Both ends ask for messages again and again instead of sleeping.
    pub spin: bool,
    /// Seconds that were measured.
    pub measured_s: f64,
    /// Completed echoes for each second measured.
    pub iops: f64,
    /// 1000 / `iops` / 2: the mean one-way delay in milliseconds where one
    /// message is on its way at a time. Null where nothing was echoed.
    pub delay_ms: Option<f64>,
    /// Round trips of completed echoes, from sending to the verified echo.
    pub rtt_ms: Quantiles,
    /// The same in nanoseconds, `HdrHistogram` V2 in base64.
    pub histogram: String,
    /// Messages and what became of them.
    pub messages: EchoCounts,
    /// The processors on which both ends ran.
    pub placement: Placement,
    /// Width of a step of `series`, in seconds.
    pub step_s: f64,
    /// Completed echoes for each second, step by step; of several seeds, their mean.
    pub series: Vec<f64>,
    /// Of several seeds, each one's `iops`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_seed: Vec<SeedValue>,
}

/// What an instrument found under one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeedValue {
    /// The seed.
    pub seed: u64,
    /// The figure, in the unit of the one over all seeds.
    pub value: f64,
}

/// Messages of an echo run and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EchoCounts {
    /// Messages sent; those on their way at the end are not counted.
    pub sent: u64,
    /// Messages whose echo came in time and was verified byte by byte.
    pub echoed: u64,
    /// Messages with no echo within the time-out. Each was followed by
    /// another in its place.
    pub lost: u64,
    /// Echoes of messages that had already been given up or echoed.
    pub late: u64,
    /// Arrivals that are no message of this run: wrong length or content.
    pub corrupt: u64,
    /// Datagrams sent again to wake a path on which nothing moved at all.
    pub nudges: u64,
}
