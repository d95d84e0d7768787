//! What a bulk transfer found: the fields of a lane of `lagometer speed`.

use serde::{Deserialize, Serialize};

use super::SeedValue;

/// A bulk transfer over one transport, one direction, every byte compared with
/// what was sent. Rates are of payload, in 10^6 bits per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bulk {
    /// What the transport took from the sender, over the time in which it was
    /// offered.
    pub send_mbit_per_s: f64,
    /// What arrived whole and right, from the first arrival to the last.
    pub recv_mbit_per_s: f64,
    /// What the sender meant to send, where it kept to a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_mbit_per_s: Option<f64>,
    /// Bytes of one message.
    pub chunk_bytes: u64,
    /// Time from one message to the next in microseconds, where there was a
    /// clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_us: Option<f64>,
    /// Seconds in which messages were offered.
    pub offered_s: f64,
    /// Bytes that the transport took.
    pub sent_bytes: u64,
    /// Bytes that arrived whole and right.
    pub received_bytes: u64,
    /// Share of the bytes sent that did not arrive, per cent.
    pub loss_pct: f64,
    /// Messages that arrived once more.
    pub duplicates: u64,
    /// Messages that arrived after one sent later.
    pub reordered: u64,
    /// Messages that arrived with another length or other bytes than were
    /// sent.
    pub damaged: u64,
    /// Processor time of the sending thread for 10^9 bytes received, in the
    /// kernel too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_cpu_s_per_gb: Option<f64>,
    /// The same of the receiving thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_cpu_s_per_gb: Option<f64>,
    /// How the bytes went through the kernel: `gso+gro`, `mmsg`, `plain`; or
    /// TCP's congestion control.
    pub path: String,
    /// System calls of both ends that moved data, or found that none could
    /// be moved.
    pub system_calls: u64,
    /// UDP datagrams sent by both ends; none for TCP.
    pub datagrams: u64,
    /// The rates as they went; of several seeds, their mean.
    pub series: Vec<BulkSample>,
    /// Of several seeds, each one's `recv_mbit_per_s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_per_seed: Vec<SeedValue>,
}

/// Rates of one stretch of a bulk transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BulkSample {
    /// The end of the stretch, in seconds since the first message was taken.
    pub t_s: f64,
    /// What the transport took within it.
    pub send_mbit_per_s: f64,
    /// What arrived within it.
    pub recv_mbit_per_s: f64,
}
