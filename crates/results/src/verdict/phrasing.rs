//! How a verdict is phrased: plainly, with every figure it rests on.

use super::{Bench, Ranking, is_estimated};
use crate::difference::difference;
use crate::document::{
    BudgetResult, Decision, Lane, fewest_more_seeds_in_words, more_seeds_in_words,
};
use crate::metric::Metric;

/// What is to be said of the best reliable lane.
pub(super) fn best(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    reliable(bench, ranking) + &others_clause(ranking)
}

/// What is to be said beside the ranking: which of the best lost their connections, and
/// which lanes stand nowhere in it.
pub(super) fn others_clause(ranking: &Ranking<'_>) -> String {
    lost_clause(ranking) + &unplaced_clause(ranking)
}

/// Which of the best lanes lost their connections.
fn lost_clause(ranking: &Ranking<'_>) -> String {
    let mut lost = all(ranking);
    lost.retain(|lane| lane.failure.is_some());
    match &lost[..] {
        [] => String::new(),
        [lane] => format!("; the connection of {} was lost", lane.lane),
        lanes => format!("; the connections of {} were lost", listed(lanes)),
    }
}

/// Which lanes vary too much to say where they stand, and which are left out for others
/// than the best.
fn unplaced_clause(ranking: &Ranking<'_>) -> String {
    let mut clauses = Vec::new();
    if !ranking.unplaced.is_empty() {
        let varies = if ranking.unplaced.len() == 1 {
            "varies"
        } else {
            "vary"
        };
        clauses.push(format!(
            "; {} {varies} too much from seed to seed to be placed",
            listed(&ranking.unplaced)
        ));
    }
    if !ranking.unsettled.is_empty() {
        let are = if ranking.unsettled.len() == 1 {
            "is"
        } else {
            "are"
        };
        clauses.push(format!(
            "; {}, which another lane surpasses, {are} not shown to do worse than {}",
            listed(&ranking.unsettled),
            listed(&all(ranking))
        ));
    }
    clauses.concat()
}

fn reliable(bench: &Bench<'_>, ranking: &Ranking<'_>) -> String {
    let name = &ranking.best.lane;
    let share = share_of(bench, ranking.best);
    let within = within(bench);
    if !ranking.is_distinguished {
        let lanes = all(ranking);
        let show = if lanes.len() == 1 { "shows" } else { "show" };
        return format!(
            "{} {show} the largest share {within}, {share}, but this run is too short to tell \
             lanes apart: play five seeds or five minutes{}",
            listed(&lanes),
            undecided_clause(bench, &lanes, "; ")
        );
    }
    if !ranking.equals.is_empty() {
        return several(bench, ranking);
    }
    let lead = lead(bench, ranking);
    let cost = cost(ranking.best);
    let budgets = budgets(bench);
    let does_best = if ranking.is_alone {
        format!("{name}, the only reliable lane that played, keeps")
    } else {
        format!("{name} does best: it keeps")
    };
    match bench.budgets_of(ranking.best) {
        Some(Decision::Missed) if !bench.is_known_to_miss_budget(ranking.best) => {
            format!(
                "{does_best} {share} of messages {within}{lead}{cost}, and misses a budget in this \
                 run"
            )
        }
        Some(Decision::Missed) => format!(
            "no reliable lane is shown to meet {budgets}; {name} comes nearest with {share} of \
             messages {within}{lead}{cost}"
        ),
        Some(Decision::Met) => {
            format!("{name} keeps {share} of messages {within} and meets {budgets}{lead}{cost}")
        }
        Some(Decision::Undecided) => format!(
            "{does_best} {share} of messages {within}{lead}{cost}{}",
            undecided_clause(bench, &[ranking.best], "; ")
        ),
        None => format!("{does_best} {share} of messages {within}{lead}{cost}"),
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
    let said = if count == 1 {
        format!("{name}, which is unreliable, {lost} and {kept}")
    } else if ranking.is_distinguished && ranking.equals.is_empty() {
        format!(
            "of the unreliable lanes {name} did best: it {lost} and {kept}{}{}",
            lead(bench, ranking),
            cost(ranking.best)
        )
    } else if ranking.is_distinguished {
        format!(
            "of the unreliable lanes {} cannot be told apart: {name} {lost} and {kept}",
            listed(&all(ranking))
        )
    } else {
        format!("of the unreliable lanes {name} {lost} and {kept}")
    };
    said + &others_clause(ranking)
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
    let lanes = all(ranking);
    let names = listed(&lanes);
    let (name, share, within) = (
        &ranking.best.lane,
        share_of(bench, ranking.best),
        within(bench),
    );
    let decided = |decision: Decision| -> Vec<&Lane> {
        let is = |lane: &&Lane| bench.budgets_of(lane) == Some(decision);
        lanes.iter().copied().filter(is).collect()
    };
    let (met, undecided) = (decided(Decision::Met), decided(Decision::Undecided));
    let budgets = budgets(bench);
    let alike = if met.len() == lanes.len() {
        format!("{names} meet {budgets} and cannot be told apart by this run")
    } else if !met.is_empty() {
        format!(
            "{names} cannot be told apart by this run; {} {} {budgets}{}",
            listed(&met),
            if met.len() == 1 { "meets" } else { "meet" },
            undecided_clause(bench, &undecided, ", ")
        )
    } else if !undecided.is_empty() {
        format!(
            "{names} cannot be told apart by this run{}",
            undecided_clause(bench, &undecided, "; ")
        )
    } else if bench.is_known_to_miss_budget(ranking.best) {
        format!(
            "no reliable lane is shown to meet {budgets}; {names} come nearest and cannot be told \
             apart by this run"
        )
    } else {
        format!("{names} do best and cannot be told apart by this run")
    };
    let whom = match met.len() {
        1 => {
            return format!(
                "{alike}; {name} kept {share} of messages {within}{}",
                cost(ranking.best)
            );
        }
        some if some > 0 && some < lanes.len() => format!("of those that meet {budgets}"),
        _ => "of them".to_owned(),
    };
    match Metric::Overhead.of(ranking.best) {
        Some(overhead) if is_tied(&lanes, &met, ranking.best, overhead) => format!(
            "{alike}; {whom} none put less on the wire than {name}, {overhead:.2} times the \
             payload, which kept {share} of messages {within}"
        ),
        Some(overhead) => format!(
            "{alike}; {whom} {name} put the least on the wire, {overhead:.2} times the payload, \
             and kept {share} of messages {within}"
        ),
        None => format!("{alike}; {name} kept {share} of messages {within}"),
    }
}

/// Whether another of the lanes that `best` was chosen from put as little on the wire, as far
/// as two digits show: of those that met the budgets where any did.
fn is_tied(lanes: &[&Lane], met: &[&Lane], best: &Lane, overhead: f64) -> bool {
    let chosen_from = if met.is_empty() { lanes } else { met };
    let shown = |overhead: f64| format!("{overhead:.2}");
    chosen_from.iter().any(|other| {
        let theirs = Metric::Overhead.of(other);
        other.lane != best.lane && theirs.is_some_and(|theirs| shown(theirs) == shown(overhead))
    })
}

/// What the lane is that the best is held against: no test places it before the others that
/// are surpassed.
pub(super) const NEXT: &str = "the nearest of those it surpasses";

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
            ", its slowest thousandth taking {ours:.0} ms or more where {next}, {NEXT}, \
             lost it"
        ),
        Metric::Rtt(_) => format!(
            ", its slowest thousandth taking {ours:.0} ms or more against {theirs:.0} ms for \
             {next}, {NEXT}"
        ),
        Metric::Lag => {
            format!(", with {ours:.2} s of lag a minute against {theirs:.2} s for {next}, {NEXT}")
        }
        _ => format!(
            ", {}{} more than {next}, {NEXT}, at {}",
            points(ours - theirs),
            difference(metric, ranking.best, runner_up).map_or_else(String::new, |found| {
                format!(" (± {:.2})", (found.high - found.mean) * 100.0)
            }),
            share_of(bench, runner_up)
        ),
    }
}

/// What a budget would take to be decided for which no number of seeds is said.
const TOO_MANY: &str = "more than a hundred times as many seeds";

/// Which budgets of these lanes this run does not decide, and what would.
pub(super) fn undecided_clause(bench: &Bench<'_>, lanes: &[&Lane], opening: &str) -> String {
    let is_one_of = |name: &str| lanes.iter().any(|lane| lane.lane == name);
    // More play would not tell what nobody measured, nor how the last freeze ended.
    let undecided: Vec<_> = bench
        .document
        .budgets
        .iter()
        .filter(|result| result.decision == Decision::Undecided && is_estimated(result))
        .filter(|result| is_one_of(&result.lane))
        .collect();
    if undecided.is_empty() {
        return String::new();
    }
    let lanes_with = |is: &dyn Fn(&BudgetResult) -> bool| -> Vec<&Lane> {
        let has = |lane: &&Lane| {
            let mut results = undecided.iter();
            results.any(|result| result.lane == lane.lane && is(result))
        };
        lanes.iter().copied().filter(has).collect()
    };
    let open = lanes_with(&|_| true);
    let too_close = lanes_with(&|result| result.needs().is_none());
    let needs = match needed(&undecided) {
        Some(seeds) if too_close.is_empty() => format!("needs {seeds}"),
        Some(seeds) if too_close.len() < open.len() => {
            format!("needs {seeds}, and for {} {TOO_MANY}", listed(&too_close))
        }
        _ => format!("needs {TOO_MANY}"),
    };
    let meets = if open.len() == 1 { "meets" } else { "meet" };
    format!(
        "{opening}whether {} {meets} {} is not decided by this run ({needs})",
        listed(&open),
        budgets(bench)
    )
}

/// How many more seeds would decide all that seeds decide; `None` where none would.
fn needed(undecided: &[&BudgetResult]) -> Option<String> {
    let most = |of: fn(&BudgetResult) -> Option<u32>| {
        let seeds = undecided.iter().filter_map(|result| of(result));
        seeds.max()
    };
    match most(|result| result.fewest_more_seeds) {
        Some(fewest) => {
            let known = most(|result| result.more_seeds).unwrap_or_default();
            Some(fewest_more_seeds_in_words(fewest.max(known)))
        }
        None => most(|result| result.more_seeds).map(more_seeds_in_words),
    }
}

/// What the lane put on the wire; nothing of one that died, for it was silent then.
pub(super) fn cost(lane: &Lane) -> String {
    Metric::Overhead
        .of(lane)
        .filter(|_| lane.failure.is_none())
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
        Some(limit) => format!("the budget of {} {}", plain_percent(limit), within(bench)),
        None => "every budget".to_owned(),
    }
}

/// The limit of the budget on the ranking share, if no other budget was set.
fn only_budget(bench: &Bench<'_>) -> Option<f64> {
    if !matches!(bench.first(), Metric::Within(_)) {
        return None;
    }
    let name = bench.first().to_string();
    let first = bench.document.budgets.first()?;
    bench
        .document
        .budgets
        .iter()
        .all(|result| result.metric == name && result.limit.to_bits() == first.limit.to_bits())
        .then_some(first.limit)
}

/// The best lane and its equals, the best first.
pub(super) fn all<'a>(ranking: &Ranking<'a>) -> Vec<&'a Lane> {
    std::iter::once(ranking.best)
        .chain(ranking.equals.iter().copied())
        .collect()
}

/// `a, b and c`.
pub(super) fn listed(lanes: &[&Lane]) -> String {
    let names: Vec<&str> = lanes.iter().map(|lane| &lane.lane[..]).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn share_of(bench: &Bench<'_>, lane: &Lane) -> String {
    bench
        .first()
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
