//! From what one lane did under all seeds to its part of the document.

use std::time::Duration;

use lagometer_results::{
    Disturbed, FlowRecords, Game, GameRecords, Lane, MessageRecord, PlayerCost, SeedCost,
    SeedRun as SeedRecords, Warning, Wire, figures, player_cost,
};
use lagometer_testbed::promises;
use lagometer_transport::PresetKind;
use lagometer_units::Time;

use super::{CUT_MARGIN, asked};
use crate::outcome::{Cost, LaneEnd, LaneOutcome, PlayBytes};
use crate::plan::Plan;
use crate::resolve::{Resolved, RunnableLane, UnrunnableLane};
use crate::runner::LaneRun;

pub(super) fn assemble_lane(
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
        .filter_map(|(run, disturbed)| PlayedSeed::of(resolved, run, disturbed, last_intended))
        .collect();
    let seed_records: Vec<SeedRecords<'_>> = played.iter().map(PlayedSeed::records).collect();
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
    let figures = figures(&seed_records, &asked(resolved), lag_threshold);
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

/// What a lane did under one seed, as far as it is reported.
struct PlayedSeed<'a> {
    seed: u64,
    outcome: &'a LaneOutcome,
    records: Vec<MessageRecord>,
    game: Option<GameRecords>,
    flows: Option<FlowRecords>,
    cost: Option<SeedCost>,
    disturbed: &'a [Disturbed],
}

impl<'a> PlayedSeed<'a> {
    /// What was meant to be sent until `last`, where the run was cut; `None` where the
    /// lane could not play.
    fn of(
        resolved: &Resolved,
        &(seed, run): &(u64, &'a LaneRun),
        disturbed: &'a [Disturbed],
        last: Option<Time>,
    ) -> Option<Self> {
        let outcome = run.outcome()?;
        let (mut records, mut game) = (outcome.records.clone(), outcome.game.clone());
        let mut flows = outcome.flows.clone();
        if let Some(last) = last {
            records.retain(|record| record.intended <= last);
            game = game.map(|game| game.until(last));
            flows = flows.map(|flows| flows.until(last));
        }
        Some(Self {
            seed,
            outcome,
            records,
            game,
            flows,
            cost: seed_cost(resolved, outcome),
            disturbed,
        })
    }

    fn records(&self) -> SeedRecords<'_> {
        SeedRecords {
            seed: self.seed,
            records: &self.records,
            disturbed: self.disturbed,
            overhead: overhead(&[self.outcome]),
            cost: self.cost,
            game: self.game.as_ref(),
            flows: self.flows.as_ref(),
        }
    }
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

pub(super) fn unrunnable_lane(lane: &UnrunnableLane) -> Lane {
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

/// The same of one seed.
pub(super) fn seed_cost(resolved: &Resolved, outcome: &LaneOutcome) -> Option<SeedCost> {
    let cost = outcome.cost.clone().unwrap_or_default();
    player_hours(resolved, &[outcome], &cost).map(|hour| SeedCost::from(&hour))
}

/// Bytes on the wire over the payload of all messages that were handed to the
/// transport at both ends; nothing where none was.
pub(super) fn overhead(outcomes: &[&LaneOutcome]) -> Option<f64> {
    let sum = |of: fn(&LaneOutcome) -> u64| {
        let each = outcomes.iter().map(|outcome| of(outcome));
        each.fold(0, u64::saturating_add)
    };
    let payload_bytes = sum(|outcome| outcome.payload_bytes);
    // What is sent while the last echoes are waited for is no game's: how long that is
    // hangs on what was lost last.
    let bytes = sum(|outcome| outcome.wire.play.up.saturating_add(outcome.wire.play.down));
    (payload_bytes > 0).then(|| bytes as f64 / payload_bytes as f64)
}

pub(super) fn lane_warnings(lane: &Lane, runs: &[(u64, &LaneRun)]) -> Vec<Warning> {
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
