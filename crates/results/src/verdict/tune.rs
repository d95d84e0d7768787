//! What a search for settings found, in a sentence.

use crate::document::{Tune, TuneFinding, TunedLane};
use crate::metric::{Metric, Unit};

/// The answer: what became better beyond chance, what did not, what was best as it
/// was.
#[must_use]
pub fn tune_verdict(goal: Metric, tune: &Tune) -> String {
    let of = |finding: TuneFinding| -> Vec<&TunedLane> {
        let lanes = tune.lanes.iter();
        lanes.filter(|lane| lane.finding == finding).collect()
    };
    let mut clauses = Vec::new();
    let moved = |lane: &TunedLane| {
        format!(
            "{} {} instead of {}",
            lane.lane,
            value(goal, lane.goal.found),
            value(goal, lane.goal.before)
        )
    };
    let better = of(TuneFinding::Better);
    if !better.is_empty() {
        let each: Vec<String> = better.into_iter().map(moved).collect();
        clauses.push(format!("tuned, {}", each.join(", ")));
    }
    let worse = of(TuneFinding::Worse);
    if !worse.is_empty() {
        let each: Vec<String> = worse.into_iter().map(moved).collect();
        clauses.push(format!(
            "what was found is worse on held-out seeds: {}",
            each.join(", ")
        ));
    }
    let alike = of(TuneFinding::NotDistinguished);
    if !alike.is_empty() {
        clauses.push(format!(
            "for {} nothing better beyond chance",
            names(&alike)
        ));
    }
    let same = of(TuneFinding::Same);
    if !same.is_empty() {
        clauses.push(format!("{} best as it is", names(&same)));
    }
    let missed: Vec<&TunedLane> = tune
        .lanes
        .iter()
        .filter(|lane| lane.limits_kept == Some(false))
        .collect();
    if !missed.is_empty() {
        clauses.push(format!("not all limits are kept by {}", names(&missed)));
    }
    let open: Vec<&TunedLane> = tune
        .lanes
        .iter()
        .filter(|lane| lane.limits_kept.is_none() && !tune.limits.is_empty())
        .collect();
    if !open.is_empty() {
        clauses.push(format!(
            "whether all limits are kept is not decided for {}",
            names(&open)
        ));
    }
    let sentence = format!(
        "{} ({} on held-out seeds).",
        clauses.join("; "),
        goal.in_words()
    );
    let mut letters = sentence.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

fn names(lanes: &[&TunedLane]) -> String {
    let names: Vec<&str> = lanes.iter().map(|lane| lane.lane.as_str()).collect();
    names.join(", ")
}

fn value(goal: Metric, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "endless".to_owned();
    };
    match goal.unit() {
        // Cut rather than rounded, as in the table: all is never said of less.
        Unit::Share => format!("{:.2} %", (value * 1e4 + 1e-6).floor() / 1e2),
        Unit::Milliseconds => format!("{value:.1} ms"),
        Unit::Number => format!("{value:.2}"),
    }
}
