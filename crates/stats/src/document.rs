//! The result document: schema `lagometer/1`.
//!
//! Whatever ran, wherever, ends as this document; tables, pages, budgets and
//! comparisons read it and nothing else. Units are in the names: `_ms` is
//! milliseconds, `_s` seconds since measuring began, `_pct` per cent.

use serde::{Deserialize, Serialize};

mod imported;
mod lane;
mod read;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod schema;
mod spread;
mod weather;

pub use imported::{ClockSpan, ImportedStatistics, ShareOver};
pub use lane::{
    Episode, HeadOfLine, Lane, MessageCounts, Milliseconds, Parity, Quantiles, Timeline,
    WITHIN_LIMITS_MS, Wire,
};
pub use read::BadDocument;
pub use spread::{Resamples, SeedFigures};
pub use weather::{DirectionWeather, Disturbance, Weather};

/// The schema's name, as written in every document.
pub const SCHEMA: &str = "lagometer/1";

/// One run and all it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// Always `lagometer/1`.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// What happened.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// Which flag or setting helps.
    pub mend: String,
}
