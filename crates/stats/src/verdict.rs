//! The one-sentence answer to an experiment's question, from its document
//! alone.
//!
//! Reliable lanes are ranked among themselves: by the share delivered within
//! the budget's limit, then, where that does not tell them apart, by the
//! slowest thousandth if it takes a tenth longer, then by the number of lag
//! episodes; of those that remain the cheapest on the wire is named. Lanes that meet every budget
//! come before those that do not. Unreliable lanes promise less, so they are
//! not ranked with the others; the sentence says what the best of them loses.

use crate::difference::{Judgement, judge, noise_ms};
use crate::document::{Document, Lane};
use crate::metric::{Metric, Statistic};

mod words;

/// The limit in milliseconds by which lanes are ranked where no budget names
/// one: the delay that shooters can just about hide.
pub const USUAL_LIMIT_MS: u32 = 150;

/// A delay that is longer by less than this share is no reason to pay for a
/// costlier lane, however surely it is longer.
const FELT: f64 = 0.1;

/// The limit in milliseconds by which a document's lanes are ranked: that of
/// its first budget on the share delivered within one, or
/// [`USUAL_LIMIT_MS`].
#[must_use]
pub fn ranking_limit_ms(document: &Document) -> u32 {
    document
        .budgets
        .iter()
        .find_map(|budget| match budget.metric.parse() {
            Ok(Metric::Within(limit_ms)) => Some(limit_ms),
            _ => None,
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
    let bench = Bench {
        document,
        share: Metric::Within(ranking_limit_ms(document)),
        noise_ms: noise_ms(document),
    };
    let played = |lane: &&Lane| lane.messages.intended > 0;
    let (reliable, unreliable): (Vec<&Lane>, Vec<&Lane>) = document
        .lanes
        .iter()
        .filter(played)
        .partition(|lane| is_reliable(lane));
    let mut clauses = Vec::new();
    if let Some(ranking) = bench.rank(&reliable) {
        clauses.push(words::best(&bench, &ranking));
    }
    if let Some(ranking) = bench.rank(&unreliable) {
        if reliable.is_empty() {
            clauses.push("no reliable lane was measured".to_owned());
        }
        clauses.push(words::unreliable(&bench, &ranking, unreliable.len()));
    }
    words::sentence(&clauses)
}

/// A lane that does not say otherwise is taken to be reliable: imported logs
/// are of reliable transports and carry no word of it.
fn is_reliable(lane: &Lane) -> bool {
    lane.parity.as_ref().is_none_or(|parity| parity.reliable)
}

/// What lanes are held against.
struct Bench<'a> {
    document: &'a Document,
    /// The share by which lanes are ranked.
    share: Metric,
    noise_ms: f64,
}

/// Lanes of one kind in order of merit.
struct Ranking<'a> {
    /// The lane to recommend.
    best: &'a Lane,
    /// Lanes that nothing sets apart from it but what they cost.
    equals: Vec<&'a Lane>,
    /// The best of the lanes that it beats, and by what.
    runner_up: Option<(&'a Lane, Metric)>,
    /// Whether budgets were set for these lanes, and the best meets its own.
    meets_budgets: Option<bool>,
    /// Whether there was enough to tell lanes apart by.
    told_apart: bool,
}

impl<'a> Bench<'a> {
    fn rank(&self, lanes: &[&'a Lane]) -> Option<Ranking<'a>> {
        let (passing, failing): (Vec<&Lane>, Vec<&Lane>) = lanes
            .iter()
            .partition(|lane| self.meets_budgets(lane) == Some(true));
        let field = if passing.is_empty() {
            lanes
        } else {
            &passing[..]
        };
        let first = leader(self.share, field)?;
        if self.cannot_tell(first, field) {
            return Some(Ranking {
                best: first,
                equals: Vec::new(),
                runner_up: None,
                meets_budgets: self.meets_budgets(first),
                told_apart: false,
            });
        }
        let (mut equals, mut runner_up) = self.narrow(field);
        let best = cheapest(&equals)?;
        equals.retain(|lane| lane.lane != best.lane);
        if equals.is_empty() && runner_up.is_none() && !passing.is_empty() {
            // Nothing that meets the budgets comes near it; what comes next
            // misses one.
            runner_up = leader(self.share, &failing)
                .filter(|lane| self.beats(self.share, best, lane))
                .map(|lane| (lane, self.share));
        }
        Some(Ranking {
            best,
            equals,
            runner_up,
            meets_budgets: self.meets_budgets(best),
            told_apart: true,
        })
    }

    /// Narrows lanes down to those that no other beats, by one figure after
    /// the other, and names the last lane to be beaten and by which figure.
    fn narrow(&self, lanes: &[&'a Lane]) -> (Vec<&'a Lane>, Option<(&'a Lane, Metric)>) {
        let mut left = lanes.to_vec();
        let mut runner_up = None;
        for metric in [self.share, Metric::Rtt(Statistic::P99_9), Metric::Episodes] {
            let Some(leader_now) = leader(metric, &left) else {
                continue;
            };
            let (beaten, unbeaten): (Vec<&Lane>, Vec<&Lane>) = left
                .iter()
                .partition(|lane| self.beats(metric, leader_now, lane));
            left = unbeaten;
            if let Some(nearest) = leader(metric, &beaten) {
                runner_up = Some((nearest, metric));
            }
        }
        (left, runner_up)
    }

    fn beats(&self, metric: Metric, one: &Lane, other: &Lane) -> bool {
        judge(metric, one, other, self.noise_ms) == Judgement::First
            && (!matches!(metric, Metric::Rtt(_)) || is_felt(metric, one, other))
    }

    /// Whether there is too little to compare the leader with any other by.
    fn cannot_tell(&self, leader: &Lane, lanes: &[&Lane]) -> bool {
        let mut others = lanes
            .iter()
            .filter(|lane| lane.lane != leader.lane)
            .peekable();
        others.peek().is_some()
            && others
                .all(|other| judge(self.share, leader, other, self.noise_ms) == Judgement::Unknown)
    }

    /// Whether the lane meets every budget set for it; `None` if none was.
    fn meets_budgets(&self, lane: &Lane) -> Option<bool> {
        let mut results = self
            .document
            .budgets
            .iter()
            .filter(|result| result.lane == lane.lane)
            .peekable();
        results.peek()?;
        Some(results.all(|result| result.ok))
    }
}

/// Whether the longer of two delays is longer by more than [`FELT`].
fn is_felt(metric: Metric, quick: &Lane, slow: &Lane) -> bool {
    match (metric.of(quick), metric.of(slow)) {
        (Some(quick), Some(slow)) => slow > quick * (1.0 + FELT),
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

/// The lane that puts the fewest bytes on the wire; the first lane where that
/// is not known of any.
fn cheapest<'a>(lanes: &[&'a Lane]) -> Option<&'a Lane> {
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
