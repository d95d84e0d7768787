//! Who shared a link: what each of its senders got through its bottleneck and
//! had waiting in its queue.

use serde::{Deserialize, Serialize};

/// One link that had several senders, or a queue with a discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bottleneck {
    /// The lanes that were on it.
    pub lanes: Vec<String>,
    /// From the player to the server.
    pub up: BottleneckWay,
    /// From the server to the player.
    pub down: BottleneckWay,
}

/// One direction of such a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BottleneckWay {
    /// Who sent in this direction: lanes, then other traffic.
    pub senders: Vec<BottleneckSender>,
    /// Jain's index of the rates of those whom the link limits: 1 where all got
    /// the same, 1/n where one of n got all. It limits who got less than they asked
    /// for, and who took at least an equal share beside them. Reckoned over the time
    /// in which all other traffic with data here is on. Absent where there is no such
    /// time, or those are fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// Seconds between two samples of what was waiting.
    pub step_s: f64,
}

/// One of those who sent in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BottleneckSender {
    /// The lane's name, or the other traffic's.
    pub name: String,
    /// Whether it had data to send here, and not acknowledgements alone.
    pub contends: bool,
    /// IP packets that passed the bottleneck while measuring, all seeds together.
    pub packets: u64,
    /// Those that the link dropped: in its queue, by chance or in an outage.
    pub dropped: u64,
    /// Those that were marked with "congestion experienced".
    pub marked: u64,
    /// What passed the bottleneck in a second of measuring, headers included.
    pub kbit_per_s: f64,
    /// What other traffic's receiver got in a second, each byte once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_kbit_per_s: Option<f64>,
    /// Bytes it had waiting in the queue on average in each step, of the first
    /// seed.
    pub waiting_bytes: Vec<u64>,
}

impl BottleneckSender {
    /// The share of its packets that the link dropped.
    #[must_use]
    pub fn dropped_share(&self) -> f64 {
        share(self.dropped, self.packets.saturating_add(self.dropped))
    }

    /// The share of those that passed that were marked.
    #[must_use]
    pub fn marked_share(&self) -> f64 {
        share(self.marked, self.packets)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
