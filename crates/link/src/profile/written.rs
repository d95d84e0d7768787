//! A profile as people write it: the keys of its TOML file and their types.

use std::fmt;
use std::str::FromStr;

use lagometer_units::{BadQuantity, Rate, Share, Size, Span};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::cross::{self, Cross};
pub use super::queue::{DisciplineName, ManagedQueue, QueueWritten};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// What the network is, in one sentence.
    pub summary: String,
    /// What holds in both directions.
    #[serde(default, skip_serializing_if = "Way::is_empty")]
    pub both: Way,
    /// What holds from the player to the server, key by key instead of `both`.
    #[serde(default, skip_serializing_if = "Way::is_empty")]
    pub up: Way,
    /// What holds from the server to the player, key by key instead of `both`.
    #[serde(default, skip_serializing_if = "Way::is_empty")]
    pub down: Way,
    /// Other traffic that comes with the network.
    #[serde(
        default,
        deserialize_with = "cross::listed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cross: Vec<Cross>,
}

/// How one direction behaves, or both do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The one-way delay nothing can undercut. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Extra delay that varies. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterWritten>,
    /// The share of packets lost independently of each other. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Share>,
    /// Loss in bursts, after Gilbert and Elliott. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// What passes in a second. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What may wait for the rate or the end of a stall. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueWritten>,
    /// Packets that arrive twice. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplication: Option<Duplication>,
    /// Packets that are overtaken. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// The share of packets that arrive damaged. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corruption: Option<Share>,
    /// Times in which everything that enters is dropped. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Spell>,
    /// Times in which nothing is served and everything waits. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Spell>,
    /// Extra delay that is drawn anew again and again. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// The largest IP packet that passes. Default: any passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// What becomes of larger ones. Default: they vanish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversize: Option<Oversize>,
    /// A recording that says rate (and, in this project's own format, delay
    /// and loss) over time; a file's name relative to the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Extra delay that varies, in `0..=maximum`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterWritten {
    /// How it is distributed.
    pub distribution: DistributionName,
    /// The most it can be. What a distribution has beyond is drawn again
    /// inside: the distribution is truncated, not clipped.
    pub maximum: Option<Span>,
    /// The mean before truncation (normal, pareto).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Span>,
    /// The standard deviation before truncation (normal).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Span>,
    /// How heavy the tail is (pareto): above 1, heavier the closer to 1.
    /// Default: 3, as in netem's table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// For how long the extra delay stays alike (its autocorrelation falls to
    /// 1/e). Default: each packet draws for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Span>,
    /// Whether a packet may overtake another because of its jitter. Default:
    /// no; a late packet then holds back those behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reorder: bool,
}

/// The distributions of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DistributionName {
    /// No jitter, where the other direction or `both` has some.
    None,
    /// Even between zero and the maximum.
    Uniform,
    /// The bell curve.
    Normal,
    /// Lomax: Pareto's, starting at zero.
    Pareto,
}

/// Gilbert and Elliott's two states, as lengths of time: both last
/// exponentially long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// The mean length of the good state, in which every run begins.
    pub mean_good: Span,
    /// The mean length of the bad state.
    pub mean_bad: Span,
    /// The share lost in the bad state.
    pub loss_bad: Share,
    /// The share lost in the good state. Default: none.
    #[serde(default)]
    pub loss_good: Share,
}

/// The bound of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueBound {
    /// So many bytes.
    Size(Size),
    /// As many bytes as the direction's rate carries in a time.
    Span(Span),
}

/// Packets that arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duplication {
    /// The share of packets copied.
    pub share: Share,
    /// How long after the first the copy arrives. Default: at once.
    #[serde(default)]
    pub apart: Span,
}

/// Packets that are overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// The share of packets held back.
    pub share: Share,
    /// For how long, while those behind pass.
    pub extra: Span,
}

/// One rule for outages or stalls: at a given time (`at`, perhaps `every`), once in
/// each period from a time that the seed draws (`every` alone) or after random gaps
/// (`mean_gap`); for a given time (`for`), an even draw (`for` to `up_to`) or an
/// exponential one (`mean_for`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spell {
    /// When the first one starts, counted from the start of the impairments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Span>,
    /// How long after its start the next one starts. Default: there is none. Without
    /// `at` the first one starts, by the seed, anywhere within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// The mean of the exponentially distributed times between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_gap: Option<Span>,
    /// How long it lasts, or the shortest it lasts.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// The longest it lasts: the length is even between `for` and this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Span>,
    /// The mean of an exponentially distributed length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_for: Option<Span>,
}

/// Extra delay that is drawn anew again and again, evenly between nothing and
/// `extra`: the path changes, as from satellite to satellite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// How long one path lasts.
    pub every: Span,
    /// The most that a path's delay adds.
    pub extra: Span,
}

/// What becomes of packets larger than the MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Oversize {
    /// They vanish without a word, as in a path MTU black hole.
    #[default]
    Vanish,
    /// The sender is notified.
    Refuse,
}

impl Way {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for QueueBound {
    type Err = BadQuantity;

    fn from_str(written: &str) -> Result<Self, BadQuantity> {
        match written.parse() {
            Ok(span) => Ok(Self::Span(span)),
            Err(_) => written.parse().map(Self::Size),
        }
    }
}

impl fmt::Display for QueueBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(formatter),
            Self::Span(span) => span.fmt(formatter),
        }
    }
}

impl<'de> Deserialize<'de> for QueueBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        written.parse().map_err(|_| {
            D::Error::custom(format!(
                "`{written}` is neither a size (B, KB, MB, KiB, MiB) nor a time \
                 (ns, us, ms, s, min, h); write a queue as \"64 KiB\" or \"100 ms\""
            ))
        })
    }
}

impl Serialize for QueueBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
