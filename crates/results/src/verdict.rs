//! The one-sentence answer to an experiment's question, from its document
//! alone.
//!
//! Reliable lanes are ranked among themselves: by the share delivered within
//! the budget's limit, then, where that does not distinguish them, by the
//! slowest thousandth if it takes a tenth longer, then by the seconds of lag in
//! a minute if they are a tenth more. Lanes that no other beats are named together, with the one that
//! put the least on the wire, of those that meet the budgets where any does. A lane that nobody
//! beats only because it varies, while lanes with better values are beaten, is not among them: it
//! is said not to be placed. Unreliable lanes promise less, so they are not
//! ranked with the others; the sentence says what the best of them loses.
//!
//! Lanes that carried a game are one field, since the game makes up for what a transport
//! does not promise, and are ranked by what a player feels ([`game`]).
//!
//! No lane is said to surpass another, and no budget to be met or missed, beyond
//! what chance makes: all comparisons that the sentence may draw on, of every
//! pair of lanes by every figure, are held to one chance of [`ERRING`]
//! together, and so are all budgets (Holm's procedure), so that the sentence as
//! a whole is wrong at most once in twenty runs. A budget decides between lanes
//! only where it is decided itself.

use std::collections::BTreeSet;

use lagometer_stats::holm;

use crate::difference::{difference, floor, noise_ms};
use crate::document::{BudgetResult, Decision, Document, Game, Lane};
use crate::metric::{Metric, Statistic};

pub(crate) mod echo;
mod game;
pub(crate) mod machine;
mod phrasing;
pub(crate) mod seeds;
pub(crate) mod speed;
pub(crate) mod sweep;
pub(crate) mod tune;
pub(crate) mod world;

/// The limit in milliseconds by which lanes are ranked where no budget names
/// one: the delay that shooters can just about hide.
pub const USUAL_LIMIT_MS: u32 = 150;

/// A delay or a lag that is longer by less than this share is no reason to pay for a
/// costlier lane, however surely it is longer.
const FELT: f64 = 0.1;

/// The chance that any of all comparisons errs, and that any of all budgets is
/// said to be met or missed wrongly: together, one sentence in twenty.
pub(crate) const ERRING: f64 = 0.025;

/// The limit in milliseconds by which a document's lanes are ranked: that of
/// its first budget on the share delivered within one, else from how late on its messages
/// are of no use, or [`USUAL_LIMIT_MS`].
#[must_use]
pub fn ranking_limit_ms(document: &Document) -> u32 {
    document
        .budgets
        .iter()
        .find_map(|budget| match budget.metric.parse() {
            Ok(Metric::Within(limit_ms)) => Some(limit_ms),
            _ => None,
        })
        .or_else(|| {
            let mut traffic = document
                .lanes
                .iter()
                .filter_map(|lane| lane.traffic.as_ref());
            traffic.next().map(|traffic| traffic.within_ms as u32)
        })
        .unwrap_or(USUAL_LIMIT_MS)
}

/// The verdict on a document's lanes and budgets, in one sentence. The same
/// document always gets the same words.
#[must_use]
pub fn verdict(document: &Document) -> String {
    if document.audit.as_ref().is_some_and(|audit| !audit.valid) {
        return "No verdict: the emulator's own errors are too large.".to_owned();
    }
    let played = |lane: &&Lane| lane.messages.intended > 0;
    if let Some(game) = document.lanes.iter().find_map(|lane| lane.game.as_ref()) {
        // The game makes up for what a transport does not promise: one field.
        let lanes: Vec<&Lane> = document.lanes.iter().filter(played).collect();
        let bench = Bench::of(document, figures_of_games(game), &[&lanes]);
        let clause = bench
            .rank(&lanes)
            .map(|ranking| game::best(&bench, &ranking));
        return phrasing::sentence(&clause.into_iter().collect::<Vec<_>>());
    }
    let (reliable, unreliable): (Vec<&Lane>, Vec<&Lane>) = document
        .lanes
        .iter()
        .filter(played)
        .partition(|lane| is_reliable(lane));
    let bench = Bench::of(document, usual_figures(document), &[&reliable, &unreliable]);
    let mut clauses = Vec::new();
    if let Some(ranking) = bench.rank(&reliable) {
        clauses.push(phrasing::best(&bench, &ranking));
    }
    if let Some(ranking) = bench.rank(&unreliable) {
        if reliable.is_empty() {
            clauses.push("no reliable lane was measured".to_owned());
        }
        clauses.push(phrasing::unreliable(&bench, &ranking, unreliable.len()));
    }
    phrasing::sentence(&clauses)
}

/// A lane that does not say otherwise is taken to be reliable: imported logs
/// are of reliable transports and carry no word of it.
fn is_reliable(lane: &Lane) -> bool {
    lane.properties
        .as_ref()
        .is_none_or(|properties| properties.reliable)
}

/// The figures by which lanes are ranked that echo messages.
fn usual_figures(document: &Document) -> [Metric; 3] {
    let share = Metric::Within(ranking_limit_ms(document));
    [share, Metric::Rtt(Statistic::P99_9), Metric::Lag]
}

/// The figures by which lanes are ranked that carried a game: how far behind the view has
/// to be shown, or how often the game has to wait where it rolls back; how late events
/// come; how late the effects of inputs show.
const fn figures_of_games(game: &Game) -> [Metric; 3] {
    let first = if game.rollback_frames.is_some() {
        Metric::RollbackStalled
    } else {
        Metric::InterpolationNeeded
    };
    [
        first,
        Metric::Event(Statistic::P99),
        Metric::Rtt(Statistic::P99),
    ]
}

/// What lanes are held against.
struct Bench<'a> {
    document: &'a Document,
    /// The figures by which lanes are ranked, the first that decides first.
    figures: [Metric; 3],
    /// Which lane beats which by which figure: metric, winner, loser.
    beaten: BTreeSet<(Metric, &'a str, &'a str)>,
    /// Pairs of lanes of which it can be decided at all.
    comparable: BTreeSet<(&'a str, &'a str)>,
}

/// Lanes of one kind in order of merit.
struct Ranking<'a> {
    /// The lane to recommend.
    best: &'a Lane,
    /// Lanes that nothing sets apart from it but what they cost; where there was too
    /// little to tell by, those with the very same value.
    equals: Vec<&'a Lane>,
    /// Lanes that nobody beats only because they vary so much: others that are beaten
    /// have a better value.
    unplaced: Vec<&'a Lane>,
    /// Lanes that others surpass, but none of the best does by itself.
    unsettled: Vec<&'a Lane>,
    /// The best of the lanes that it beats, and by what.
    runner_up: Option<(&'a Lane, Metric)>,
    /// Whether there was enough to tell lanes apart by.
    is_distinguished: bool,
    /// Whether no other lane of its kind was played, so that it does best of nothing.
    is_alone: bool,
}

impl<'a> Bench<'a> {
    /// Compares every pair of lanes of each group by every figure.
    fn of(document: &'a Document, figures: [Metric; 3], groups: &[&[&'a Lane]]) -> Self {
        let mut bench = Self {
            document,
            figures,
            beaten: BTreeSet::new(),
            comparable: BTreeSet::new(),
        };
        let noise_ms = noise_ms(document);
        let (mut claims, mut p_values) = (Vec::new(), Vec::new());
        for lanes in groups {
            for (index, &first) in lanes.iter().enumerate() {
                for &second in &lanes[index + 1..] {
                    for metric in bench.figures {
                        let Some(found) = difference(metric, first, second) else {
                            continue;
                        };
                        bench.comparable.insert((&first.lane, &second.lane));
                        bench.comparable.insert((&second.lane, &first.lane));
                        p_values.push(found.p_value(floor(metric, noise_ms)));
                        claims.push(if (found.mean > 0.0) == metric.more_is_better() {
                            (metric, first, second)
                        } else {
                            (metric, second, first)
                        });
                    }
                }
            }
        }
        let sure = holm(&p_values, ERRING);
        bench.beaten = claims
            .into_iter()
            .zip(sure)
            .filter(|&((metric, winner, loser), sure)| sure && is_felt(metric, winner, loser))
            .map(|((metric, winner, loser), _)| (metric, &winner.lane[..], &loser.lane[..]))
            .collect();
        bench
    }

    /// The figure that decides first.
    const fn first(&self) -> Metric {
        self.figures[0]
    }

    fn rank(&self, lanes: &[&'a Lane]) -> Option<Ranking<'a>> {
        let field = self.field(lanes);
        let first = leader(self.first(), &field)?;
        if self.is_undecided(first, &field) {
            let value = self.first().of(first);
            let is_equal = |lane: &&Lane| lane.lane != first.lane && self.first().of(lane) == value;
            return Some(Ranking {
                best: first,
                equals: field.into_iter().filter(is_equal).collect(),
                unplaced: Vec::new(),
                unsettled: Vec::new(),
                runner_up: None,
                is_distinguished: false,
                is_alone: false,
            });
        }
        let (mut equals, unplaced) = self.narrow(&field);
        let unsettled = self.unsettled(&field, &equals, &unplaced);
        let meets = |lane: &&Lane| self.budgets_of(lane) == Some(Decision::Met);
        let meeting: Vec<&Lane> = equals.iter().copied().filter(meets).collect();
        let best = cheapest(&meeting).or_else(|| cheapest(&equals))?;
        equals.retain(|lane| lane.lane != best.lane);
        // With a lane that the budgets left out it is compared like with any.
        let runner_up = self.runner_up(best, lanes).filter(|_| equals.is_empty());
        Some(Ranking {
            best,
            equals,
            unplaced,
            unsettled,
            runner_up,
            is_distinguished: true,
            is_alone: lanes.len() == 1,
        })
    }

    /// The lanes that may be the best: where some are known to keep every budget, those
    /// that are not known to miss one; otherwise all. That one lane is known to miss what
    /// of another is not decided is no difference between the two.
    fn field(&self, lanes: &[&'a Lane]) -> Vec<&'a Lane> {
        let keeps = |lane: &&Lane| self.beyond_chance(lane) == Some(Decision::Met);
        if !lanes.iter().any(keeps) {
            return lanes.to_vec();
        }
        let may = |lane: &&Lane| !self.is_known_to_miss_budget(lane);
        lanes.iter().copied().filter(may).collect()
    }

    /// Whether the lane is shown to miss a budget.
    fn is_known_to_miss_budget(&self, lane: &Lane) -> bool {
        self.beyond_chance(lane) == Some(Decision::Missed)
    }

    /// What is decided of the lane's budgets on what would be found again. That a run's
    /// longest freeze was too long says nothing of the next run, so facts of the run do
    /// not count.
    fn beyond_chance(&self, lane: &Lane) -> Option<Decision> {
        self.results_of(lane)
            .filter(|result| is_estimated(result))
            .map(|result| result.decision)
            .max()
    }

    /// Narrows lanes down to those that no other beats, by one figure after the other.
    /// Apart from them stand those that a figure does not place: nobody beats them, but
    /// somebody beaten has a better value, so that they cannot be set apart from the best
    /// only because they vary.
    fn narrow(&self, lanes: &[&'a Lane]) -> (Vec<&'a Lane>, Vec<&'a Lane>) {
        let mut left = lanes.to_vec();
        let mut unplaced = Vec::new();
        for metric in self.figures {
            let unbeaten =
                |lane: &&Lane| !left.iter().any(|rival| self.surpasses(metric, rival, lane));
            let (ahead, beaten): (Vec<&Lane>, Vec<&Lane>) =
                left.iter().copied().partition(unbeaten);
            left = ahead;
            let Some(bound) = leader(metric, &beaten) else {
                continue;
            };
            let is_placed = |lane: &&Lane| !is_better(metric, bound, lane);
            let (placed, others): (Vec<&Lane>, Vec<&Lane>) =
                left.iter().copied().partition(is_placed);
            if !placed.is_empty() {
                left = placed;
                unplaced.extend(others);
            }
        }
        (left, unplaced)
    }

    /// The lanes of a field that were left out because others surpass them, which in turn
    /// are surpassed by the best, who are not shown to surpass them themselves.
    fn unsettled(
        &self,
        field: &[&'a Lane],
        best: &[&'a Lane],
        unplaced: &[&'a Lane],
    ) -> Vec<&'a Lane> {
        let is_of = |lanes: &[&Lane], lane: &Lane| lanes.iter().any(|one| one.lane == lane.lane);
        let is_surpassed = |lane: &Lane| {
            let pairs = best
                .iter()
                .flat_map(|one| self.figures.map(|metric| (metric, one)));
            pairs
                .into_iter()
                .any(|(metric, one)| self.surpasses(metric, one, lane))
        };
        let others = field.iter().copied();
        others
            .filter(|lane| !is_of(best, lane) && !is_of(unplaced, lane) && !is_surpassed(lane))
            .collect()
    }

    /// Whom `best` leaves behind last, figure by figure, and by which figure: of several
    /// the one that comes nearest by it.
    fn runner_up(&self, best: &Lane, lanes: &[&'a Lane]) -> Option<(&'a Lane, Metric)> {
        let mut left: Vec<&Lane> = lanes.to_vec();
        let mut found = None;
        for metric in self.figures {
            let (beaten, others): (Vec<&Lane>, Vec<&Lane>) = left
                .into_iter()
                .partition(|lane| self.surpasses(metric, best, lane));
            left = others;
            found = leader(metric, &beaten).map(|next| (next, metric)).or(found);
        }
        found
    }

    fn surpasses(&self, metric: Metric, one: &Lane, other: &Lane) -> bool {
        self.beaten.contains(&(metric, &one.lane, &other.lane))
    }

    /// Whether there is too little to compare the leader with any other by.
    fn is_undecided(&self, leader: &Lane, lanes: &[&Lane]) -> bool {
        let others = || lanes.iter().filter(|lane| lane.lane != leader.lane);
        others().next().is_some()
            && !others().any(|lane| {
                self.comparable
                    .contains(&(&leader.lane[..], &lane.lane[..]))
            })
    }

    /// What is decided of all budgets set for the lane together; `None` if none
    /// was.
    fn budgets_of(&self, lane: &Lane) -> Option<Decision> {
        self.results_of(lane).map(|result| result.decision).max()
    }

    /// What came of the lane's budgets.
    fn results_of(&self, lane: &Lane) -> impl Iterator<Item = &'a BudgetResult> {
        let budgets = self.document.budgets.iter();
        budgets.filter(|result| result.lane == lane.lane)
    }
}

/// Whether a budget was on a figure that varies from run to run, and was measured.
fn is_estimated(result: &BudgetResult) -> bool {
    let metric = result.metric.parse::<Metric>();
    !result.unmeasured && metric.is_ok_and(Metric::is_estimated)
}

/// Whether the longer of two delays or lags is longer by more than [`FELT`];
/// other figures are felt whatever they are.
fn is_felt(metric: Metric, quick: &Lane, slow: &Lane) -> bool {
    let is_delay = matches!(
        metric,
        Metric::Rtt(_) | Metric::Lag | Metric::InterpolationNeeded | Metric::Event(_)
    );
    if !is_delay {
        return true;
    }
    match (metric.of(quick), metric.of(slow)) {
        (Some(quick), Some(slow)) => slow > quick * (1.0 + FELT),
        _ => false,
    }
}

/// Whether one lane has a better value than another; never where either has none.
fn is_better(metric: Metric, one: &Lane, other: &Lane) -> bool {
    match (metric.of(one), metric.of(other)) {
        (Some(one), Some(other)) if metric.more_is_better() => one > other,
        (Some(one), Some(other)) => one < other,
        _ => false,
    }
}

/// The lane with the best value, the first of equals; `None` if no lane has
/// one.
fn leader<'a>(metric: Metric, lanes: &[&'a Lane]) -> Option<&'a Lane> {
    let merit = |lane: &Lane| {
        let value = metric.of(lane)?;
        Some(if metric.more_is_better() {
            -value
        } else {
            value
        })
    };
    least(lanes, merit)
}

/// The lane that puts the fewest bytes on the wire, of those whose connections lived where
/// any did: one that is dead is silent. The first lane where that is not known of any.
fn cheapest<'a>(lanes: &[&'a Lane]) -> Option<&'a Lane> {
    let alive = lanes.iter().copied().filter(|lane| lane.failure.is_none());
    let alive: Vec<&Lane> = alive.collect();
    let lanes = if alive.is_empty() { lanes } else { &alive };
    least(lanes, |lane| Metric::Overhead.of(lane)).or(lanes.first().copied())
}

fn least<'a>(lanes: &[&'a Lane], cost: impl Fn(&Lane) -> Option<f64>) -> Option<&'a Lane> {
    lanes
        .iter()
        .filter_map(|lane| Some((*lane, cost(lane)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
        .map(|(lane, _)| lane)
}

#[cfg(test)]
mod tests;
