//! Two runs side by side: what changed for each lane, and what did not.
//!
//! A difference smaller than the runs' own noise is not called a difference.
//! The noise of a figure is the sum of both runs' spreads over their seeds,
//! never less than the figure's resolution and, where the lanes ran in real
//! time, than what the machines' late wake-ups alone can do.

use lagometer_stats::{Document, Lane, SCHEMA};
use thiserror::Error;

use crate::about::About;
use crate::figure::{Figure, Unit};

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
    /// Whether the noise is known from several seeds in both runs.
    pub spread_is_known: bool,
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
    /// A difference up to this is not a difference.
    pub noise: f64,
}

/// Which way a figure went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No difference beyond the noise.
    Same,
    /// For the better.
    Better,
    /// For the worse.
    Worse,
}

impl Change {
    /// Which way the figure went.
    #[must_use]
    pub fn direction(&self) -> Direction {
        let difference = self.after - self.before;
        let both_endless = self.after.is_infinite() && self.before.is_infinite();
        if both_endless || difference.abs() <= self.noise {
            Direction::Same
        } else if (difference < 0.0) == self.figure.smaller_is_better() {
            Direction::Better
        } else {
            Direction::Worse
        }
    }
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
    let lanes: Vec<LaneChange> = first
        .lanes
        .iter()
        .filter_map(|a| Some((a, named(second, &a.lane)?)))
        .map(|(a, b)| LaneChange {
            lane: a.lane.clone(),
            changes: changes((first, a), (second, b), limit_ms),
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
        spread_is_known: first.seeds.len() > 1 && second.seeds.len() > 1,
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

fn changes(first: (&Document, &Lane), second: (&Document, &Lane), limit_ms: u32) -> Vec<Change> {
    [
        Figure::Within(limit_ms),
        Figure::P50,
        Figure::P99,
        Figure::P99_9,
        Figure::Worst,
        Figure::Episodes,
        Figure::LongestEpisode,
        Figure::Lost,
        Figure::Overhead,
    ]
    .into_iter()
    .filter_map(|figure| {
        let (before, after) = (figure.of(first.1)?, figure.of(second.1)?);
        let noise = noise(figure, first, before) + noise(figure, second, after);
        Some(Change {
            figure,
            before,
            after,
            noise,
        })
    })
    .collect()
}

/// How far `figure` may be off in one document without anything having changed.
fn noise(figure: Figure, (document, lane): (&Document, &Lane), value: f64) -> f64 {
    let spread = figure.spread(lane).unwrap_or(0.0);
    let one_message = match lane.messages.intended {
        0 => 0.0,
        intended => 1.0 / intended as f64,
    };
    let floor = match figure.unit() {
        Unit::Milliseconds => value.abs() * RESOLUTION / 2.0 + machine_noise_ms(document),
        Unit::Share => one_message / 2.0,
        Unit::Factor | Unit::Nanoseconds => value.abs() * RESOLUTION / 2.0,
        Unit::Count => 0.0,
    };
    spread.max(floor)
}

/// What late wake-ups add to a round trip: nothing in virtual time; in real
/// time both ends may each wake as late as the machine's p99.
fn machine_noise_ms(document: &Document) -> f64 {
    if document.testbed.as_deref() == Some("sim") {
        return 0.0;
    }
    document
        .host
        .noise
        .as_ref()
        .map_or(0.0, |noise| 2.0 * noise.wake_us.p99 / 1e3)
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
        && first.weather != second.weather
        && first.seeds == second.seeds
    {
        differences.push("weather: the same seeds, but the link behaved differently".to_owned());
    }
    for (document, which) in [(first, "the first run"), (second, "the second run")] {
        if document.partial {
            differences.push(format!("{which} was cut short"));
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
