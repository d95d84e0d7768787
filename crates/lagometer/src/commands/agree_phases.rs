//! BBR's phases, as the kernel drew them.
//!
//! Each time that BBR begins to probe for bandwidth, about every 10 s, a kernel draws in
//! which of seven phases from random numbers of its own. What is random is not held
//! against it: `sim` plays a lane with the phases that keep it like the kernel's for
//! longest.

use std::time::Duration;

use lagometer_lab::{LaneOutcome, LaneRun, Resolved, RunOptions, SeedRun, play};
use lagometer_results::{MessageRecord, message_agreement};
use lagometer_tcp::PhaseSearch;
use serde_json::json;

use super::agree::set;

/// How far apart messages are that distinguish a phase from another, the finest first: until
/// then packets leave at the same microsecond.
const APART: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// Phases that are drawn for certain in a play of no length, and how long it takes until
/// the next at the soonest.
const FIRST_PHASES: u64 = 3;
const PHASE_SECONDS: u64 = 5;

/// A lane whose messages in `sim` are as the kernel's for as long as phases can make
/// them so: what is played, and the play.
pub(super) struct Fitted {
    pub(super) resolved: Resolved,
    pub(super) run: LaneRun,
}

/// Whether a lane has phases.
pub(super) fn has_phases(resolved: &Resolved, lane: usize) -> bool {
    let settings = resolved.lanes[lane].transport.settings_json();
    settings.get("congestion_control") == Some(&json!("bbr"))
}

/// Looks for the phases that the kernel drew in `lane` with `seed`, from the round trips
/// of its messages; nothing where the lane cannot be played.
pub(super) fn fitted(
    resolved: &Resolved,
    lane: usize,
    seed: u64,
    kernels: &[MessageRecord],
) -> Option<Fitted> {
    let mut searches = [PhaseSearch::default(), PhaseSearch::default()];
    let mut best = played(resolved, lane, seed, &searches)?;
    for apart in APART {
        let parted = |run: &LaneRun| match run {
            LaneRun::Played(outcome) => parts(outcome, kernels, apart),
            _ => Some((0, Duration::ZERO)),
        };
        searches.iter_mut().for_each(PhaseSearch::restart);
        let mut side = 0;
        // Both sides were asked in vain.
        let mut in_vain = 0;
        while in_vain < 2
            && let Some((number, at)) = parted(&best.run)
        {
            let drawn = FIRST_PHASES + at.as_secs() / PHASE_SECONDS;
            if !searches[side].next(drawn as usize) {
                searches[side].restart();
                in_vain += 1;
                side = 1 - side;
                continue;
            }
            let found = played(resolved, lane, seed, &searches)?;
            if parted(&found.run).is_none_or(|(later, _)| later > number) {
                searches[side].keep();
                best = found;
                in_vain = 0;
            }
        }
    }
    Some(best)
}

/// The first message that is more than `apart` from the kernel's, and when it was meant
/// to leave.
fn parts(
    outcome: &LaneOutcome,
    kernels: &[MessageRecord],
    apart: Duration,
) -> Option<(u64, Duration)> {
    let first = message_agreement(&outcome.records, kernels, apart).first?;
    Some((
        first.number,
        Duration::from_nanos(first.intended.as_nanos()),
    ))
}

/// Plays a lane with the phases that are asked for.
fn played(resolved: &Resolved, lane: usize, seed: u64, asked: &[PhaseSearch; 2]) -> Option<Fitted> {
    let mut resolved = resolved.clone();
    let mut lane = resolved.lanes.swap_remove(lane);
    let phases: [&[u8]; 2] = [asked[0].asked(), asked[1].asked()];
    if !set(&mut lane, "bbr_phases", json!(phases)) {
        return None;
    }
    resolved.lanes = vec![lane];
    let options = RunOptions {
        seeds: vec![seed],
        threads: 1,
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let SeedRun { lanes, .. } = play(&resolved, &options, &|_| {}, &stop).pop()?;
    let run = lanes.into_iter().next()?;
    Some(Fitted { resolved, run })
}
