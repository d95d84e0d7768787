//! The words of a verdict: plain ones, with every figure it rests on.

use super::{Bench, Ranking};
use crate::document::Lane;
use crate::metric::Metric;

/// What is to be said of the best reliable lane.
pub(super) fn best(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    let name = &ranking.best.lane;
    let share = share_of(bench, ranking.best);
    let within = within(bench);
    if !ranking.told_apart {
        return format!(
            "{name} shows the largest share {within}, {share}, but so short a run of one seed \
             cannot tell lanes apart: play longer, or more seeds{}",
            standing(bench, ranking, " (")
        );
    }
    if !ranking.equals.is_empty() {
        return several(bench, ranking);
    }
    let lead = lead(bench, ranking);
    let cost = cost(ranking.best);
    match ranking.meets_budgets {
        Some(false) => format!(
            "no reliable lane meets {}; {name} comes nearest with {share} of messages \
             {within}{lead}{cost}",
            budgets(bench)
        ),
        Some(true) => format!(
            "{name} keeps {share} of messages {within} and meets {}{lead}{cost}",
            budgets(bench)
        ),
        None => format!("{name} does best: it keeps {share} of messages {within}{lead}{cost}"),
    }
}

/// What is to be said of the best unreliable lane among `count` of them.
pub(super) fn unreliable(bench: &Bench<'_>, ranking: &Ranking<'_>, count: usize) -> String {
    let name = &ranking.best.lane;
    let lost = match ranking.best.messages.lost {
        0 => "lost nothing".to_owned(),
        lost => format!(
            "lost {} for good",
            percent_up(lost as f64 / ranking.best.messages.intended as f64)
        ),
    };
    let kept = format!("kept {} {}", share_of(bench, ranking.best), within(bench));
    if count == 1 {
        format!("{name}, which is unreliable, {lost} and {kept}")
    } else {
        format!("of the unreliable lanes {name} did best: it {lost} and {kept}")
    }
}

/// One sentence of several clauses.
pub(super) fn sentence(clauses: &[String]) -> String {
    let mut sentence = match clauses {
        [] => "no lane could be measured".to_owned(),
        clauses => clauses.join("; "),
    };
    // A lane's name keeps its spelling; other first words get a capital.
    if sentence.starts_with("no ") {
        sentence.replace_range(..1, "N");
    }
    sentence.push('.');
    sentence
}

/// Several lanes that nothing but their cost sets apart.
fn several(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    let names = listed(ranking);
    let (name, share, within) = (
        &ranking.best.lane,
        share_of(bench, ranking.best),
        within(bench),
    );
    let alike = match ranking.meets_budgets {
        Some(true) => format!(
            "{names} meet {} with no difference beyond chance between them",
            budgets(bench)
        ),
        Some(false) => format!(
            "no reliable lane meets {}; {names} come nearest, with no difference beyond chance \
             between them",
            budgets(bench)
        ),
        None => format!("{names} do best, with no difference beyond chance between them"),
    };
    match Metric::Overhead.of(ranking.best) {
        Some(overhead) => format!(
            "{alike}; {name} is the cheapest of them at {overhead:.2} times the payload on the \
             wire and keeps {share} of messages {within}"
        ),
        None => format!("{alike}; {name} keeps {share} of messages {within}"),
    }
}

/// By how much the best lane leads, and before whom.
fn lead(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    let Some((runner_up, metric)) = ranking.runner_up else {
        return String::new();
    };
    let next = &runner_up.lane;
    let (Some(ours), Some(theirs)) = (metric.of(ranking.best), metric.of(runner_up)) else {
        return format!(", ahead of {next}");
    };
    match metric {
        Metric::Rtt(_) if theirs.is_infinite() => format!(
            ", its slowest thousandth taking {ours:.0} ms or more where {next}, the next best, \
             lost it"
        ),
        Metric::Rtt(_) => format!(
            ", its slowest thousandth taking {ours:.0} ms or more against {theirs:.0} ms for \
             {next}, the next best"
        ),
        Metric::Episodes => {
            format!(", with {ours:.0} against {theirs:.0} lag episodes for {next}, the next best")
        }
        _ => format!(
            ", {} more than {next}, the next best at {}",
            points(ours - theirs),
            share_of(bench, runner_up)
        ),
    }
}

/// Whether the budgets are met, in brackets, where any were set.
fn standing(bench: &Bench<'_>, ranking: &Ranking<'_>, opening: &str) -> String {
    match ranking.meets_budgets {
        Some(true) => format!("{opening}{} met)", budgets_bare(bench)),
        Some(false) => format!("{opening}{} missed)", budgets_bare(bench)),
        None => String::new(),
    }
}

fn cost(lane: &Lane) -> String {
    Metric::Overhead
        .of(lane)
        .map_or_else(String::new, |overhead| {
            format!(", for {overhead:.2} times the payload on the wire")
        })
}

fn within(bench: &Bench<'_>) -> String {
    format!("within {} ms", super::ranking_limit_ms(bench.document))
}

/// `the budget of 99.9 % within 150 ms` where that is the only one, otherwise
/// `every budget`.
fn budgets(bench: &Bench<'_>) -> String {
    match only_budget(bench) {
        Some(_) => format!("the {}", budgets_bare(bench)),
        None => "every budget".to_owned(),
    }
}

fn budgets_bare(bench: &Bench<'_>) -> String {
    match only_budget(bench) {
        Some(limit) => format!("budget of {} {}", plain_percent(limit), within(bench)),
        None => "every budget".to_owned(),
    }
}

/// The limit of the budget on the ranking share, if no other budget was set.
fn only_budget(bench: &Bench<'_>) -> Option<f64> {
    let name = bench.share.to_string();
    let first = bench.document.budgets.first()?;
    bench
        .document
        .budgets
        .iter()
        .all(|result| result.metric == name && result.limit.to_bits() == first.limit.to_bits())
        .then_some(first.limit)
}

/// `a, b and c`, in the document's order.
fn listed(ranking: &Ranking<'_>) -> String {
    let mut names: Vec<&str> = ranking.equals.iter().map(|lane| &lane.lane[..]).collect();
    names.insert(0, &ranking.best.lane);
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn share_of(bench: &Bench<'_>, lane: &Lane) -> String {
    bench
        .share
        .of(lane)
        .map_or_else(|| "an unknown share".to_owned(), percent_down)
}

/// Rounded down, so that a share never looks as if it met a limit it missed.
fn percent_down(share: f64) -> String {
    format!("{:.2} %", (share * 1e4 + 1e-6).floor() / 1e2)
}

/// Rounded up, so that a loss never looks like none.
fn percent_up(share: f64) -> String {
    format!("{:.2} %", (share * 1e4 - 1e-6).ceil() / 1e2)
}

/// With as many digits as it was written with.
fn plain_percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

fn points(difference: f64) -> String {
    let points = difference * 100.0;
    if points < 0.01 {
        "a hundredth of a point or less".to_owned()
    } else {
        format!("{points:.2} points")
    }
}
