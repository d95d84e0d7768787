//! Budgets: what a game asks of its transport, as data.
//!
//! ```toml
//! [[budget]]
//! metric = "within 150 ms"
//! at_least = "99.9 %"
//!
//! [[budget]]
//! metric = "p99"
//! at_most = "200 ms"
//! lanes = ["kcp", "enet"]     # every lane where absent
//! ```

use std::collections::BTreeSet;

use lagometer_stats::{holm, student::two_sided_quantile};
use lagometer_units::{BadQuantity, Share, Span};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::difference::{
    Difference, beyond, has_enough_beyond, interval, is_enough_to_keep, judged_by, whole_limits,
};
use crate::document::{BudgetResult, Decision, Lane, ResampleUnit};
use crate::metric::{Metric, Unit, UnknownMetric};
use crate::resample::{BLOCK_S, FEWEST_BLOCKS, FEWEST_SEEDS};
use crate::verdict::ERRING;

/// A limit on one figure of some or all lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Budget {
    metric: Metric,
    /// In the metric's unit.
    limit: f64,
    /// Every lane where absent.
    lanes: Option<Vec<String>>,
}

/// What is wrong with a budget.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BadBudget {
    /// There is no such metric.
    #[error(transparent)]
    UnknownMetric(#[from] UnknownMetric),
    /// Neither limit was given, or the one that makes no sense.
    #[error("a budget on `{metric}` needs `{needed}` and nothing else, as in {needed} = {example}")]
    WrongLimit {
        /// The metric.
        metric: Metric,
        /// The key it needs.
        needed: &'static str,
        /// A value for it.
        example: &'static str,
    },
    /// The limit's unit is missing or not the metric's.
    #[error(transparent)]
    BadQuantity(#[from] BadQuantity),
    /// The limit of a plain number is none, or is negative.
    #[error(
        "a budget on `{metric}` needs a plain number of at least zero, as in {}",
        if metric.more_is_better() { "at_least = 250" } else { "at_most = 1.5" }
    )]
    NotANumber {
        /// The metric.
        metric: Metric,
    },
    /// The list of lanes names none.
    #[error("`lanes` is empty; leave it out for a budget on every lane")]
    NoLanes,
}

/// A budget as a TOML file writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    metric: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_least: Option<Amount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_most: Option<Amount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lanes: Option<Vec<String>>,
}

/// A limit with or without a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Amount {
    Whole(i64),
    Number(f64),
    Text(String),
}

/// Shares are products of sums of floating-point numbers: one that is short of
/// its limit by less than this has met it. A thousand times smaller than one
/// message of any run.
const ROUNDING: f64 = 1e-9;

/// Standard errors by which an estimate exceeds its expectation less than once
/// in five times.
const FOUR_OF_FIVE: f64 = 0.842;

/// A budget that a hundred times as much play would not decide is not worth
/// waiting for.
const MOST_TIMES: u32 = 100;

impl Budget {
    /// A budget on every lane. The limit is in the metric's
    /// [unit](Metric::unit): a least share where [more is
    /// better](Metric::more_is_better), otherwise the most permitted.
    #[must_use]
    pub const fn new(metric: Metric, limit: f64) -> Self {
        Self {
            metric,
            limit,
            lanes: None,
        }
    }

    /// What is limited.
    #[must_use]
    pub const fn metric(&self) -> Metric {
        self.metric
    }

    /// The limit in the metric's unit.
    #[must_use]
    pub const fn limit(&self) -> f64 {
        self.limit
    }

    /// The lanes it names; `None` if it is meant for all.
    #[must_use]
    pub fn lanes(&self) -> Option<&[String]> {
        self.lanes.as_deref()
    }

    /// Whether the budget is held against the lane of this name.
    #[must_use]
    pub fn concerns(&self, lane: &str) -> bool {
        self.lanes
            .as_ref()
            .is_none_or(|lanes| lanes.iter().any(|name| name == lane))
    }

    /// Holds the budget against a lane. A figure that the lane does not have,
    /// or that lost messages made endless, is not within the limit; neither is it beyond
    /// where the lane was played and nobody measured it.
    #[must_use]
    pub fn held_against(&self, lane: &Lane) -> BudgetResult {
        let was_played = lane.messages.intended > 0;
        // Of what did not end only so much was seen.
        let seen_ms = self.metric.seen_ms(lane).filter(|_| was_played);
        let value = seen_ms.or_else(|| self.metric.of(lane).filter(|_| was_played));
        let unmeasured = was_played && value.is_none();
        let ok = value.is_some_and(|value| {
            if self.metric.more_is_better() {
                value >= self.limit - ROUNDING
            } else {
                value <= self.limit + ROUNDING
            }
        });
        let interval = interval(self.metric, lane);
        let finite = |value: &f64| value.is_finite();
        BudgetResult {
            lane: lane.lane.clone(),
            metric: self.metric.to_string(),
            limit: self.limit,
            value: value.filter(finite),
            unmeasured,
            at_least: seen_ms.is_some(),
            ok,
            // Until chance has been asked, see `evaluate()`.
            decision: match ok {
                _ if unmeasured => Decision::Undecided,
                true if seen_ms.is_some() => Decision::Undecided,
                true => Decision::Met,
                false => Decision::Missed,
            },
            low: interval.map(|(low, _)| low).filter(finite),
            high: interval.map(|(_, high)| high).filter(finite),
            more_seeds: None,
            fewest_more_seeds: None,
        }
    }
}

/// Holds every budget against the lanes that it concerns, lane by lane in the
/// order of the budgets, and decides what can be decided: all of them together
/// with one chance of erring, see [`Decision`].
///
/// A figure that is a fact of the run ([`Metric::is_estimated`]), as the longest round
/// trip or the CPU time, is met or missed as it is; not decided where its end was not seen.
#[must_use]
pub fn evaluate(budgets: &[Budget], lanes: &[Lane]) -> Vec<BudgetResult> {
    let mut results = Vec::new();
    // Of each result that chance has a hold on, how far it is from its limit.
    let mut doubtful = Vec::new();
    for budget in budgets {
        for lane in lanes.iter().filter(|lane| budget.concerns(&lane.lane)) {
            let result = budget.held_against(lane);
            let is_measured = lane.messages.intended > 0 && !result.unmeasured;
            // What must not happen at all and did is missed, whatever chance does.
            let best = best_of(budget.metric);
            let is_certain = !result.ok && (budget.limit - best).abs() <= ROUNDING;
            if is_measured && budget.metric.is_estimated() && !is_certain {
                let found = beyond(budget.metric, lane, budget.limit);
                doubtful.push((results.len(), budget.metric, lane, found));
            }
            results.push(result);
        }
    }
    let p_value = |found: &Option<Difference>| found.map_or(1.0, |found| found.p_value(0.0));
    let p_values: Vec<f64> = doubtful
        .iter()
        .map(|(_, _, _, found)| p_value(found))
        .collect();
    let sure = holm(&p_values, ERRING);
    for ((index, metric, lane, found), sure) in doubtful.iter().zip(sure) {
        if !sure {
            let result = &mut results[*index];
            result.decision = Decision::Undecided;
            let chance = ERRING / p_values.len() as f64;
            match found {
                Some(found) if varies(*metric, result.value) => {
                    result.more_seeds = more_seeds(lane, found, chance);
                }
                _ => result.fewest_more_seeds = fewest_more_seeds(*metric, lane, result.ok),
            }
        }
    }
    results
}

/// Whether it is known how a figure varies: where nothing bad was seen in any unit of play,
/// it is not.
fn varies(metric: Metric, value: Option<f64>) -> bool {
    value.is_none_or(|value| (value - best_of(metric)).abs() > ROUNDING)
}

/// The best value that there can be.
fn best_of(metric: Metric) -> f64 {
    if metric.more_is_better() && metric.unit() == Unit::Share {
        1.0
    } else {
        0.0
    }
}

/// How many more seeds it takes at least until anything is decided: until there are units
/// enough to know of how the figure varies, and where the limit `is_kept` enough to say so.
/// `None` where no number of them is, as where it is not known how long they are.
fn fewest_more_seeds(metric: Metric, lane: &Lane, is_kept: bool) -> Option<u32> {
    let played = lane.per_seed.len().max(1) as u32;
    let seed_s = seed_s(lane);
    let stretches = (seed_s / BLOCK_S) as u64;
    let is_enough = |seeds: u32| {
        let (units, suffice) = if seeds as usize >= FEWEST_SEEDS {
            (seeds, true)
        } else {
            let units = u64::from(seeds) * stretches;
            (units as u32, units >= FEWEST_BLOCKS)
        };
        suffice
            && has_enough_beyond(metric, lane, f64::from(seeds) / f64::from(played))
            && (!is_kept || is_enough_to_keep(metric, units, f64::from(seeds) * seed_s))
    };
    let mut more = 1..=MOST_TIMES * 1000;
    more.find(|more| is_enough(played + more))
}

/// How long one seed was played, in seconds.
fn seed_s(lane: &Lane) -> f64 {
    let seeds = lane.per_seed.len().max(1) as f64;
    match &lane.resamples {
        Some(drawn) if drawn.unit == ResampleUnit::Seed => drawn.block_s,
        Some(drawn) => f64::from(drawn.blocks) * drawn.block_s / seeds,
        // Whole steps, so a little more than there was.
        None => lane.timeline.step_s * lane.timeline.lost.len() as f64,
    }
}

/// How many more seeds like those played would decide a budget in four runs of
/// five; `None` where a hundred times as much would not.
fn more_seeds(lane: &Lane, found: &Difference, chance: f64) -> Option<u32> {
    let seeds = lane.per_seed.len().max(1) as u32;
    let units = f64::from(found.freedom) + 1.0;
    let decides = |times: f64| {
        let freedom = ((units * times) as u32).saturating_sub(1).max(1);
        found.t * times.sqrt() >= two_sided_quantile(chance, freedom) + FOUR_OF_FIVE
    };
    (1..=MOST_TIMES * seeds).find(|&more| decides(f64::from(seeds + more) / f64::from(seeds)))
}

/// What budgets ask of a run beyond what every document has, for
/// [`figures`](crate::figures()): a figure that is drawn anew for them alone, and what
/// decides a budget on a quantile or on an interpolation delay, which is the share within
/// the limit or the freezes at it.
#[must_use]
pub fn asked(budgets: &[Budget]) -> Vec<Metric> {
    let mut asked = BTreeSet::new();
    for budget in budgets.iter().filter(|it| it.metric.is_estimated()) {
        asked.insert(budget.metric);
        let limits = whole_limits(budget.limit).into_iter().flatten();
        asked.extend(limits.filter_map(|limit_ms| Some(judged_by(budget.metric, limit_ms)?.0)));
    }
    asked.into_iter().collect()
}

impl TryFrom<Written> for Budget {
    type Error = BadBudget;

    fn try_from(written: Written) -> Result<Self, BadBudget> {
        let metric: Metric = written.metric.parse()?;
        let (given, other) = if metric.more_is_better() {
            (written.at_least, written.at_most)
        } else {
            (written.at_most, written.at_least)
        };
        let (Some(amount), None) = (given, other) else {
            return Err(wrong_limit(metric));
        };
        if written.lanes.as_ref().is_some_and(Vec::is_empty) {
            return Err(BadBudget::NoLanes);
        }
        Ok(Self {
            metric,
            limit: limit_of(metric, &amount)?,
            lanes: written.lanes,
        })
    }
}

fn wrong_limit(metric: Metric) -> BadBudget {
    let (needed, example) = match (metric.more_is_better(), metric.unit()) {
        (true, Unit::Number) => ("at_least", "250"),
        (true, _) => ("at_least", "\"99.9 %\""),
        (false, Unit::Share) => ("at_most", "\"0.1 %\""),
        (false, Unit::Milliseconds) => ("at_most", "\"200 ms\""),
        (false, Unit::Number) => ("at_most", "1.5"),
    };
    BadBudget::WrongLimit {
        metric,
        needed,
        example,
    }
}

/// The limit in the metric's unit. A bare number where a unit belongs is
/// refused by the quantity itself, which names the units.
fn limit_of(metric: Metric, amount: &Amount) -> Result<f64, BadBudget> {
    let text = match amount {
        Amount::Whole(number) => number.to_string(),
        Amount::Number(number) => number.to_string(),
        Amount::Text(text) => text.clone(),
    };
    match metric.unit() {
        Unit::Share => Ok(text.parse::<Share>()?.fraction()),
        Unit::Milliseconds => Ok(text.parse::<Span>()?.as_millis_f64()),
        Unit::Number => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => Err(BadBudget::NotANumber { metric }),
        },
    }
}

impl From<Budget> for Written {
    fn from(budget: Budget) -> Self {
        let amount = match budget.metric.unit() {
            Unit::Share => Amount::Text(
                Share::from_fraction(budget.limit)
                    .map_or_else(|| budget.limit.to_string(), |share| share.to_string()),
            ),
            Unit::Milliseconds => Amount::Text(format!("{} ms", budget.limit)),
            Unit::Number => Amount::Number(budget.limit),
        };
        let (at_least, at_most) = if budget.metric.more_is_better() {
            (Some(amount), None)
        } else {
            (None, Some(amount))
        };
        Self {
            metric: budget.metric.to_string(),
            at_least,
            at_most,
            lanes: budget.lanes,
        }
    }
}

#[cfg(test)]
mod tests;
