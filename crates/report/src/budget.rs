//! Budgets in words, the same on a terminal and on the page.

use lagometer_stats::BudgetResult;

use crate::figure::{Figure, LOST, Unit};
use crate::written;

/// Results on the same limit together: what it asked, the lanes that met it,
/// the results that did not, in the order of the document.
pub(crate) fn by_limit(budgets: &[BudgetResult]) -> Vec<(String, Vec<&str>, Vec<&BudgetResult>)> {
    let mut limits: Vec<(String, Vec<&str>, Vec<&BudgetResult>)> = Vec::new();
    for budget in budgets {
        let words = asked(budget);
        let place = limits
            .iter()
            .position(|(each, ..)| *each == words)
            .unwrap_or_else(|| {
                limits.push((words, Vec::new(), Vec::new()));
                limits.len() - 1
            });
        if budget.ok {
            limits[place].1.push(&budget.lane);
        } else {
            limits[place].2.push(budget);
        }
    }
    limits
}

/// What the budget asked: `99.90 % within 150 ms`, `p99 at most 120 ms`.
pub(crate) fn asked(budget: &BudgetResult) -> String {
    match Figure::named(&budget.metric) {
        Some(figure @ Figure::Within(ms)) => {
            format!("{} within {ms} ms", with_unit(figure, budget.limit))
        }
        Some(figure) => {
            format!(
                "{} at most {}",
                figure.heading(),
                with_unit(figure, budget.limit)
            )
        }
        None => format!("{} against {}", budget.metric, budget.limit),
    }
}

/// Who missed it and by how much: `kcp (98.20 %)`.
pub(crate) fn missed_by(budget: &BudgetResult) -> String {
    let value = match (Figure::named(&budget.metric), budget.value) {
        (Some(figure), Some(value)) => with_unit(figure, value),
        (None, Some(value)) => value.to_string(),
        // More was lost than the percentile allows for.
        (_, None) => LOST.to_owned(),
    };
    format!("{} ({value})", budget.lane)
}

fn with_unit(figure: Figure, value: f64) -> String {
    match figure.unit() {
        Unit::Share => format!("{} %", figure.written(value)),
        Unit::Milliseconds => written::milliseconds_with_unit(value),
        Unit::Factor => format!("{} ×", written::factor(value)),
        Unit::Count | Unit::Nanoseconds => figure.written(value),
    }
}
