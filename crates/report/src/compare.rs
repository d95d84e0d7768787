//! Two runs side by side: what changed for each lane, and what did not.
//!
//! A difference is called one only where chance could not have made it.
//!
//! - Both runs must have as many independent units of play: five seeds or thirty stretches
//!   of ten seconds at least ([`Basis`]). They are compared unit by unit, see
//!   [`lagometer_results::difference`](lagometer_results::difference()): where both met the
//!   same network conditions (same seeds, same network, virtual time) that leaves out what
//!   these did to both; units of other runs are paired in their order, which has nothing to
//!   do with what they met. What is slowest is held to the share of messages beyond a
//!   limit, too ([`difference_of_runs`]).
//! - All figures of all lanes together are held to one chance of [`TWO_RUNS_ERRING`] to find
//!   a difference where there is none (Holm's procedure).
//! - Where lanes ran in real time a difference must exceed what the machines' late
//!   wake-ups can do.
//!
//! Of what is left nothing shows what chance does: of too few seeds, of unlike numbers of
//! them, and of facts of a run, as its longest round trip. Such figures are equal, or it
//! cannot be known, and that is said. How often all this errs, and what it finds, is tried
//! in `tests/false_comparisons`.

use lagometer_results::{
    Document, Lane, ResampleUnit, SCHEMA, TWO_RUNS_ERRING, difference_of_runs, may_compare,
    noise_ms,
};
use lagometer_stats::unsure;
use thiserror::Error;

use self::unlike::{lane_differences, run_differences};
use crate::about::About;
use crate::figure::{Figure, Unit};

mod unlike;

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
    /// Both runs met the same network conditions, so that what these did to both is left
    /// out of the differences.
    pub paired: bool,
    /// The limit for "delivered within", in milliseconds.
    pub limit_ms: u32,
}

/// What changed for one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneChange {
    /// The lane's name.
    pub lane: String,
    /// What its figures are judged by.
    pub basis: Basis,
    /// Its key figures, in the order of the main table.
    pub changes: Vec<Change>,
    /// Settings, library or promises differ, in words.
    pub differences: Vec<String>,
}

/// What the figures of a lane are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// So many seeds of each run, compared one by one.
    Seeds(u32),
    /// So many stretches of ten seconds of each run, compared one by one.
    Stretches(u32),
    /// Both runs have enough of them, but one has more than the other, or seeds where the
    /// other has stretches: nothing is known of chance.
    Unlike,
    /// One run or both have fewer than five seeds and fewer than thirty stretches: nothing
    /// is known of chance.
    TooLittle,
}

/// One figure of one lane in both documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub(crate) figure: Figure,
    /// In the first document, in the figure's unit.
    pub before: f64,
    /// In the second document, in the figure's unit.
    pub after: f64,
    /// What chance could have made of the difference.
    pub chance: Chance,
    /// Whether the figure became better, worse or neither, beyond chance.
    pub direction: Direction,
    /// How probable so large a difference is where nothing changed, were it the only one
    /// that is looked at; `None` where chance is not known.
    p_value: Option<f64>,
}

/// What chance could have made of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chance {
    /// The difference's own 95 % interval, in the figure's unit. It stands by itself: of
    /// many figures that did not change some leave out zero.
    Interval(f64, f64),
    /// One of the two figures was lost, so that the difference has no size.
    Lost,
    /// It is not known.
    Unknown,
}

/// Which way a figure went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No difference that chance could not have made.
    Same,
    /// The figures are the same as far as they resolve, but nothing shows what chance
    /// does.
    Equal,
    /// For the better, beyond chance.
    Better,
    /// For the worse, beyond chance.
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
    let mut lanes: Vec<LaneChange> = first
        .lanes
        .iter()
        .filter_map(|a| Some((a, named(second, &a.lane)?)))
        .map(|(a, b)| LaneChange {
            lane: a.lane.clone(),
            basis: Basis::of(a, b),
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
    keep_what_is_sure(&mut lanes);
    Ok(Comparison {
        differences: run_differences(first, second),
        lanes,
        only_in_first: names(first, |lane| named(second, &lane.lane).is_none()),
        only_in_second: names(second, |lane| named(first, &lane.lane).is_none()),
        paired: pair.same_conditions,
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

/// Takes back what chance could have made, all figures of all lanes together.
fn keep_what_is_sure(lanes: &mut [LaneChange]) {
    let changes = lanes.iter_mut().flat_map(|lane| &mut lane.changes);
    let judged = changes.filter_map(|change| change.p_value.map(|p_value| (change, p_value)));
    for change in unsure(judged, TWO_RUNS_ERRING) {
        change.direction = Direction::Same;
    }
}

impl Basis {
    fn of(first: &Lane, second: &Lane) -> Self {
        let units = |lane: &Lane| {
            let drawn = lane.resamples.as_ref().filter(|drawn| drawn.suffice())?;
            Some((drawn.unit, drawn.blocks))
        };
        match (units(first), units(second)) {
            (Some(one), Some(other)) if one != other => Self::Unlike,
            (Some((ResampleUnit::Seed, seeds)), Some(_)) => Self::Seeds(seeds),
            (Some((ResampleUnit::Stretch, stretches)), Some(_)) => Self::Stretches(stretches),
            _ => Self::TooLittle,
        }
    }

    /// Whether anything can be known of chance.
    pub(crate) const fn is_enough(self) -> bool {
        matches!(self, Self::Seeds(_) | Self::Stretches(_))
    }
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

    /// What a difference of `figure` must exceed beside chance.
    fn noise(&self, figure: Figure) -> f64 {
        match figure.unit() {
            Unit::Milliseconds => self.machines_ms,
            _ => 0.0,
        }
    }

    /// The difference of `figure` within which two values that add up to `sizes` are the
    /// same, as far as they resolve.
    fn resolution(&self, figure: Figure, (first, second): (&Lane, &Lane), sizes: f64) -> f64 {
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

/// A figure of both lanes with the way it went, whether by chance or not; `None` where
/// either lane has none.
fn change(pair: &Pair, figure: Figure, first: &Lane, second: &Lane) -> Option<Change> {
    let (before, after) = (figure.of(first)?, figure.of(second)?);
    let mut change = Change {
        figure,
        before,
        after,
        chance: Chance::Unknown,
        direction: Direction::Unknown,
        p_value: None,
    };
    // Of what is lost in both there is no difference to judge.
    let is_lost_in_both = before.is_infinite() && after.is_infinite();
    let judged = figure
        .metric()
        .filter(|&metric| may_compare(metric, first, second))
        .and_then(|metric| difference_of_runs(metric, first, second));
    if !is_lost_in_both && let Some(found) = judged {
        change.p_value = Some(found.p_value(pair.noise(figure)));
        change.direction = if (found.mean < 0.0) == figure.smaller_is_better() {
            Direction::Better
        } else {
            Direction::Worse
        };
        change.chance = if before.is_finite() && after.is_finite() {
            let each = figure.counted_in(first);
            Chance::Interval(found.low / each, found.high / each)
        } else {
            Chance::Lost
        };
    } else if (after - before).is_finite() {
        let sizes = before.abs() + after.abs();
        if (after - before).abs() <= pair.resolution(figure, (first, second), sizes) {
            change.direction = Direction::Equal;
        }
    }
    Some(change)
}
