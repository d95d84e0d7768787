//! From what the lanes did to the one result document.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use lagometer_link::{Direction, Link};
use lagometer_results::{
    Audit, Disturbed, Document, FlowRecords, Game, GameRecords, Host, LAG_ABOVE, Lane,
    MessageRecord, PlayerCost, SeedFigures, SeedRun as SeedRecords, Warning, Wire, figures,
    player_cost,
};
use lagometer_testbed::{Testbed, promises};
use lagometer_transport::PresetKind;
use lagometer_units::{Span, Time};

use crate::bottleneck;
use crate::impairments;
use crate::outcome::{Cost, LaneEnd, LaneOutcome, PlayBytes};
use crate::plan::Plan;
use crate::resolve::{ResolveError, Resolved, RunnableLane, UnrunnableLane};
use crate::runner::{LaneRun, SeedRun};

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
/// that every lane tells of the same play.
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

    let mut warnings = Vec::new();
    let mut lanes: Vec<Lane> = resolved
        .lanes
        .iter()
        .enumerate()
        .map(|(index, lane)| {
            let of_lane: Vec<(u64, &LaneRun)> = runs
                .iter()
                .map(|run| (run.seed, &run.lanes[index]))
                .collect();
            let assembled =
                assemble_lane(resolved, lane, &of_lane, &link_truths, horizon, threshold);
            warnings.extend(lane_warnings(&assembled, &of_lane));
            assembled
        })
        .collect();
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
        game: outcome.game.as_ref(),
        flows: outcome.flows.as_ref(),
    };
    let threshold = lag_threshold(resolved, Some(Testbed::Sim), &[]);
    Some(lagometer_results::seed_figures(
        &run,
        &limits_ms(resolved),
        threshold,
    ))
}

fn limits_ms(resolved: &Resolved) -> Vec<u32> {
    let mut limits = lagometer_results::limits_ms(&resolved.experiment.budgets);
    limits.extend(&resolved.limits_ms);
    // The page and the ranking of lanes go by it.
    let within = resolved.experiment.workload.of_use_within();
    limits.extend(within.and_then(|within| u32::try_from(within.as_millis()).ok()));
    limits
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

fn assemble_lane(
    resolved: &Resolved,
    lane: &RunnableLane,
    runs: &[(u64, &LaneRun)],
    link_truths: &[Vec<Disturbed>],
    horizon: Option<Time>,
    lag_threshold: Option<Duration>,
) -> Lane {
    let last_intended = horizon
        .map(|horizon| Time::ZERO + (horizon - CUT_MARGIN).since(resolved.plan.measuring_starts()));
    // A seed in which the lane could not play is left out with its own truth.
    let played: Vec<PlayedSeed<'_>> = runs
        .iter()
        .zip(link_truths)
        .filter_map(|(&(seed, run), disturbed)| {
            let outcome = run.outcome()?;
            let (mut records, mut game) = (outcome.records.clone(), outcome.game.clone());
            let mut flows = outcome.flows.clone();
            if let Some(last) = last_intended {
                records.retain(|record| record.intended <= last);
                game = game.map(|game| game.until(last));
                flows = flows.map(|flows| flows.until(last));
            }
            Some(PlayedSeed {
                seed,
                outcome,
                records,
                game,
                flows,
                disturbed,
            })
        })
        .collect();
    let seed_records: Vec<SeedRecords<'_>> = played
        .iter()
        .map(|played| SeedRecords {
            seed: played.seed,
            records: &played.records,
            disturbed: played.disturbed,
            overhead: overhead(&[played.outcome]),
            game: played.game.as_ref(),
            flows: played.flows.as_ref(),
        })
        .collect();
    let limits = limits_ms(resolved);
    let outcomes: Vec<&LaneOutcome> = played.iter().map(|each| each.outcome).collect();
    let mut cost = Cost::default();
    for of_seed in outcomes.iter().filter_map(|outcome| outcome.cost.as_ref()) {
        cost += of_seed;
    }
    let messages = outcomes
        .iter()
        .flat_map(|outcome| &outcome.records)
        .filter(|record| record.accepted.is_some())
        .count();
    let figures = figures(&seed_records, &limits, lag_threshold);
    let hour = player_hours(resolved, &outcomes, &cost);
    let figures = figures.into_lane(&lane.name, lane.transport.transport());
    Lane {
        game: figures.game.clone().map(|game| Game {
            streams: lane.transport.offer().to_string(),
            ..game
        }),
        family: lane.presets.as_ref().map(|presets| presets.family.clone()),
        presets: lane
            .presets
            .iter()
            .flat_map(|it| &it.kinds)
            .map(PresetKind::to_string)
            .collect(),
        settings: lane.transport.settings_json(),
        library: lane.transport.library(),
        properties: Some(promises(&lane.transport)),
        failure: runs.iter().find_map(|(_, run)| run.failure()),
        wire: Some(wire(&outcomes)).filter(|wire| wire.packets > 0),
        cost: hour,
        cpu_ns_per_message: per_message(
            &(cost.cpu + cost.kernel_cpu.unwrap_or_default()),
            messages,
        ),
        kernel_cpu_ns_per_message: cost
            .kernel_cpu
            .and_then(|kernel| per_message(&kernel, messages)),
        library_cpu_ns_per_message: per_message(&cost.library_cpu, messages)
            .filter(|_| !cost.library_cpu.is_zero()),
        system_calls_per_message: (cost.system_calls > 0 && messages > 0)
            .then(|| rounded(cost.system_calls as f64 / messages as f64)),
        socket_path: Some(cost.path).filter(|path| !path.is_empty()),
        ..figures
    }
}

/// What a lane did under one seed, as far as is told of it.
struct PlayedSeed<'a> {
    seed: u64,
    outcome: &'a LaneOutcome,
    records: Vec<MessageRecord>,
    game: Option<GameRecords>,
    flows: Option<FlowRecords>,
    disturbed: &'a [Disturbed],
}

impl LaneRun {
    pub(crate) fn outcome(&self) -> Option<&LaneOutcome> {
        match self {
            Self::Played(outcome) | Self::Cut(outcome, _) => Some(outcome),
            Self::Panicked(_) | Self::Unopened(_) => None,
        }
    }

    /// Why the lane's figures are not those of a connection that stood all
    /// the time, if so.
    fn failure(&self) -> Option<String> {
        match self {
            Self::Panicked(why) => Some(format!("the transport's library panicked: {why}")),
            Self::Unopened(why) => Some(format!("its sockets could not be made: {why}")),
            Self::Played(outcome) | Self::Cut(outcome, _) => match outcome.end.as_ref()? {
                LaneEnd::Done => None,
                LaneEnd::NeverReady => Some(format!(
                    "no connection after {} s on the calm link",
                    Plan::LEAD_IN.as_secs()
                )),
                LaneEnd::Died(why) => Some(format!("the connection was lost: {why}")),
                LaneEnd::NoProgress => {
                    Some("the endpoint asks to be woken without end at one instant".to_owned())
                }
            },
        }
    }
}

/// CPU time for each message in nanoseconds, where any was used and any
/// message sent.
fn per_message(cpu: &Duration, messages: usize) -> Option<f64> {
    (!cpu.is_zero() && messages > 0).then(|| rounded(cpu.as_nanos() as f64 / messages as f64))
}

/// To a tenth: more digits than that are noise.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn unrunnable_lane(lane: &UnrunnableLane) -> Lane {
    Lane {
        failure: Some(lane.why.clone()),
        ..figures(&[], &[], None).into_lane(&lane.name, &lane.transport)
    }
}

/// What the lane put on the wire, all seeds together.
fn wire(outcomes: &[&LaneOutcome]) -> Wire {
    let mut wire = Wire {
        overhead: overhead(outcomes).unwrap_or(0.0),
        ..Wire::default()
    };
    for outcome in outcomes {
        wire.up_packets += outcome.wire.up_packets;
        wire.down_packets += outcome.wire.down_packets;
        wire.bytes += outcome.wire.bytes;
        for (reason, count) in &outcome.wire.dropped {
            *wire.dropped.entry(reason.to_string()).or_default() += count;
        }
    }
    wire.packets = wire.up_packets + wire.down_packets;
    wire
}

/// What a player's hour takes and costs, of all seeds together: one player played each.
fn player_hours(resolved: &Resolved, outcomes: &[&LaneOutcome], cost: &Cost) -> Option<PlayerCost> {
    let mut play = PlayBytes::default();
    for outcome in outcomes {
        play += outcome.wire.play;
    }
    if play.up + play.down == 0 {
        return None;
    }
    let hours = |span: Duration| span.as_secs_f64() / 3600.0;
    let server = (!cost.server_cpu.is_zero()).then(|| hours(cost.server_cpu));
    let prices = resolved.experiment.price_lists();
    let bytes = [play.up as f64, play.down as f64];
    player_cost(bytes, hours(play.over), server, &prices)
}

/// Bytes on the wire over the payload of all messages that were handed to the
/// transport at both ends; nothing where none was.
fn overhead(outcomes: &[&LaneOutcome]) -> Option<f64> {
    let sum = |of: fn(&LaneOutcome) -> u64| outcomes.iter().map(|outcome| of(outcome)).sum::<u64>();
    let payload_bytes = sum(|outcome| outcome.payload_bytes);
    let bytes = sum(|outcome| outcome.wire.bytes);
    (payload_bytes > 0).then(|| bytes as f64 / payload_bytes as f64)
}

fn lane_warnings(lane: &Lane, runs: &[(u64, &LaneRun)]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let outcomes = || runs.iter().filter_map(|(_, run)| run.outcome());
    let damaged: u64 = outcomes()
        .map(|outcome| outcome.misdeliveries.damaged)
        .sum();
    let duplicated: u64 = outcomes()
        .map(|outcome| outcome.misdeliveries.duplicated)
        .sum();
    if damaged + duplicated > 0 {
        warnings.push(Warning {
            what: format!(
                "`{}` delivered {damaged} damaged and {duplicated} doubled messages",
                lane.lane
            ),
            why: "a transport must never do that; its other figures are in doubt".to_owned(),
            mend: "report it with the experiment and the seed".to_owned(),
        });
    }
    let never_taken = outcomes()
        .flat_map(|outcome| &outcome.records)
        .filter(|record| record.refused && record.accepted.is_none())
        .count();
    if lane.messages.refused > 0 && lane.failure.is_none() {
        let (until, why, mend) = if never_taken > 0 {
            (
                format!(", {never_taken} of them for good"),
                "they are larger than it carries, or its send buffer was full until the end; they count as lost",
                "send smaller messages, or less",
            )
        } else {
            (
                " for a while".to_owned(),
                "its send buffer was full; the wait is part of the delays shown",
                "a larger send window or buffer in the lane's settings keeps the wait inside the transport",
            )
        };
        warnings.push(Warning {
            what: format!(
                "`{}` refused {} of {} messages{until}",
                lane.lane, lane.messages.refused, lane.messages.intended
            ),
            why: why.to_owned(),
            mend: mend.to_owned(),
        });
    }
    warnings
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
