//! Limits of a search in words.

use lagometer_results::{Budget, Unit};

/// A limit in words, as in `overhead at most 2`.
pub(crate) fn limit(limit: &Budget) -> String {
    let metric = limit.metric();
    let value = match metric.unit() {
        Unit::Share => format!("{} %", rounded(limit.limit() * 100.0)),
        Unit::Milliseconds => format!("{} ms", rounded(limit.limit())),
        Unit::Number => rounded(limit.limit()),
    };
    let way = if metric.more_is_better() {
        "at least"
    } else {
        "at most"
    };
    format!("{} {way} {value}", metric.in_words())
}

/// At most three decimals, none superfluous.
fn rounded(value: f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}
