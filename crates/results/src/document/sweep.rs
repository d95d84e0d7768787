//! What the instrument `sweep` found: latency and bandwidth by message size.

use serde::{Deserialize, Serialize};

use super::{Placement, Quantiles, SeedValue};

/// Latency and bandwidth by message size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// The remote end's address; `own` where the local end started it itself.
    #[serde(alias = "far")]
    pub remote: String,
    /// TCP's congestion control, as the system names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Seconds each cell was measured.
    pub cell_s: f64,
    /// One for each test and size, in the order measured.
    pub cells: Vec<Cell>,
}

/// One test at one message size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// `tcp_lat`, `tcp_bw`, `udp_lat`, `udp_bw`; with `_batched` behind it
    /// where many messages share a system call.
    pub test: String,
    /// Bytes of a message.
    pub size_bytes: u32,
    /// How messages were handed over, in a few words: `one write each`,
    /// `sendmmsg`, `GSO and GRO`, …
    pub method: String,
    /// Where both ends ran.
    pub placement: Placement,
    /// Why the cell has no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// One-way latency in microseconds: half of the mean round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// The round trips behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Quantiles>,
    /// The same in nanoseconds, `HdrHistogram` V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Payload handed to the system, in 10⁶ bits for each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_mbit_per_s: Option<f64>,
    /// Payload received and verified byte by byte, in 10⁶ bits for each
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_mbit_per_s: Option<f64>,
    /// Messages sent; in a latency test, those answered or given up.
    pub sent: u64,
    /// Messages received and verified; in a latency test, those answered.
    pub received: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that overtook others or came twice.
    pub disordered: u64,
    /// Arrivals of wrong length or content.
    pub corrupt: u64,
    /// Of several seeds, each one's `latency_us`, or `recv_mbit_per_s` in a bandwidth
    /// test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_seed: Vec<SeedValue>,
}
