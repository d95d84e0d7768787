//! From what the lanes did to the one result document.

mod lane;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use lagometer_link::{Direction, Link};
use lagometer_results::{
    Audit, Disturbed, Document, Host, LAG_ABOVE, Lane, MessageRecord, Metric, SeedFigures,
    SeedRun as SeedRecords, Warning,
};
use lagometer_testbed::Testbed;
use lagometer_units::{Span, Time};

use crate::bottleneck;
use crate::impairments;
use crate::resolve::{ResolveError, Resolved};
use crate::runner::{LaneRun, SeedRun};
use lane::{assemble_lane, lane_warnings, overhead, seed_cost, unrunnable_lane};

/// When, where and how fast a run was made: all that its seed does not govern.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// When it began.
    pub started: SystemTime,
    /// How long it took.
    pub wall: Duration,
    /// The machine.
    pub host: Host,
    /// The testbed, if it was made in one.
    pub testbed: Option<Testbed>,
    /// What the emulator says of its own work, where there was one.
    pub audit: Option<Audit>,
}

/// Echoes that may still be on their way when a run is cut short: messages
/// meant to leave within this time before the cut are left out of it.
const CUT_MARGIN: Duration = Duration::from_secs(2);

/// Builds the document of a run.
///
/// A seed that was cut short is left out when another was played whole;
/// otherwise all its lanes are cut at the instant that the slowest reached, so
/// that every lane describes the same play.
#[must_use]
pub fn assemble(
    resolved: &Resolved,
    seeds_asked: &[u64],
    mut runs: Vec<SeedRun>,
    context: RunContext,
) -> Document {
    let any_whole = runs.iter().any(SeedRun::is_whole);
    if any_whole {
        runs.retain(SeedRun::is_whole);
    } else {
        runs.truncate(1);
    }
    let horizon = runs.first().and_then(SeedRun::horizon);
    let link_truths: Vec<Vec<Disturbed>> = runs
        .iter()
        .map(|run| disturbances(resolved, run.seed))
        .collect();

    let threshold = lag_threshold(resolved, context.testbed, &runs);

    let assembled = in_parallel(resolved.lanes.len(), |index| {
        let of_lane: Vec<(u64, &LaneRun)> = runs
            .iter()
            .map(|run| (run.seed, &run.lanes[index]))
            .collect();
        let lane = &resolved.lanes[index];
        let lane = assemble_lane(resolved, lane, &of_lane, &link_truths, horizon, threshold);
        let warnings = lane_warnings(&lane, &of_lane);
        (lane, warnings)
    });
    let (mut lanes, warnings): (Vec<Lane>, Vec<_>) = assembled.into_iter().unzip();
    let warnings = warnings.into_iter().flatten().collect();
    let bottlenecks = bottleneck::of(resolved, &runs);
    lanes.extend(resolved.unrunnable.iter().map(unrunnable_lane));
    let budgets = lagometer_results::evaluate(&resolved.experiment.budgets, &lanes);

    let seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
    let seed = seeds.first().copied().unwrap_or(resolved.plan.seed);
    let mut document = Document {
        testbed: context.testbed.map(|testbed| testbed.name().to_owned()),
        seed,
        partial: !any_whole || seeds.len() < seeds_asked.len(),
        seeds,
        started: humantime::format_rfc3339_seconds(context.started).to_string(),
        wall_s: (context.wall.as_secs_f64() * 1e3).round() / 1e3,
        host: context.host,
        experiment: experiment_as_resolved(resolved),
        // What a real path did is not known.
        impairments: (context.testbed != Some(Testbed::Net))
            .then(|| impairments::of(&link(resolved, seed), resolved.plan.duration)),
        lanes,
        bottlenecks,
        audit: context.audit,
        budgets,
        warnings,
        ..Document::empty("run")
    };
    document.verdict = Some(lagometer_results::verdict(&document.shown()));
    document
}

/// What `work` makes of the numbers below `count`, in their order, on as many threads as
/// there are processors: the intervals, for which a lane's messages are drawn again and
/// again, take noticeable time beside the play.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let share = || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let numbers = numbers.take_while(|&number| number < count);
            numbers.map(|number| (number, work(number))).collect()
        };
        let workers: Vec<_> = (0..threads.min(count))
            .map(|_| scope.spawn(share))
            .collect();
        let shares = workers.into_iter().map(|worker| {
            let share: Vec<(usize, T)> = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            share
        });
        shares.flatten().collect()
    });
    made.sort_unstable_by_key(|&(number, _)| number);
    made.into_iter().map(|(_, made)| made).collect()
}

/// Builds the document of lanes that were read from other tools' logs, whose
/// messages were `interval` apart.
///
/// # Errors
///
/// [`ResolveError::SameName`] where two logs have one name.
pub fn assemble_import(
    lanes: Vec<Lane>,
    interval: &str,
    context: RunContext,
) -> Result<Document, ResolveError> {
    let mut names = BTreeSet::new();
    if let Some(twice) = lanes.iter().find(|lane| !names.insert(&lane.lane)) {
        return Err(ResolveError::SameName {
            name: twice.lane.clone(),
        });
    }
    Ok(Document {
        started: humantime::format_rfc3339_seconds(context.started).to_string(),
        wall_s: context.wall.as_secs_f64(),
        host: context.host,
        experiment: serde_json::json!({ "interval": interval }),
        lanes,
        warnings: vec![Warning {
            what: "the logs show no loss, nor when a message was sent".to_owned(),
            why: "all figures are of the answers that came, as if each message had left on \
                  schedule: what was lost, and what a client that was stuck did not send, is in \
                  none of them"
                .to_owned(),
            mend: "take shares in time for the best that they may have been; where a log has a \
                   clock, `imported.clock` of the document says how many answers a second came"
                .to_owned(),
        }],
        ..Document::empty("import")
    })
}

/// What one lane did under one seed in virtual time, in figures alone: without all
/// that a document says beside them. `None` where the transport's library panicked.
#[must_use]
pub fn seed_figures(resolved: &Resolved, seed: u64, run: &LaneRun) -> Option<SeedFigures> {
    let outcome = run.outcome()?;
    let run = SeedRecords {
        seed,
        records: &outcome.records,
        disturbed: &[],
        overhead: overhead(&[outcome]),
        cost: seed_cost(resolved, outcome),
        game: outcome.game.as_ref(),
        flows: outcome.flows.as_ref(),
    };
    let threshold = lag_threshold(resolved, Some(Testbed::Sim), &[]);
    Some(lagometer_results::seed_figures(
        &run,
        &asked(resolved),
        threshold,
    ))
}

/// Figures beyond those of every document.
fn asked(resolved: &Resolved) -> Vec<Metric> {
    let mut asked = lagometer_results::asked(&resolved.experiment.budgets);
    asked.extend(resolved.limits_ms.iter().copied().map(Metric::Within));
    // The page and the ranking of lanes go by it.
    let within = resolved.experiment.workload.of_use_within();
    let within = within.and_then(|within| u32::try_from(within.as_millis()).ok());
    asked.extend(within.map(Metric::Within));
    asked
}

/// The round trip above which every lane's player lags: what the experiment
/// says, else [`LAG_ABOVE`] more than the calm path's. What a real path is when
/// calm is not known, and taken to be the shortest round trip of any lane.
fn lag_threshold(
    resolved: &Resolved,
    testbed: Option<Testbed>,
    runs: &[SeedRun],
) -> Option<Duration> {
    if testbed != Some(Testbed::Net) || resolved.said_lag_threshold().is_some() {
        return Some(resolved.known_lag_threshold());
    }
    let lanes = runs.iter().flat_map(|run| &run.lanes);
    let records = lanes.filter_map(LaneRun::outcome);
    let rtts = records.flat_map(|outcome| outcome.records.iter().filter_map(MessageRecord::rtt));
    rtts.min().map(|shortest| shortest + LAG_ABOVE)
}

impl Resolved {
    /// The age from which on every lane's player lags, as far as it is known before
    /// anything is played: what the experiment or its workload says, else [`LAG_ABOVE`]
    /// more than the calm round trip of the network; of a real path that is taken for none.
    #[must_use]
    pub fn known_lag_threshold(&self) -> Duration {
        self.said_lag_threshold()
            .unwrap_or_else(|| self.profile.base_rtt() + LAG_ABOVE)
    }

    fn said_lag_threshold(&self) -> Option<Duration> {
        let asked = self.experiment.lag_threshold.map(Span::duration);
        asked.or_else(|| self.experiment.workload.of_use_within())
    }
}

impl SeedRun {
    /// Whether every lane played to its end.
    fn is_whole(&self) -> bool {
        !self
            .lanes
            .iter()
            .any(|lane| matches!(lane, LaneRun::Cut(..)))
    }

    /// The instant up to which every lane has played, where one was cut.
    fn horizon(&self) -> Option<Time> {
        self.lanes
            .iter()
            .filter_map(|lane| match lane {
                LaneRun::Cut(_, now) => Some(*now),
                LaneRun::Played(_) | LaneRun::Panicked(_) | LaneRun::Unopened(_) => None,
            })
            .min()
    }
}

/// Every stretch of impairment of one seed, both directions together.
fn disturbances(resolved: &Resolved, seed: u64) -> Vec<Disturbed> {
    let link = link(resolved, seed);
    let until = Time::ZERO + resolved.plan.duration + resolved.plan.grace;
    let mut disturbed: Vec<Disturbed> = [Direction::Up, Direction::Down]
        .into_iter()
        .flat_map(|direction| link.truth(direction, until))
        .map(|disturbance| Disturbed {
            from: disturbance.start,
            until: disturbance.end,
        })
        .collect();
    disturbed.sort_by_key(|disturbance| (disturbance.from, disturbance.until));
    disturbed
}

/// A link as every lane has it, whose impairments start when measuring does.
fn link(resolved: &Resolved, seed: u64) -> Link {
    Link::new(&resolved.profile, seed, resolved.regime, Time::ZERO)
}

/// The experiment with its defaults filled in, and the network as a profile
/// rather than a name, so that the document alone can be replayed.
fn experiment_as_resolved(resolved: &Resolved) -> serde_json::Value {
    let mut experiment = serde_json::to_value(&resolved.experiment).unwrap_or_default();
    if let Some(fields) = experiment.as_object_mut() {
        let profile = serde_json::to_value(&resolved.profile).unwrap_or_default();
        fields.insert("profile".to_owned(), profile);
        fields.insert("seed".to_owned(), resolved.plan.seed.into());
    }
    experiment
}
