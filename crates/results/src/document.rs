//! The result document: schema `lagometer/2`.
//!
//! Whatever ran, wherever, ends as this document; tables, pages, budgets and
//! comparisons read it and nothing else. Units are in the names: `_ms` is
//! milliseconds, `_s` seconds since measuring began, `_pct` per cent.

use serde::{Deserialize, Serialize};

mod asked;
mod audit;
mod bottleneck;
mod bulk;
mod cost;
mod echo;
mod game;
mod impairments;
mod imported;
mod lag;
mod lane;
mod placement;
mod presets;
mod read;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod schema;
mod spread;
mod sweep;
mod traffic;
mod tune;
mod upgrade;
mod world;

pub use asked::Asked;
pub use audit::{Audit, AuditFigures, AuditSpread, LaneAudit, WayAudit};
pub use bottleneck::{Bottleneck, BottleneckSender, BottleneckWay};
pub use bulk::{Bulk, BulkSample};
pub use cost::{Money, PlayerCost, SeedCost};
pub use echo::{Echo, EchoCounts, SeedValue};
pub use game::Game;
pub use impairments::{DirectionImpairments, Disturbance, Impairments};
pub use imported::{ClockSpan, ImportedStatistics, ShareOver};
pub use lag::{Freeze, Lag, Lasted};
pub use lane::{
    CensoredQuantiles, Episode, HeadOfLine, Lane, MessageCounts, Milliseconds, Population,
    Quantiles, Timeline, TransportProperties, WITHIN_LIMITS_MS, Wire,
};
pub use placement::{Placement, PlacementTrial};
pub use read::BadDocument;
pub use spread::{ResampleUnit, Resamples, SeedFigures};
pub use sweep::{Cell, Sweep};
pub use traffic::{DelayOf, Flow, Traffic};
pub use tune::{
    Tune, TuneFinding, TuneLevel, TuneNetwork, TunePoint, TuneSensitivity, TuneTransfer,
    TunedFigure, TunedLane,
};
pub use world::{
    Frames, GatewayMetrics, GatewayMoment, Generator, Handovers, Players, Sight, World,
    WorldMoment, WorldPath, WorldProcess, WorldTier, WorldWay,
};

/// The schema's name, as written in every document.
pub const SCHEMA: &str = "lagometer/2";

/// The schema before, which is still read: its quantiles of round trips left
/// lost messages out.
pub const OLDER_SCHEMA: &str = "lagometer/1";

/// One run and all it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// Always `lagometer/2`.
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
    /// What the command line named, where that was a file or another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// What the link did, where that is known: the truth of the first seed.
    /// `weather` in documents from before it had this name.
    #[serde(default, alias = "weather", skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
    /// The transports under test, in the order asked for.
    pub lanes: Vec<Lane>,
    /// The links that had several senders, or a queue with a discipline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bottlenecks: Vec<Bottleneck>,
    /// What `echo` found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Echo>,
    /// What `sweep` found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// What the emulator says of its own work, for a run in `emu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// What `world` found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<World>,
    /// What `world` found where it played several: one for each transport of
    /// players on each network and each number of players.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worlds: Vec<World>,
    /// What `tune` found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune: Option<Tune>,
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

impl Document {
    /// A document of `command` in which nothing has been found yet, of no run and no
    /// machine.
    #[must_use]
    pub fn empty(command: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            command: command.to_owned(),
            testbed: None,
            seed: 0,
            seeds: Vec::new(),
            partial: false,
            started: String::new(),
            wall_s: 0.0,
            host: Host::default(),
            experiment: serde_json::Value::Null,
            asked: None,
            impairments: None,
            lanes: Vec::new(),
            bottlenecks: Vec::new(),
            echo: None,
            sweep: None,
            audit: None,
            world: None,
            worlds: Vec::new(),
            tune: None,
            budgets: Vec::new(),
            verdict: None,
            warnings: Vec::new(),
        }
    }
}

/// The machine a run was made on and how noisy it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Noise {
    /// How late a sleeping thread wakes, in microseconds.
    pub wake_us: NoiseQuantiles,
    /// Share of a spinning thread's time lost to gaps, per cent.
    pub steal_pct: f64,
    /// What else was measured, since documents have a place for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<NoiseFloor>,
}

/// What is beneath a machine's noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseFloor {
    /// Which clock the kernel reads, as in `tsc`; empty where it does not say.
    pub clock_source: String,
    /// Nanoseconds to read the clock.
    pub clock_read_ns: f64,
    /// Nanoseconds for the simplest system call.
    pub system_call_ns: f64,
    /// By how much the kernel may put off a thread's timers, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_us: Option<f64>,
    /// By how much sleeps of 50 µs are exceeded with the least timer slack, in
    /// microseconds.
    pub short_sleep_us: NoiseQuantiles,
    /// From one thread to another that sleeps on the same processor, in
    /// microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_same_core_us: Option<NoiseQuantiles>,
    /// The same across processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_cross_core_us: Option<NoiseQuantiles>,
    /// The longest time that a spinning thread did not run, in microseconds.
    pub longest_gap_us: f64,
    /// Small datagrams that one thread sends and receives over loopback in a
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_loopback_per_s: Option<f64>,
    /// Share of the machine's time that its host took, as far as the kernel
    /// knows, per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_pct: Option<f64>,
}

/// Two quantiles of a noise figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseQuantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A budget held against a lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BudgetResult {
    /// The name of the lane that was checked.
    pub lane: String,
    /// What was limited, as in `within_150ms` or `rtt_ms.p99`.
    pub metric: String,
    /// The limit: a share between 0 and 1, milliseconds, or a plain number,
    /// as the metric is.
    pub limit: f64,
    /// What was measured, in the limit's unit. Null when there is no such
    /// number: more messages were lost than the quantile allows for, or the
    /// lane has no such figure.
    pub value: Option<f64>,
    /// The lane was played and has no such figure, as a lane that carried no game has none
    /// of events: neither met nor missed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmeasured: bool,
    /// The value is what was seen of something whose end was not, as of a freeze at the
    /// end of play. Below the limit that is neither met nor missed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Whether what was measured is within the limit, whatever chance had to
    /// do with it.
    pub ok: bool,
    /// What can be said beyond chance.
    #[serde(default)]
    pub decision: Decision,
    /// Lower end of the figure's own 95 % interval, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end; absent, too, where it reaches what was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// How many more seeds as long as those played would decide it in four
    /// runs of five; absent where it is decided, or where nothing would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_seeds: Option<u32>,
    /// Where nothing is known yet of how the figure varies, or too little was played for it to
    /// be said to be kept: how many more seeds are needed before anything can be said, which
    /// may not decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewest_more_seeds: Option<u32>,
}

impl BudgetResult {
    /// What would decide it, as a sentence has it: `1 more seed`, `some 12 more seeds`, `at
    /// least 3 more seeds`; `None` where it is decided, or where no number is known.
    #[must_use]
    pub fn needs(&self) -> Option<String> {
        let fewest = self.fewest_more_seeds.map(fewest_more_seeds_in_words);
        fewest.or_else(|| self.more_seeds.map(more_seeds_in_words))
    }
}

pub(crate) fn more_seeds_in_words(seeds: u32) -> String {
    match seeds {
        1 => "1 more seed".to_owned(),
        _ => format!("some {seeds} more seeds"),
    }
}

pub(crate) fn fewest_more_seeds_in_words(seeds: u32) -> String {
    let plural = if seeds == 1 { "" } else { "s" };
    format!("at least {seeds} more seed{plural}")
}

/// What a run says of a budget beyond chance. All budgets of a run together
/// are decided wrongly at most once in forty runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The limit is kept.
    Met,
    /// Chance may have made it either.
    #[default]
    Undecided,
    /// The limit is not kept.
    Missed,
}

/// What a reader should know before trusting a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// What happened.
    pub what: String,
    /// What the warning means for the figures.
    pub why: String,
    /// The flag or setting that avoids it; empty where none does.
    pub mend: String,
}
