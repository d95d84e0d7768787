//! What one lane did, in whatever testbed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lagometer_results::{FlowRecords, GameRecords, MessageRecord};
use lagometer_transport::Closed;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::workload::Misdeliveries;

/// What a lane did.
#[derive(Clone, Debug)]
pub struct LaneOutcome {
    /// One record for each message, with times from the start of measuring.
    pub records: Vec<MessageRecord>,
    /// What it put on the wire.
    pub wire: WireCounts,
    /// What became of a game's other streams, where it carried one.
    pub game: Option<GameRecords>,
    /// What became of each direction's messages, where they were not echoed.
    pub flows: Option<FlowRecords>,
    /// Bytes of all messages that the transport took at both ends.
    pub payload_bytes: u64,
    /// What no transport should have let through.
    pub misdeliveries: Misdeliveries,
    /// When the connection stood, from the beginning of the lead-in.
    pub ready_at: Option<Time>,
    /// How it ended; `None` if it was stopped on the way.
    pub end: Option<LaneEnd>,
    /// What it cost, where it ran in real time.
    pub cost: Option<Cost>,
    /// Who used its link, where others did or its queue has a discipline. Lanes
    /// that share a link share this.
    pub bottleneck: Option<Arc<BottleneckUse>>,
}

/// Who used a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BottleneckUse {
    /// How long it was watched.
    pub measured: Duration,
    /// How long a step of [`PartyUse::waiting_bytes`] is.
    pub step: Duration,
    /// Up and down.
    pub ways: [WayUse; 2],
}

/// Who used one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayUse {
    /// Lanes, then other traffic, in their orders.
    pub parties: Vec<PartyUse>,
    /// How long all other traffic with data in this direction was on, of what may be
    /// on at all while measuring.
    pub together: Duration,
}

/// What one party did in one direction while measuring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartyUse {
    /// The lane's name or the other traffic's.
    pub name: String,
    /// Whether it has data to send in this direction.
    pub contends: bool,
    /// Packets that left the queue for the wire.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Those of them that left while all other traffic was on ([`WayUse::together`]).
    pub bytes_together: u64,
    /// Packets dropped on the way in or from the queue.
    pub dropped: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Bytes that its receiver got, each once, where that is known.
    pub goodput_bytes: Option<u64>,
    /// Bytes it had waiting on average in each step.
    pub waiting_bytes: Vec<u64>,
}

/// How a lane ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneEnd {
    /// Every message was sent and came back, or the grace period is over.
    Done,
    /// The connection was not there when measuring was to start.
    NeverReady,
    /// The connection was lost on the way.
    Died(Closed),
    /// The endpoint asked to be woken without end at one instant: a defect of
    /// the endpoint.
    NoProgress,
}

/// What a lane put on the wire since measuring started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Packets offered to the link, client to server.
    pub up_packets: u64,
    /// Packets offered to the link, server to client.
    pub down_packets: u64,
    /// Bytes offered to the link both ways, IP and UDP/TCP headers included.
    pub bytes: u64,
    /// Of them, those of the time of play.
    pub play: PlayBytes,
    /// Packets that did not get through, by reason.
    pub dropped: BTreeMap<Cow<'static, str>, u64>,
}

/// Bytes that a lane put on the wire in its time of play, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayBytes {
    /// Client to server.
    pub up: u64,
    /// Server to client.
    pub down: u64,
    /// How long that was.
    pub over: Duration,
}

impl std::ops::AddAssign for PlayBytes {
    fn add_assign(&mut self, other: Self) {
        self.up += other.up;
        self.down += other.down;
        self.over += other.over;
    }
}

/// What a lane's two sides cost this machine while measuring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of the two threads that played it, system calls included.
    pub cpu: Duration,
    /// CPU time of the kernel's for it beside its threads, delivering its packets; none
    /// where the testbed cannot separate it from others'.
    pub kernel_cpu: Option<Duration>,
    /// CPU time of threads its library ran of its own.
    pub library_cpu: Duration,
    /// Of all that, what the server's side used: its thread, its library's threads, and the
    /// kernel's part in delivering packets to it, where that is known.
    pub server_cpu: Duration,
    /// System calls that moved data or looked for it, both sides; 0 where
    /// they are not known.
    pub system_calls: u64,
    /// How bytes got to the wire and back, in a few words.
    pub path: String,
}

impl std::ops::AddAssign<&Self> for Cost {
    fn add_assign(&mut self, other: &Self) {
        self.cpu += other.cpu;
        if let Some(more) = other.kernel_cpu {
            *self.kernel_cpu.get_or_insert_default() += more;
        }
        self.library_cpu += other.library_cpu;
        self.server_cpu += other.server_cpu;
        self.system_calls += other.system_calls;
        self.path.clone_from(&other.path);
    }
}
