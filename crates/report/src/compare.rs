//! Two runs side by side: what changed for each lane, and what did not.
//!
//! A difference is called one only where chance could not have made it.
//!
//! - Runs that met the same network conditions (same seeds, same network, virtual time)
//!   are compared pair by pair, see [`lagometer_results::difference`](lagometer_results::difference()):
//!   the 95 % interval of the differences must leave out zero.
//! - Other runs must differ by more than both vary by themselves: half the
//!   range over the seeds or, of a single seed, half the middle 95 % of its
//!   stretches drawn anew.
//! - No difference may be smaller than the figure's resolution or, where lanes
//!   ran in real time, than what the machines' late wake-ups can do.
//!
//! Of what is left, as the worst round trip of a single seed, nothing shows what chance
//! does: such figures are equal, or it cannot be known, and that is said. That there is no
//! difference is said only where chance is known.

use lagometer_results::{Document, Lane, SCHEMA, difference, noise_ms};
use lagometer_stats::nearest_rank;
use thiserror::Error;

use crate::about::About;
use crate::figure::{Figure, Unit};
use crate::trust;

/// Histograms keep three significant digits.
const RESOLUTION: f64 = 1e-3;

/// Two documents cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CannotCompare {
    /// A document is of a schema this program does not know.
    #[error("{which} is of schema `{found}`; this program compares `{SCHEMA}`")]
    Schema {
        /// `the first document` or `the second document`.
        which: &'static str,
        /// The schema it names.
        found: String,
    },
    /// No lane has the same name in both.
    #[error("no lane is in both documents: the first has {first}, the second {second}")]
    NothingInCommon {
        /// Lanes of the first document.
        first: String,
        /// Lanes of the second document.
        second: String,
    },
}

/// What changed from one document to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What makes the two runs unlike each other before any lane is looked
    /// at: another experiment, network, seed, testbed.
    pub differences: Vec<String>,
    /// The lanes in both, in the order of the first document.
    pub lanes: Vec<LaneChange>,
    /// Lanes only the first document has.
    pub only_in_first: Vec<String>,
    /// Lanes only the second document has.
    pub only_in_second: Vec<String>,
    /// Both runs met the same network conditions, so their lanes are compared pair by
    /// pair.
    pub paired: bool,
    /// Both runs played several seeds.
    pub several_seeds: bool,
    /// The limit for "delivered within", in milliseconds.
    pub limit_ms: u32,
}

/// What changed for one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneChange {
    /// The lane's name.
    pub lane: String,
    /// Its key figures, in the order of the main table.
    pub changes: Vec<Change>,
    /// Settings, library or promises differ, in words.
    pub differences: Vec<String>,
}

/// One figure of one lane in both documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub(crate) figure: Figure,
    /// In the first document.
    pub before: f64,
    /// In the second document.
    pub after: f64,
    /// What chance could have made of the difference.
    pub chance: Chance,
    /// Which way the figure went.
    pub direction: Direction,
}

/// What chance could have made of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chance {
    /// The difference is between these in 95 of 100 draws; it is one where
    /// zero is not.
    Interval(f64, f64),
    /// Up to this, either way.
    UpTo(f64),
    /// It is not known.
    Unknown,
}

/// Which way a figure went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No difference beyond chance.
    Same,
    /// The figures are the same as far as they resolve, but nothing shows what chance
    /// does.
    Equal,
    /// For the better.
    Better,
    /// For the worse.
    Worse,
    /// The figures differ, but nothing shows whether by chance.
    Unknown,
}

/// Compares `second` with `first`, lane by lane.
///
/// # Errors
///
/// [`CannotCompare`] when a document is of another schema, or when they have
/// no lane in common.
pub fn compare(first: &Document, second: &Document) -> Result<Comparison, CannotCompare> {
    for (document, which) in [
        (first, "the first document"),
        (second, "the second document"),
    ] {
        if document.schema != SCHEMA {
            return Err(CannotCompare::Schema {
                which,
                found: document.schema.clone(),
            });
        }
    }
    let limit_ms = About::of(first).limit_ms;
    let pair = Pair::of(first, second);
    let lanes: Vec<LaneChange> = first
        .lanes
        .iter()
        .filter_map(|a| Some((a, named(second, &a.lane)?)))
        .map(|(a, b)| LaneChange {
            lane: a.lane.clone(),
            changes: changes(&pair, a, b, limit_ms),
            differences: lane_differences(a, b),
        })
        .collect();
    if lanes.is_empty() {
        return Err(CannotCompare::NothingInCommon {
            first: names(first, |_| true).join(", "),
            second: names(second, |_| true).join(", "),
        });
    }
    Ok(Comparison {
        differences: run_differences(first, second),
        lanes,
        only_in_first: names(first, |lane| named(second, &lane.lane).is_none()),
        only_in_second: names(second, |lane| named(first, &lane.lane).is_none()),
        paired: pair.same_conditions,
        several_seeds: first.seeds.len() > 1 && second.seeds.len() > 1,
        limit_ms,
    })
}

fn named<'a>(document: &'a Document, name: &str) -> Option<&'a Lane> {
    document.lanes.iter().find(|lane| lane.lane == name)
}

fn names(document: &Document, wanted: impl Fn(&Lane) -> bool) -> Vec<String> {
    document
        .lanes
        .iter()
        .filter(|lane| wanted(lane))
        .map(|lane| lane.lane.clone())
        .collect()
}

/// What two runs have in common that bears on their differences.
struct Pair {
    same_conditions: bool,
    /// What the machines can add to a delay, both runs together.
    machines_ms: f64,
}

impl Pair {
    fn of(first: &Document, second: &Document) -> Self {
        let virtual_time = |document: &Document| document.testbed.as_deref() == Some("sim");
        Self {
            same_conditions: virtual_time(first)
                && virtual_time(second)
                && first.seeds == second.seeds
                && first.impairments.is_some()
                && first.impairments == second.impairments
                && shares_alike(first, second),
            machines_ms: noise_ms(first) + noise_ms(second),
        }
    }

    /// What `figure` cannot be told apart by, whatever chance does.
    fn floor(&self, figure: Figure, (first, second): (&Lane, &Lane), sizes: f64) -> f64 {
        let fewest = first.messages.intended.min(second.messages.intended).max(1);
        match figure.unit() {
            Unit::Milliseconds => sizes * RESOLUTION / 2.0 + self.machines_ms,
            Unit::Share => 0.5 / fewest as f64,
            Unit::Factor | Unit::Nanoseconds => sizes * RESOLUTION / 2.0,
            Unit::Count | Unit::PerMinute => 0.0,
        }
    }
}

/// Whether the links of both runs carried the same besides a lane of its own: the same
/// other traffic, and the same lanes where all share one link.
fn shares_alike(first: &Document, second: &Document) -> bool {
    let of = |key: &str| [first, second].map(|document| document.experiment.get(key));
    let [cross, other_cross] = of("cross");
    let [shared, other_shared] = of("shared");
    let [lanes, other_lanes] = of("lanes");
    let is_shared = shared.and_then(serde_json::Value::as_bool) == Some(true);
    cross == other_cross && shared == other_shared && (!is_shared || lanes == other_lanes)
}

fn changes(pair: &Pair, first: &Lane, second: &Lane, limit_ms: u32) -> Vec<Change> {
    [Figure::Within(limit_ms)]
        .into_iter()
        .chain(Figure::OF_LANES)
        .chain(Figure::OF_GAMES)
        .filter(|figure| !is_old(*figure) || first.lag.is_none() || second.lag.is_none())
        .filter_map(|figure| change(pair, figure, first, second))
        .collect()
}

/// Whether the figure is compared only with documents that know no other of
/// lag.
const fn is_old(figure: Figure) -> bool {
    matches!(figure, Figure::Episodes | Figure::LongestEpisode)
}

fn change(pair: &Pair, figure: Figure, first: &Lane, second: &Lane) -> Option<Change> {
    let (before, after) = (figure.of(first)?, figure.of(second)?);
    let difference = after - before;
    if !difference.is_finite() {
        let direction = direction_of_loss(pair, first, second, before, after);
        return Some(Change {
            figure,
            before,
            after,
            chance: Chance::Unknown,
            direction,
        });
    }
    let floor = pair.floor(figure, (first, second), before.abs() + after.abs());
    let chance = chance(pair, figure, first, second, floor);
    let real = difference.abs() > floor
        && match chance {
            Chance::Interval(low, _) if difference > 0.0 => low > 0.0,
            Chance::Interval(_, high) => high < 0.0,
            Chance::UpTo(noise) => difference.abs() > noise,
            Chance::Unknown => false,
        };
    let direction = if real && (difference < 0.0) == figure.smaller_is_better() {
        Direction::Better
    } else if real {
        Direction::Worse
    } else if chance != Chance::Unknown {
        Direction::Same
    } else if difference.abs() > floor {
        Direction::Unknown
    } else {
        Direction::Equal
    };
    Some(Change {
        figure,
        before,
        after,
        chance,
        direction,
    })
}

/// Which way a percentile went that is lost in one run: the way of the share of lost
/// messages. Of one that is lost in both nothing can be said.
fn direction_of_loss(
    pair: &Pair,
    first: &Lane,
    second: &Lane,
    before: f64,
    after: f64,
) -> Direction {
    if before.is_infinite() && after.is_infinite() {
        return Direction::Unknown;
    }
    let wanted = if after.is_infinite() {
        Direction::Worse
    } else {
        Direction::Better
    };
    match change(pair, Figure::Lost, first, second) {
        Some(lost) if lost.direction == wanted => wanted,
        _ => Direction::Unknown,
    }
}

fn chance(pair: &Pair, figure: Figure, first: &Lane, second: &Lane, floor: f64) -> Chance {
    let paired = figure
        .metric()
        .filter(|_| pair.same_conditions)
        .and_then(|metric| difference(metric, second, first));
    if let Some(interval) = paired {
        return Chance::Interval(interval.low, interval.high);
    }
    match (varies_by(figure, first), varies_by(figure, second)) {
        (Some(a), Some(b)) => Chance::UpTo((a + b).max(floor)),
        // A mean over every packet of the run: chance has no hold on it.
        _ if figure == Figure::Overhead => Chance::UpTo(floor),
        _ => Chance::Unknown,
    }
}

/// How far `figure` varies by itself within one run.
fn varies_by(figure: Figure, lane: &Lane) -> Option<f64> {
    let metric = figure.metric()?;
    if let Some(half_the_range) = figure.spread(lane) {
        return Some(half_the_range);
    }
    let draws = lane.resamples.as_ref()?.values.get(&metric.to_string())?;
    let mut values: Vec<f64> = draws
        .iter()
        .map(|value| value.unwrap_or(f64::INFINITY))
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |per_mille| {
        let rank = nearest_rank(values.len() as u64, per_mille);
        values
            .get(usize::try_from(rank).ok()?.checked_sub(1)?)
            .copied()
    };
    Some((at(975)? - at(25)?) / 2.0).filter(|varies| !varies.is_nan())
}

fn run_differences(first: &Document, second: &Document) -> Vec<String> {
    let (a, b) = (About::of(first), About::of(second));
    let mut differences = Vec::new();
    let mut unlike = |what: &str, a: &str, b: &str| {
        if a != b {
            differences.push(format!("{what}: {a} against {b}"));
        }
    };
    let none = "none stated";
    unlike("command", &first.command, &second.command);
    unlike("experiment", &a.experiment, &b.experiment);
    unlike(
        "network",
        a.network.as_deref().unwrap_or(none),
        b.network.as_deref().unwrap_or(none),
    );
    unlike(
        "testbed",
        first.testbed.as_deref().unwrap_or(none),
        second.testbed.as_deref().unwrap_or(none),
    );
    unlike("seeds", &a.seeds, &b.seeds);
    if differences.is_empty() && first.experiment != second.experiment {
        differences.push("experiment: the same name, but its settings differ".to_owned());
    } else if first.experiment == second.experiment
        && first.impairments != second.impairments
        && first.seeds == second.seeds
    {
        differences.push(
            "network conditions: the same seeds, but the link behaved differently".to_owned(),
        );
    }
    for (document, which) in [(first, "the first run"), (second, "the second run")] {
        if document.partial {
            differences.push(format!("{which} was cut short"));
        }
        if let Some(words) = trust::invalid(document) {
            differences.push(format!("{which} is {}", words.trim_end_matches('.')));
        }
    }
    differences
}

fn lane_differences(a: &Lane, b: &Lane) -> Vec<String> {
    let mut differences = Vec::new();
    if a.library != b.library {
        differences.push(format!("library {} against {}", a.library, b.library));
    }
    if a.transport != b.transport {
        differences.push(format!("transport {} against {}", a.transport, b.transport));
    }
    if let (Some(a), Some(b)) = (a.settings.as_object(), b.settings.as_object()) {
        let mut keys: Vec<&String> = a
            .keys()
            .chain(b.keys().filter(|key| !a.contains_key(*key)))
            .collect();
        keys.sort();
        for key in keys {
            if a.get(key) != b.get(key) {
                let side = |value: Option<&serde_json::Value>| {
                    value.map_or_else(|| "unset".to_owned(), ToString::to_string)
                };
                differences.push(format!(
                    "{key} {} against {}",
                    side(a.get(key)),
                    side(b.get(key))
                ));
            }
        }
    }
    for (lane, which) in [(a, "first"), (b, "second")] {
        if let Some(failure) = &lane.failure {
            differences.push(format!("failed in the {which} run: {failure}"));
        }
    }
    differences
}
