//! One transport under test and everything that was found about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Bulk, Game, ImportedStatistics, Lag, PlayerCost, Resamples, SeedFigures, Traffic};

/// One transport under test and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lane {
    /// The lane's name; unique within the document.
    pub lane: String,
    /// The transport's name.
    pub transport: String,
    /// The family of transports with one promise, as in `quic-datagram`, where the run
    /// played presets of families; the lane's name is the family's and a preset's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Of which of the family's presets it has the settings, as in `game`: of several
    /// where they are the same, and it was played once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<String>,
    /// Every setting, defaults filled in.
    pub settings: serde_json::Value,
    /// The library and its version, as in `quinn-proto 0.11.19`.
    pub library: String,
    /// What the transport promises and what it costs, for a fair reading. `parity` in
    /// documents from before it had this name.
    #[serde(default, alias = "parity", skip_serializing_if = "Option::is_none")]
    pub properties: Option<TransportProperties>,
    /// Why the lane could not be measured or ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Messages and what became of them.
    pub messages: MessageCounts,
    /// Round trips from the intended send time (no coordinated omission) of
    /// all intended messages, lost ones being infinitely late.
    pub rtt_ms: CensoredQuantiles,
    /// The same of the messages that were delivered, for charts of what
    /// arrived. Says nothing of what did not.
    #[serde(default)]
    pub rtt_delivered_ms: Quantiles,
    /// Round trips of delivered messages from the moment the transport took
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_raw_ms: Option<Quantiles>,
    /// One-way delay to the remote end, from the intended send time, of all
    /// intended messages; absent where the remote end's arrivals are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_ms: Option<CensoredQuantiles>,
    /// One-way delay of the echo, of all messages that reached the remote end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_ms: Option<CensoredQuantiles>,
    /// Shares of delays of one way, of ages and of rollbacks that are within limits which
    /// budgets have on their quantiles, by the name of the metric; shares of events and of
    /// round trips are elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shares_within: BTreeMap<String, f64>,
    /// Head-of-line blocking, where the transport reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_of_line: Option<HeadOfLine>,
    /// Share of all intended messages whose echo arrived within so many
    /// milliseconds (the key), between 0 and 1. Lost messages count as late.
    pub within: BTreeMap<Milliseconds, f64>,
    /// Lag by the threshold of the experiment, which is the same for every
    /// lane: what lanes are ranked by. Absent in documents that are older, and
    /// where no threshold is known, as of imported logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
    /// What a player felt, where the lane carried a game. Its messages are the inputs
    /// then, and the echo of one is the first snapshot that shows its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<Game>,
    /// What each direction carried, where messages were not echoed. It says what figures of
    /// round trips are of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Lag episodes: above max(3 × median, 100 ms). The threshold is the lane's
    /// own, so a lane that is always late has few: nothing is ranked by them.
    pub episodes: Vec<Episode>,
    /// Lag episodes above a fixed 500 ms.
    pub episodes_500ms: Vec<Episode>,
    /// What the lane put on the wire, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// What a player's hour takes of the network and of a server, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<PlayerCost>,
    /// CPU time for each message, both ends; depends on the machine. With the kernel's
    /// share where `kernel_cpu_ns_per_message` says how much that is; else of the
    /// lane's own threads alone, their system calls included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_message: Option<f64>,
    /// Of it, what the kernel used beside the lane's threads for delivering its packets:
    /// protocols up to the socket, and what they sent in answer at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_cpu_ns_per_message: Option<f64>,
    /// CPU time for each message of threads that the library runs of its own,
    /// not counted in the former.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_cpu_ns_per_message: Option<f64>,
    /// System calls for each message, both ends, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls_per_message: Option<f64>,
    /// How bytes got to the wire and back, over real sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_path: Option<String>,
    /// The corrected round trips in nanoseconds: `HdrHistogram` V2, compressed,
    /// in base64. Older documents have it uncompressed.
    pub histogram: String,
    /// Round trips over time, bounded in size whatever the run's length.
    pub timeline: Timeline,
    /// The same figures for each seed, where several were played.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_seed: Vec<SeedFigures>,
    /// How the figures vary with the luck of the network conditions: drawn anew from the
    /// seeds, or from the stretches of a run of fewer than five; absent for
    /// runs too short to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resamples: Option<Resamples>,
    /// What a foreign log says, by that log's own conventions, where the lane
    /// was imported from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedStatistics>,
    /// What a bulk transfer found, where the lane was one. Its messages have
    /// no echoes then, and all that speaks of round trips is empty.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Bulk>,
}

/// A key of [`Lane::within`]: a limit in milliseconds, sorted as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Milliseconds(pub u32);

/// The limits, in milliseconds, for which [`Lane::within`] gives shares.
pub const WITHIN_LIMITS_MS: [u32; 8] = [50, 100, 150, 200, 300, 500, 1000, 2000];

/// What a transport promises and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TransportProperties {
    /// Whether every message arrives while the connection lives.
    pub reliable: bool,
    /// Whether messages arrive in the order sent.
    pub ordered: bool,
    /// Where what was sent behind a lost message waits for it, in a few words. Empty
    /// where it is not known.
    #[serde(default)]
    pub head_of_line: String,
    /// Whether the wire is encrypted.
    pub encrypted: bool,
    /// Largest datagram the transport makes, with IP and UDP/TCP headers.
    pub mtu_bytes: u32,
    /// Bytes on the wire beyond the payload for one message that fits one
    /// datagram, IP and UDP/TCP headers included.
    pub header_bytes: u32,
    /// When acknowledgements are sent, in a few words.
    pub acks: String,
    /// What it costs on the wire to answer after the turn in which a message was
    /// taken in, in a few words. Empty where it is not known.
    #[serde(default)]
    pub late_answer: String,
    /// Congestion control, in a few words.
    pub congestion_control: String,
    /// How long a silent peer is kept, in a few words. Empty where it is not known.
    #[serde(default)]
    pub peer_timeout: String,
    /// What of it cannot be set, and so not be made equal to other lanes', in a few
    /// words. Empty where it is not known.
    #[serde(default)]
    pub fixed: String,
    /// What of its packets is another whenever the same seed is played again in virtual
    /// time, in a few words; their sizes and times, and so what is found, are the same.
    /// Absent where every byte is the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub varies: String,
}

/// Messages and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MessageCounts {
    /// Messages the workload meant to send.
    pub intended: u64,
    /// Messages the transport took.
    pub sent: u64,
    /// Messages whose echo arrived.
    pub delivered: u64,
    /// Messages whose echo did not.
    pub lost: u64,
    /// Messages the transport refused at least once.
    pub refused: u64,
}

/// Nearest-rank quantiles in the unit the field's name gives. All zero when
/// nothing was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
}

/// Of which messages quantiles are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Population {
    /// All that were meant to be sent; a lost one is infinitely late.
    #[default]
    Intended,
    /// All that reached the remote end; one whose echo was lost is infinitely
    /// late.
    Arrived,
    /// Those whose echo came back and no others, as documents of
    /// `lagometer/1` have it.
    Delivered,
}

impl Population {
    /// What a document means that does not say.
    const fn unsaid() -> Self {
        Self::Delivered
    }
}

/// Nearest-rank quantiles in the unit the field's name gives, of messages some
/// of which may be infinitely late. Null is one that lies among those, and
/// everything is null where there was no message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CensoredQuantiles {
    /// Of which messages.
    #[serde(default = "Population::unsaid")]
    pub of: Population,
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
}

/// Delay that complete messages waited for earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeadOfLine {
    /// Messages that waited at all.
    pub blocked_messages: u64,
    /// Share of all delay above the lane's median that was such waiting;
    /// the rest is retransmission, queueing and the path itself.
    pub share_of_late_delay: f64,
    /// How long the messages that waited did so.
    pub blocked_ms: Quantiles,
}

/// A stretch of play in which messages came late or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Episode {
    /// The seed in whose run it happened, where several were played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Start: the first late message's intended send, in seconds since
    /// measuring began.
    pub start_s: f64,
    /// To the last arrival among its late messages. A lost message is over
    /// when a later one arrives, or at the last intended send of the run.
    pub duration_ms: f64,
    /// The worst round trip in it; absent when every message was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_ms: Option<f64>,
    /// Messages late or lost in it.
    pub messages: u64,
    /// Messages lost in it.
    pub lost: u64,
    /// From the end of the disturbance that caused it to its own end, where
    /// the link's truth is known and such a disturbance exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_ms: Option<f64>,
}

/// What a lane put on the wire, both directions together unless named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Wire {
    /// Packets offered to the link.
    pub packets: u64,
    /// Bytes offered to the link, IP and UDP/TCP headers included.
    pub bytes: u64,
    /// Bytes of the time of play over payload bytes of all intended messages and echoes
    /// sent.
    pub overhead: f64,
    /// Packets offered client to server.
    pub up_packets: u64,
    /// Packets offered server to client.
    pub down_packets: u64,
    /// Packets the link did not deliver, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// Round trips over time, in buckets of equal width by intended send time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Timeline {
    /// Width of a bucket in seconds.
    pub step_s: f64,
    /// Smallest round trip in each bucket; null where nothing arrived.
    pub min_ms: Vec<Option<f64>>,
    /// Largest round trip in each bucket; null where nothing arrived.
    pub max_ms: Vec<Option<f64>>,
    /// Messages lost in each bucket.
    pub lost: Vec<u32>,
}
