//! From what was searched and judged to the result document.

use lagometer_results::{
    Budget, Decision, Document, Lane, Metric, Statistic, Tune, TuneFinding, TuneLevel, TuneNetwork,
    TuneSensitivity, TuneTransfer, TunedFigure, TunedLane, mixed, mixed_difference, mixed_interval,
    tune_verdict,
};
use lagometer_stats::holm;
use serde_json::Value;

use crate::aim::{Aim, is_known};
use crate::evaluator::Evaluator;
use crate::lane::TunableLane;
use crate::phrasing;
use crate::search::Trial;
use crate::tuning::{Ask, FoundLane, HeldOut};

/// The chance that any lane is said to have become better or worse although nothing changed.
const ERRING: f64 = 0.05;

/// Builds the document from what each network's held-out seeds found.
pub(crate) fn document(
    evaluator: &Evaluator<'_>,
    ask: &Ask<'_>,
    found: &[FoundLane],
    documents: Vec<Document>,
) -> Document {
    let searched = ask.searched(documents.len());
    let whole: f64 = searched
        .iter()
        .map(|&it| evaluator.networks[it].weight)
        .sum();
    let weight = |place: usize| evaluator.networks[place].weight / whole;
    let judged: Vec<(f64, &Document)> = searched
        .iter()
        .map(|&place| (weight(place), &documents[place]))
        .collect();
    let mut lanes: Vec<TunedLane> = ask
        .lanes
        .iter()
        .zip(found)
        .map(|(lane, found)| tuned_lane(evaluator, ask, (lane, found), &judged, &documents))
        .collect();
    decide(evaluator.aim.goal(), ask.lanes, &judged, &mut lanes);
    let seed_s = evaluator.networks[0].resolved.plan.duration.as_secs_f64();
    let tune = Tune {
        goal: evaluator.aim.goal().to_string(),
        limits: evaluator.aim.limits().iter().map(phrasing::limit).collect(),
        networks: evaluator
            .networks
            .iter()
            .enumerate()
            .map(|(place, network)| TuneNetwork {
                name: network.name.clone(),
                weight: weight(place),
                held_out: !searched.contains(&place),
            })
            .collect(),
        search_seeds: ask.search_seeds.clone(),
        held_out_seeds: ask.held_out_seeds.clone(),
        seed_s,
        candidates: lanes.iter().map(|lane| lane.candidates).sum(),
        played_s: evaluator.memory.len() as f64 * seed_s,
        lanes,
    };
    let verdict = tune_verdict(evaluator.aim.goal(), &tune);
    let mut document = together(evaluator, documents);
    document.verdict = Some(verdict);
    document.tune = Some(tune);
    document
}

/// One document of all networks; where there are several, lanes are named with
/// theirs.
fn together(evaluator: &Evaluator<'_>, documents: Vec<Document>) -> Document {
    let is_one = documents.len() == 1;
    let names: Vec<&str> = evaluator
        .networks
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let mut all: Option<Document> = None;
    for (mut next, network) in documents.into_iter().zip(evaluator.networks) {
        if !is_one {
            let on_network = |lane: &str| format!("{lane} on {}", network.name);
            for lane in &mut next.lanes {
                lane.lane = on_network(&lane.lane);
            }
            for budget in &mut next.budgets {
                budget.lane = on_network(&budget.lane);
            }
        }
        match &mut all {
            None => all = Some(next),
            Some(all) => {
                all.lanes.append(&mut next.lanes);
                all.budgets.append(&mut next.budgets);
                // What one network did is not said of all.
                all.impairments = None;
                all.bottlenecks.clear();
            }
        }
    }
    let mut document = all.unwrap_or_else(|| Document::empty("tune"));
    "tune".clone_into(&mut document.command);
    // Of lanes and their plays the table of settings says what is to be known.
    document.warnings.clear();
    if let Some(experiment) = document.experiment.as_object_mut() {
        experiment.insert("network".to_owned(), names.join(", ").into());
    }
    document
}

fn tuned_lane(
    evaluator: &Evaluator<'_>,
    ask: &Ask<'_>,
    (lane, found): (&TunableLane, &FoundLane),
    judged: &[(f64, &Document)],
    documents: &[Document],
) -> TunedLane {
    let aim = evaluator.aim;
    let is_same = found.best.candidate == found.before.candidate;
    let [tuned, _] = lane.found_names();
    let name = if is_same {
        lane.name().to_owned()
    } else {
        tuned
    };
    let figure = |metric: Metric, at: usize| {
        let trials = [&found.before, &found.best];
        figure(metric, at, trials, [lane.name(), &name], judged)
    };
    let hour = |metric: Metric| {
        let found = held_out_figure(metric, [lane.name(), &name], judged);
        found.before.is_some().then_some(found)
    };
    debug_assert_eq!(
        lanes_named(lane.name(), judged).len(),
        lanes_named(&name, judged).len()
    );
    TunedLane {
        lane: lane.name().to_owned(),
        transport: lane.transport().to_owned(),
        preset: lane.preset(&found.best.candidate).to_owned(),
        settings: Value::Object(lane.settings(&found.best.candidate)),
        toml: lane.toml(&found.best.candidate, &name),
        candidates: found.candidates as u32,
        finding: if is_same {
            TuneFinding::Same
        } else {
            TuneFinding::NotDistinguished
        },
        goal: figure(aim.goal(), Aim::GOAL),
        overhead: figure(Metric::Overhead, Aim::OVERHEAD),
        p99_ms: figure(Metric::Rtt(Statistic::P99), Aim::DELAY),
        bytes_per_player_hour: hour(Metric::BytesPerHour),
        money_per_player_hour: hour(Metric::MoneyPerHour),
        currency: currency(judged),
        limits_kept: limits_kept(aim.limits(), &name, judged),
        transfer: transfers(evaluator, ask, (lane, found), documents),
        sensitivity: sensitivities(lane, found),
        frontier: found.frontier.clone(),
    }
}

/// Whether a lane keeps all limits or misses any, beyond chance; `None` where that is not
/// decided, or where there is none.
fn limits_kept(limits: &[Budget], lane: &str, judged: &[(f64, &Document)]) -> Option<bool> {
    let decisions: Vec<Decision> = limits
        .iter()
        .map(|limit| decision(limit, lane, judged))
        .collect();
    if decisions.contains(&Decision::Missed) {
        return Some(false);
    }
    let all_met = decisions.iter().all(|it| *it == Decision::Met);
    (all_met && !decisions.is_empty()).then_some(true)
}

/// On one network what is decided of the lane's budgets, which the limits are. Of several
/// together, where a limit is on their mean, its 95 % interval decides, of each limit of each
/// lane by itself; that it is kept only where enough was played on each.
fn decision(limit: &Budget, lane: &str, judged: &[(f64, &Document)]) -> Decision {
    let metric = limit.metric();
    let name = metric.to_string();
    let result_of = |document: &'_ Document| {
        let mut budgets = document.budgets.iter();
        budgets
            .find(|it| it.lane == lane && it.metric == name)
            .cloned()
    };
    if let [(_, document)] = judged {
        return result_of(document).map_or(Decision::Undecided, |it| it.decision);
    }
    let Some((low, high)) = mixed_interval(metric, &lanes_named(lane, judged)) else {
        return Decision::Undecided;
    };
    // Where too little was played, it is said how much more is wanted at least.
    let is_enough = judged.iter().all(|(_, document)| {
        let found = result_of(document);
        found.is_some_and(|it| it.fewest_more_seeds.is_none())
    });
    let (is_kept, is_missed) = if metric.more_is_better() {
        (low >= limit.limit(), high < limit.limit())
    } else {
        (high <= limit.limit(), low > limit.limit())
    };
    match (is_kept && is_enough, is_missed) {
        (true, _) => Decision::Met,
        (_, true) => Decision::Missed,
        _ => Decision::Undecided,
    }
}

/// What the first price list is in; nothing where nothing was priced.
fn currency(judged: &[(f64, &Document)]) -> Option<String> {
    let mut lanes = judged.iter().flat_map(|(_, document)| &document.lanes);
    let money = lanes.find_map(|lane| lane.cost.as_ref()?.money.first())?;
    Some(money.currency.clone())
}

/// What is known of a figure before and after.
fn figure(
    metric: Metric,
    at: usize,
    [before, found]: [&Trial; 2],
    [lane, name]: [&str; 2],
    judged: &[(f64, &Document)],
) -> TunedFigure {
    let of_search = |trial: &Trial| {
        let value = trial.mean(trial.seeds.len()).get(at).copied();
        value.filter(|value| is_known(metric, *value))
    };
    TunedFigure {
        before_searched: of_search(before),
        found_searched: of_search(found),
        ..held_out_figure(metric, [lane, name], judged)
    }
}

/// What held-out seeds say of a figure of two lanes.
fn held_out_figure(
    metric: Metric,
    [before, found]: [&str; 2],
    judged: &[(f64, &Document)],
) -> TunedFigure {
    let finite = |value: &f64| value.is_finite();
    let ends =
        |(low, high): (f64, f64)| (low.is_finite() && high.is_finite()).then_some([low, high]);
    let (one, other) = (lanes_named(before, judged), lanes_named(found, judged));
    let difference = (before != found)
        .then(|| mixed_difference(metric, &pairs(&other, &one)))
        .flatten();
    TunedFigure {
        before: mixed(metric, &one).filter(finite),
        before_interval: mixed_interval(metric, &one).and_then(ends),
        found: mixed(metric, &other).filter(finite),
        found_interval: mixed_interval(metric, &other).and_then(ends),
        difference: difference.map(|it| it.mean).filter(finite),
        difference_interval: difference.and_then(|it| ends((it.low, it.high))),
        ..TunedFigure::default()
    }
}

/// The lane of that name on each network, with the network's weight.
fn lanes_named<'a>(name: &str, judged: &[(f64, &'a Document)]) -> Vec<(f64, &'a Lane)> {
    judged
        .iter()
        .filter_map(|(weight, document)| {
            let lane = document.lanes.iter().find(|lane| lane.lane == name)?;
            Some((*weight, lane))
        })
        .collect()
}

fn pairs<'a>(
    first: &[(f64, &'a Lane)],
    second: &[(f64, &'a Lane)],
) -> Vec<(f64, &'a Lane, &'a Lane)> {
    let both = first.iter().zip(second);
    both.map(|(first, second)| (first.0, first.1, second.1))
        .collect()
}

/// Says of each lane that was changed whether it became better or worse, all of them
/// together with one chance of [`ERRING`] to err.
fn decide(
    goal: Metric,
    asked: &[TunableLane],
    judged: &[(f64, &Document)],
    lanes: &mut [TunedLane],
) {
    let (mut places, mut p_values) = (Vec::new(), Vec::new());
    for (place, (asked, lane)) in asked.iter().zip(lanes.iter()).enumerate() {
        if lane.finding == TuneFinding::Same {
            continue;
        }
        let before = lanes_named(asked.name(), judged);
        let [tuned, _] = asked.found_names();
        let found = lanes_named(&tuned, judged);
        if let Some(difference) = mixed_difference(goal, &pairs(&found, &before)) {
            places.push((place, difference.mean));
            p_values.push(difference.p_value(0.0));
        }
    }
    for ((place, mean), sure) in places.into_iter().zip(holm(&p_values, ERRING)) {
        if sure {
            lanes[place].finding = if (mean > 0.0) == goal.more_is_better() {
                TuneFinding::Better
            } else {
                TuneFinding::Worse
            };
        }
    }
}

fn transfers(
    evaluator: &Evaluator<'_>,
    ask: &Ask<'_>,
    (lane, found): (&TunableLane, &FoundLane),
    documents: &[Document],
) -> Vec<TuneTransfer> {
    let [tuned, transferred] = lane.found_names();
    let name = match ask.held_out {
        HeldOut::Each => transferred,
        _ if found.best.candidate == found.before.candidate => lane.name().to_owned(),
        _ => tuned,
    };
    found
        .transfer
        .iter()
        .map(|(network, candidate)| TuneTransfer {
            network: evaluator.networks[*network].name.clone(),
            settings: Value::Object(lane.settings(candidate)),
            goal: held_out_figure(
                evaluator.aim.goal(),
                [lane.name(), &name],
                &[(1.0, &documents[*network])],
            ),
        })
        .collect()
}

fn sensitivities(lane: &TunableLane, found: &FoundLane) -> Vec<TuneSensitivity> {
    let space = lane.space();
    found
        .sensitivity
        .iter()
        .map(|each| TuneSensitivity {
            setting: space.tunables()[each.setting].key.to_owned(),
            found: space
                .value(&found.best.candidate, each.setting)
                .cloned()
                .unwrap_or_default(),
            swing: each.swing,
            levels: each
                .levels
                .iter()
                .map(|(value, goal)| TuneLevel {
                    value: value.clone(),
                    goal: *goal,
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_results::{Milliseconds, ResampleUnit, Resamples, figures};

    /// A lane of five seeds that keeps so much within 150 ms, more or less.
    fn document(share: f64) -> Document {
        let metric = Metric::Within(150);
        let mut lane = figures(&[], &[], None).into_lane("kcp", "kcp");
        lane.messages.intended = 10_000;
        lane.within.insert(Milliseconds(150), share);
        lane.resamples = Some(Resamples {
            unit: ResampleUnit::Seed,
            blocks: 5,
            block_s: 120.0,
            values: [(
                metric.to_string(),
                (0..200)
                    .map(|nth| Some(share + 0.001 * f64::from(nth % 5 - 2)))
                    .collect(),
            )]
            .into(),
            worst_unit: [(metric.to_string(), (1.0 - share) / 2.0)].into(),
        });
        let budgets = [Budget::new(metric, 0.97)];
        Document {
            budgets: lagometer_results::evaluate(&budgets, std::slice::from_ref(&lane)),
            lanes: vec![lane],
            ..Document::empty("run")
        }
    }

    #[test]
    fn a_limit_is_kept_or_missed_only_beyond_chance() {
        let limits = [Budget::new(Metric::Within(150), 0.97)];
        let kept = |shares: &[f64]| {
            let documents: Vec<Document> = shares.iter().map(|&share| document(share)).collect();
            let judged: Vec<(f64, &Document)> = documents.iter().map(|it| (1.0, it)).collect();
            limits_kept(&limits, "kcp", &judged)
        };
        assert_eq!(kept(&[0.999]), Some(true));
        assert_eq!(kept(&[0.93]), Some(false));
        for undecided in [0.971, 0.969] {
            assert_eq!(kept(&[undecided]), None, "{undecided}");
        }
        // Of two networks the mean is limited.
        assert_eq!(kept(&[0.999, 0.96]), Some(true));
        assert_eq!(kept(&[0.95, 0.96]), Some(false));
        assert_eq!(kept(&[0.98, 0.9605]), None);
        assert_eq!(limits_kept(&[], "kcp", &[]), None);
    }
}
