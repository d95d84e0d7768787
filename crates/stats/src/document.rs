//! The result document: schema `lagometer/1`.
//!
//! Whatever ran, wherever, ends as this document; tables, pages, budgets and
//! comparisons read it and nothing else. Units are in the names: `_ms` is
//! milliseconds, `_s` seconds since measuring began, `_pct` per cent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The schema's name, as written in every document.
pub const SCHEMA: &str = "lagometer/1";

/// One run and all it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The command that made it: `run`, `import`, …
    pub command: String,
    /// Where the lanes ran: `sim`, `emu`, `net`; absent for imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testbed: Option<String>,
    /// The first seed.
    pub seed: u64,
    /// Every seed played, in order; one entry for a single run.
    pub seeds: Vec<u64>,
    /// The run was cut short; figures cover what was played.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// Seconds of wall-clock time the run took.
    pub wall_s: f64,
    /// The machine.
    pub host: Host,
    /// The experiment as resolved, defaults filled in.
    pub experiment: serde_json::Value,
    /// What the link did, where that is known: the truth of the first seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weather: Option<Weather>,
    /// The transports under test, in the order asked for.
    pub lanes: Vec<Lane>,
    /// Budgets and whether they were met.
    #[serde(default)]
    pub budgets: Vec<BudgetResult>,
    /// The one-sentence answer to the experiment's question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What a reader should know before trusting the figures.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// The machine a run was made on and how noisy it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system family.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Logical processors.
    pub cpus: u32,
    /// The machine's noise floor, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
}

/// A machine's noise floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// How late a sleeping thread wakes, in microseconds.
    pub wake_us: NoiseQuantiles,
    /// Share of a spinning thread's time lost to gaps, per cent.
    pub steal_pct: f64,
}

/// Two quantiles of a noise figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseQuantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// What the link did, the same for every lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weather {
    /// From the client to the far end.
    pub up: DirectionWeather,
    /// From the far end to the client.
    pub down: DirectionWeather,
}

/// What one direction of the link did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionWeather {
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

/// A stretch of bad weather.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// What kind: `outage` (drops), `stall` (holds), `burst` (loses).
    pub kind: String,
    /// Start, in seconds since measuring began.
    pub start_s: f64,
    /// End, in seconds since measuring began.
    pub end_s: f64,
}

/// One transport under test and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The lane's name; unique within the document.
    pub lane: String,
    /// The transport's name.
    pub transport: String,
    /// Every setting, defaults filled in.
    pub settings: serde_json::Value,
    /// The library and its version, as in `quinn-proto 0.11.19`.
    pub library: String,
    /// What the transport promises and what it costs, for a fair reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// Why the lane could not be measured or ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Messages and what became of them.
    pub messages: MessageCounts,
    /// Round trips from the intended send time (no coordinated omission).
    pub rtt_ms: Quantiles,
    /// Round trips from the moment the transport took the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_raw_ms: Option<Quantiles>,
    /// One-way delay to the far end, from the intended send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_ms: Option<Quantiles>,
    /// One-way delay of the echo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_ms: Option<Quantiles>,
    /// Head-of-line blocking, where the transport can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_of_line: Option<HeadOfLine>,
    /// Share of all intended messages whose echo arrived within so many
    /// milliseconds (the key), between 0 and 1. Lost messages count as late.
    pub within: BTreeMap<Milliseconds, f64>,
    /// Lag episodes: above max(3 × median, 100 ms).
    pub episodes: Vec<Episode>,
    /// Lag episodes above a fixed 500 ms.
    pub episodes_500ms: Vec<Episode>,
    /// What the lane put on the wire, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// CPU time for each message, both ends; depends on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_message: Option<f64>,
    /// The corrected round trips in nanoseconds, `HdrHistogram` V2 in base64.
    pub histogram: String,
    /// Round trips over time, bounded in size whatever the run's length.
    pub timeline: Timeline,
    /// The same figures for each seed, where several were played.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_seed: Vec<SeedFigures>,
    /// How the figures of a single seed vary with the luck of its weather;
    /// absent with several seeds and for runs too short to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resamples: Option<Resamples>,
}

/// A key of [`Lane::within`]: a limit in milliseconds, sorted as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Milliseconds(pub u32);

/// The limits, in milliseconds, for which [`Lane::within`] gives shares.
pub const WITHIN_LIMITS_MS: [u32; 8] = [50, 100, 150, 200, 300, 500, 1000, 2000];

/// What a transport promises and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parity {
    /// Whether every message arrives while the connection lives.
    pub reliable: bool,
    /// Whether messages arrive in the order sent.
    pub ordered: bool,
    /// Whether the wire is encrypted.
    pub encrypted: bool,
    /// Largest datagram the transport makes, with IP and UDP/TCP headers.
    pub mtu_bytes: u32,
    /// Bytes on the wire beyond the payload for one message that fits one
    /// datagram, IP and UDP/TCP headers included.
    pub header_bytes: u32,
    /// When acknowledgements are sent, in a few words.
    pub acks: String,
    /// Congestion control, in a few words.
    pub congestion_control: String,
}

/// Messages and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Delay that complete messages waited for earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub struct Wire {
    /// Packets offered to the link.
    pub packets: u64,
    /// Bytes offered to the link, IP and UDP/TCP headers included.
    pub bytes: u64,
    /// Bytes over payload bytes of all intended messages and echoes sent.
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

/// Figures of one run drawn anew many times from its own stretches: lanes of
/// one run draw the same stretches, so the n-th values of two lanes are a
/// pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resamples {
    /// How many stretches the run was cut into.
    pub blocks: u32,
    /// Length of a stretch in seconds.
    pub block_s: f64,
    /// For each metric, by its name as in [`BudgetResult::metric`], its value
    /// in each draw.
    pub values: BTreeMap<String, Vec<f64>>,
}

/// One seed's figures for one lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedFigures {
    /// The seed.
    pub seed: u64,
    /// Messages and what became of them.
    pub messages: MessageCounts,
    /// Round trips from the intended send time.
    pub rtt_ms: Quantiles,
    /// As [`Lane::within`].
    pub within: BTreeMap<Milliseconds, f64>,
    /// Number of lag episodes.
    pub episodes: u64,
    /// The longest episode, in milliseconds.
    pub worst_episode_ms: f64,
    /// Wire overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
}

/// A budget held against a lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetResult {
    /// The lane.
    pub lane: String,
    /// What was limited, as in `within_150ms` or `rtt_ms.p99`.
    pub metric: String,
    /// The limit: a share between 0 and 1, milliseconds, or a plain number,
    /// as the metric is.
    pub limit: f64,
    /// What was measured, in the limit's unit. Null when there is no such
    /// number: more messages were lost than the quantile allows for, or the
    /// lane has no such figure. The budget is then missed.
    pub value: Option<f64>,
    /// Whether the budget was met.
    pub ok: bool,
}

/// What a reader should know before trusting a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What happened.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// Which flag or setting helps.
    pub mend: String,
}
