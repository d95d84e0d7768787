//! Budgets in words, the same on a terminal and on the page.

use lagometer_results::{BudgetResult, Decision, more_seeds_in_words};

use crate::figure::{Figure, LOST};

/// What became of one limit, in the order of the document.
#[derive(Debug)]
pub(crate) struct Limit<'a> {
    /// What it asked.
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
        Some(figure) => {
            format!(
                "{} at most {}",
                figure.heading(),
                figure.written_with_unit(budget.limit)
            )
        }
        None => format!("{} against {}", budget.metric, budget.limit),
    }
}

/// Who missed it and by how much, `kcp (98.20 %)`, or what would decide it:
/// `kcp (98.95 %, 12 more seeds)`.
pub(crate) fn who(budget: &BudgetResult) -> String {
    let value = measured(budget);
    match (budget.decision, budget.more_seeds) {
        (Decision::Undecided, Some(seeds)) => {
            let needs = more_seeds_in_words(seeds);
            format!("{} ({value}, needs {needs})", budget.lane)
        }
        _ => format!("{} ({value})", budget.lane),
    }
}

/// What was measured, with its unit.
pub(crate) fn measured(budget: &BudgetResult) -> String {
    match (Figure::named(&budget.metric), budget.value) {
        (Some(figure), Some(value)) => figure.written_with_unit(value),
        (None, Some(value)) => value.to_string(),
        // More was lost than the percentile allows for, or a freeze has no end.
        (Some(figure), None) => figure.written(f64::INFINITY),
        (None, None) => LOST.to_owned(),
    }
}
