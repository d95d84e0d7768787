//! The words of a verdict on lanes that carried a game.

use super::phrasing::{NEXT, all, cost, listed, others_clause, undecided_clause};
use super::{Bench, Ranking};
use crate::document::{Decision, Lane};
use crate::metric::{Metric, Statistic};

/// What is to be said of the best lane.
pub(super) fn best(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    ranked(bench, ranking) + &others_clause(ranking)
}

fn ranked(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    let lane = ranking.best;
    let (name, feels) = (&lane.lane, feels(lane));
    if !ranking.is_distinguished {
        let lanes = all(ranking);
        return format!(
            "{} {}: {feels}, but this run is too short to tell lanes apart: play \
             five seeds or five minutes{}",
            listed(&lanes),
            least(lane),
            undecided_clause(bench, &lanes, "; ")
        );
    }
    if !ranking.equals.is_empty() {
        let meets = |lane: &Lane| bench.budgets_of(lane) == Some(Decision::Met);
        return format!(
            "{} do best and cannot be told apart by this run; {} {name} put the least on the \
             wire{}: {feels}",
            listed(&all(ranking)),
            if meets(lane) && !ranking.equals.iter().all(|lane| meets(lane)) {
                "of those that meet every budget"
            } else {
                "of them"
            },
            budgets(bench, lane)
        );
    }
    let does_best = if ranking.is_alone {
        "is the only lane that played"
    } else {
        "does best"
    };
    format!(
        "{name} {does_best}: {feels}{}{}{}",
        lead(ranking),
        cost(lane),
        budgets(bench, lane)
    )
}

/// By what a lane leads where nothing is known of chance.
fn least(lane: &Lane) -> &'static str {
    if Metric::RollbackStalled.of(lane).is_some() {
        "made the game wait least"
    } else {
        "needed the least interpolation"
    }
}

/// What a player feels of a lane.
fn feels(lane: &Lane) -> String {
    let delays = [
        (Metric::Event(Statistic::P99), "of events come"),
        (Metric::Rtt(Statistic::P99), "of inputs show"),
    ];
    let delays = delays.into_iter().filter_map(|(metric, come)| {
        let value = metric.of(lane)?;
        Some(if value.is_finite() {
            format!(", 99 % {come} within {value:.0} ms")
        } else {
            format!(", fewer than 99 % {come} at all")
        })
    });
    let delays: String = delays.collect();
    if let Some(stalled) = Metric::RollbackStalled.of(lane) {
        return format!(
            "the game waits for {:.2} % of inputs{delays}",
            stalled * 100.0
        );
    }
    let needed = Metric::InterpolationNeeded.of(lane).unwrap_or_default();
    format!("with {needed:.0} ms of interpolation its view freezes once a minute{delays}")
}

/// By how much the best lane leads, and before whom.
fn lead(ranking: &Ranking<'_>) -> String {
    let Some((runner_up, metric)) = ranking.runner_up else {
        return String::new();
    };
    let of = match metric {
        Metric::RollbackStalled => {
            let theirs = metric.of(runner_up).unwrap_or(1.0) * 100.0;
            return format!(", against {theirs:.2} % with {}, {NEXT}", runner_up.lane);
        }
        Metric::InterpolationNeeded => "of interpolation",
        Metric::Event(_) => "for events",
        _ => "for inputs to show",
    };
    let theirs = match metric.of(runner_up) {
        Some(theirs) if theirs.is_finite() => format!("{theirs:.0} ms {of}"),
        _ => format!("no bound {of}"),
    };
    format!(", against {theirs} with {}, {NEXT}", runner_up.lane)
}

/// What is decided of the budgets set for the lane.
fn budgets(bench: &Bench<'_>, lane: &Lane) -> String {
    match bench.budgets_of(lane) {
        Some(Decision::Met) => ", and meets every budget".to_owned(),
        Some(Decision::Missed) => ", and misses a budget".to_owned(),
        Some(Decision::Undecided) => undecided_clause(bench, &[lane], "; "),
        None => String::new(),
    }
}
