//! Budgets in words, the same on a terminal and on the page.

use lagometer_results::{BudgetResult, Decision, Metric, Unit};

use crate::figure::{Figure, LOST};
use crate::written;

/// What became of one limit, in the order of the document.
#[derive(Debug)]
pub(crate) struct Limit<'a> {
    /// The limit in words, as in `p99 at most 200 ms`.
    pub(crate) asked: String,
    /// The lanes that are known to meet it.
    pub(crate) met: Vec<&'a str>,
    /// The results that chance may have made.
    pub(crate) undecided: Vec<&'a BudgetResult>,
    /// Those of lanes that are known to miss it.
    pub(crate) missed: Vec<&'a BudgetResult>,
}

/// Results on the same limit together.
pub(crate) fn by_limit(budgets: &[BudgetResult]) -> Vec<Limit<'_>> {
    let mut limits: Vec<Limit<'_>> = Vec::new();
    for budget in budgets {
        let words = asked(budget);
        let place = limits
            .iter()
            .position(|each| each.asked == words)
            .unwrap_or_else(|| {
                limits.push(Limit {
                    asked: words,
                    met: Vec::new(),
                    undecided: Vec::new(),
                    missed: Vec::new(),
                });
                limits.len() - 1
            });
        match budget.decision {
            Decision::Met => limits[place].met.push(&budget.lane),
            Decision::Undecided => limits[place].undecided.push(budget),
            Decision::Missed => limits[place].missed.push(budget),
        }
    }
    limits
}

/// What the budget asked: `99.90 % within 150 ms`, `p99 at most 120 ms`.
pub(crate) fn asked(budget: &BudgetResult) -> String {
    match Figure::named(&budget.metric) {
        Some(figure @ Figure::Within(ms)) => {
            format!("{} within {ms} ms", figure.written_with_unit(budget.limit))
        }
        // Their columns do not say of which quantile they are.
        None | Some(Figure::ViewAge | Figure::InputAge | Figure::Event | Figure::Rollback) => {
            let metric = budget.metric.parse().map(Metric::in_words);
            let metric = metric.unwrap_or_else(|_| budget.metric.clone());
            format!("{metric} {}", limit_by_name(budget))
        }
        Some(figure) => {
            format!(
                "{} at most {}",
                figure.heading(),
                figure.written_with_unit(budget.limit)
            )
        }
    }
}

/// The limit of a figure that tables have no column for.
fn limit_by_name(budget: &BudgetResult) -> String {
    let metric = budget.metric.parse::<Metric>();
    let most = match metric {
        Ok(metric) if metric.more_is_better() => "at least",
        _ => "at most",
    };
    format!("{most} {}", with_unit_of_name(budget, budget.limit))
}

/// A value of such a figure.
fn with_unit_of_name(budget: &BudgetResult, value: f64) -> String {
    match budget.metric.parse::<Metric>().map(Metric::unit) {
        Ok(Unit::Share) => format!("{:.2} %", value * 100.0),
        Ok(Unit::Milliseconds) => written::milliseconds_with_unit(value),
        Ok(Unit::Number) | Err(_) => written::factor(value),
    }
}

/// Who missed it and by how much, `kcp (98.20 %)`, or what would decide it:
/// `kcp (98.95 %, needs some 12 more seeds)`.
pub(crate) fn who(budget: &BudgetResult) -> String {
    let value = measured(budget);
    match budget.needs() {
        Some(seeds) => format!("{} ({value}, needs {seeds})", budget.lane),
        None => format!("{} ({value})", budget.lane),
    }
}

/// What was measured, with its unit.
pub(crate) fn measured(budget: &BudgetResult) -> String {
    if budget.unmeasured {
        return "not measured".to_owned();
    }
    let least = if budget.at_least { "≥" } else { "" };
    match (Figure::named(&budget.metric), budget.value) {
        (Some(figure), Some(value)) => format!("{least}{}", figure.written_with_unit(value)),
        (None, Some(value)) => format!("{least}{}", with_unit_of_name(budget, value)),
        // More was lost than the percentile allows for, or a freeze has no end.
        (Some(figure), None) => figure.written(f64::INFINITY),
        (None, None) => LOST.to_owned(),
    }
}
