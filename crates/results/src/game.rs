//! What a player of a game feels, from what became of its streams.
//!
//! A client shows the world a fixed *interpolation delay* behind, between two snapshots
//! that it has. Engines take the server's time to be that of the snapshots that come
//! fastest, so the delay counts from there: the path's own delay is not part of it. While
//! the newest snapshot is older than both together there is nothing to go on to: the view
//! is frozen.
//!
//! The age over time is a saw: it grows with time and falls when a newer snapshot comes,
//! so all that is asked of it follows from its *teeth*, each from the age after one fall
//! to the age before the next.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_stats::{in_millis, nanos, position};
use lagometer_units::Time;

use crate::document::{CensoredQuantiles, Game, Milliseconds, Population, Quantiles};
use crate::metric::{Metric, Sampled};
use crate::record::MessageRecord;
use crate::within::share;

/// Freezes a minute that a player puts up with, for
/// [`Game::interpolation_needed_ms`].
pub(crate) const FREEZES_PER_MIN: f64 = 1.0;

/// What the figures of a game depend on beside what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameTerms {
    /// How far behind the server's time the client shows the world, as the fastest
    /// snapshots have that time.
    pub interpolation: Duration,
    /// How the game rolls back, if it does.
    pub rollback: Option<Rollback>,
    /// From how late on a voice frame is of no use.
    pub voice_within: Duration,
}

/// How a game rolls back to frames of which it learns the inputs late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// Length of a frame.
    pub frame: Duration,
    /// How many frames after it was made an input takes effect on either side.
    pub input_delay: u32,
    /// How many frames the game can play again; beyond, it stops and waits.
    pub most: u32,
}

/// A state of the world that was sent, or meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// The simulation time it is of.
    pub at: Time,
    /// When the client could use it; never, if something newer was there first.
    pub seen: Option<Time>,
}

/// A message that is of use by itself: an event, or a frame of voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// The instant at which it was scheduled to be sent.
    pub at: Time,
    /// The instant at which it arrived; `None` where it was lost.
    pub arrived: Option<Time>,
}

impl EventRecord {
    /// Whether it arrived within so long.
    pub(crate) fn is_within(&self, limit: Duration) -> bool {
        self.arrived.is_some_and(|at| at.since(self.at) <= limit)
    }
}

/// What became of a game's streams under one seed, beside its inputs, which are the
/// [messages](MessageRecord) of the lane. Instants count from the start of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameRecords {
    /// How long was played.
    pub played: Duration,
    /// What figures depend on beside.
    pub terms: GameTerms,
    /// Every state, in order; the server's steps.
    pub states: Vec<StateRecord>,
    /// Every event, both ways.
    pub events: Vec<EventRecord>,
    /// Every frame of voice, both ways.
    pub voice: Vec<EventRecord>,
}

impl GameRecords {
    /// What was played until `end` alone.
    #[must_use]
    pub fn until(mut self, end: Time) -> Self {
        self.played = self.played.min(end.since(Time::ZERO));
        self.states.retain(|state| state.at <= end);
        for events in [&mut self.events, &mut self.voice] {
            events.retain(|event| event.at <= end);
        }
        self
    }
}

/// One tooth of an age over time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tooth {
    /// The age at its beginning.
    pub(crate) from: u64,
    /// The age at its end, before something newer came.
    pub(crate) to: u64,
    /// The instant at which it ended, in nanoseconds since measuring began.
    pub(crate) ends: u64,
}

/// The figures of a game, all seeds together; none where there was none. `asked` are
/// figures that budgets ask for, see [`asked()`](crate::asked()).
#[must_use]
pub fn game(runs: &[(&GameRecords, &[MessageRecord])], asked: &[Metric]) -> Option<Game> {
    let terms = runs.first()?.0.terms;
    let ages: Vec<Tooth> = runs.iter().flat_map(|(run, _)| teeth(run)).collect();
    let behind: Vec<Tooth> = runs.iter().flat_map(|(run, _)| behind(run)).collect();
    let played: u64 = runs.iter().map(|(run, _)| nanos(run.played)).sum();
    let minutes = played as f64 / 60e9;
    let delay = nanos(terms.interpolation);
    let mut input_ages: Vec<u64> = runs
        .iter()
        .flat_map(|(run, inputs)| input_ages(run, inputs))
        .collect();
    let events = || runs.iter().flat_map(|(run, _)| &run.events);
    let voice = || runs.iter().flat_map(|(run, _)| &run.voice);
    let rollback = terms.rollback.map(|rollback| rollbacks(runs, rollback));
    let (mut freezes_per_min_at, mut events_within) = (BTreeMap::new(), BTreeMap::new());
    for metric in asked {
        match *metric {
            Metric::ViewFreezesAt(delay_ms) => {
                let freezes = freezes(&behind, u64::from(delay_ms) * 1_000_000);
                freezes_per_min_at.insert(Milliseconds(delay_ms), freezes as f64 / minutes);
            }
            Metric::ShareWithin(Sampled::Event, limit_ms) => {
                let limit = Duration::from_millis(u64::from(limit_ms));
                let came = events().filter(|event| event.is_within(limit)).count();
                let came = share(came as u64, events().count() as u64);
                events_within.insert(Milliseconds(limit_ms), came);
            }
            _ => {}
        }
    }
    Some(Game {
        streams: String::new(),
        interpolation_ms: in_millis(delay),
        freezes_per_min: freezes(&behind, delay) as f64 / minutes,
        frozen_s_per_min: frozen(&behind, delay) as f64 / 1e9 / minutes,
        interpolation_needed_ms: in_millis(delay_needed(&edges(&behind), minutes)),
        freezes_per_min_at,
        view_age_ms: over_time(&ages),
        input_age_ms: Quantiles::of_nanos(&mut input_ages),
        event_ms: delays(events()),
        events: Some(events().count() as u64),
        events_within,
        rollback_frames: rollback.as_ref().map(|(frames, _)| frames.clone()),
        rollback_stalled: rollback.map(|(_, stalled)| stalled),
        voice_late: (voice().next().is_some()).then(|| {
            let is_late = |frame: &&EventRecord| !frame.is_within(terms.voice_within);
            share(
                voice().filter(is_late).count() as u64,
                voice().count() as u64,
            )
        }),
    })
}

/// The teeth of the age of what a client has. It begins with the world as it is when
/// measuring starts.
pub(crate) fn teeth(run: &GameRecords) -> Vec<Tooth> {
    let played = nanos(run.played);
    let mut seen: Vec<(u64, u64)> = run
        .states
        .iter()
        .filter_map(|state| Some((state.seen?.as_nanos(), state.at.as_nanos())))
        .filter(|&(seen, _)| seen < played)
        .collect();
    seen.sort_unstable();
    let (mut newest, mut from) = (0, 0);
    let mut teeth = Vec::with_capacity(seen.len() + 1);
    // Of several that come at one instant the newest alone is of any length.
    let mut end_at = |newest: u64, from: u64, ends: u64| {
        let to = ends.saturating_sub(newest);
        if to > from {
            teeth.push(Tooth { from, to, ends });
        }
    };
    for (seen, at) in seen {
        if at > newest {
            end_at(newest, from, seen);
            newest = at;
            from = seen.saturating_sub(at);
        }
    }
    end_at(newest, from, played);
    teeth
}

/// The teeth of how far the newest state is behind the server's time as the fastest state
/// of the run has it.
pub(crate) fn behind(run: &GameRecords) -> Vec<Tooth> {
    let ways = run
        .states
        .iter()
        .filter_map(|state| Some(state.seen?.since(state.at)));
    let fastest = ways.min().map_or(0, nanos);
    let mut teeth = teeth(run);
    for tooth in &mut teeth {
        tooth.from = tooth.from.saturating_sub(fastest);
        tooth.to = tooth.to.saturating_sub(fastest);
    }
    teeth
}

/// Stretches in which the age is above `delay`. Those of two teeth are one where the age
/// between them does not fall below it; what is as fresh as can be ends any.
pub(crate) fn freezes(teeth: &[Tooth], delay: u64) -> u64 {
    let above = teeth.iter().filter(|tooth| tooth.to > delay);
    let begun = above.filter(|tooth| tooth.from < delay || tooth.from == 0);
    begun.count() as u64
}

/// For how long the age is above `delay`, in nanoseconds.
pub(crate) fn frozen(teeth: &[Tooth], delay: u64) -> u64 {
    teeth
        .iter()
        .map(|tooth| tooth.to.saturating_sub(tooth.from.max(delay)))
        .sum()
}

/// Where the number of freezes changes as the delay goes down, greatest age first: by one
/// more at the end of a tooth, by one less at its beginning.
pub(crate) fn edges(teeth: &[Tooth]) -> Vec<(u64, i64)> {
    let mut edges: Vec<(u64, i64)> = teeth
        .iter()
        .flat_map(|tooth| [(tooth.to, 1), (tooth.from, -1)])
        .collect();
    edges.sort_unstable_by_key(|&edge| std::cmp::Reverse(edge));
    edges
}

/// The least delay from which on there are at most [`FREEZES_PER_MIN`], in nanoseconds.
pub(crate) fn delay_needed(edges: &[(u64, i64)], minutes: f64) -> u64 {
    let mut freezes = 0;
    let mut rest = edges;
    while let Some(&(age, _)) = rest.first() {
        let same = rest.iter().take_while(|&&(other, _)| other == age).count();
        freezes += rest[..same].iter().map(|&(_, change)| change).sum::<i64>();
        if freezes as f64 > FREEZES_PER_MIN * minutes {
            return age;
        }
        rest = &rest[same..];
    }
    0
}

/// Quantiles of an age over all the time there was.
fn over_time(teeth: &[Tooth]) -> Quantiles {
    // Upwards a tooth opens where it begins.
    let edges = edges(teeth).into_iter().rev();
    let edges: Vec<(u64, i64)> = edges.map(|(age, change)| (age, -change)).collect();
    let total: u64 = teeth.iter().map(|tooth| tooth.to - tooth.from).sum();
    let sum: f64 = teeth
        .iter()
        .map(|tooth| (tooth.to - tooth.from) as f64 * (tooth.to + tooth.from) as f64 / 2.0)
        .sum();
    let at = |per_mille| in_millis(at_per_mille(&edges, per_mille));
    Quantiles {
        min: at(0),
        p50: at(500),
        p90: at(900),
        p99: at(990),
        p99_9: at(999),
        max: at(1000),
        mean: if total == 0 {
            0.0
        } else {
            sum / total as f64 / 1e6
        },
    }
}

/// The age in nanoseconds that so many thousandths of all time do not exceed, of teeth
/// that open (positive) and close (negative) at these ages, least age first.
pub(crate) fn at_per_mille(edges: &[(u64, i64)], per_mille: u32) -> u64 {
    let total: i128 = edges
        .iter()
        .map(|&(age, opens)| i128::from(age) * i128::from(-opens))
        .sum();
    let wanted = total.unsigned_abs() * u128::from(per_mille) / 1000;
    let (mut passed, mut open, mut age) = (0_u128, 0_u64, 0_u64);
    for &(edge, opens) in edges {
        let more = u128::from(open) * u128::from(edge - age);
        if open > 0 && passed + more >= wanted {
            return age + ((wanted - passed) / u128::from(open)) as u64;
        }
        passed += more;
        age = edge;
        open = open.saturating_add_signed(opens);
    }
    age
}

/// The age of the newest input that the server has, at each of its steps.
pub(crate) fn input_ages(run: &GameRecords, inputs: &[MessageRecord]) -> Vec<u64> {
    let mut arrived: Vec<(Time, Time)> = inputs
        .iter()
        .filter_map(|input| Some((input.arrived?, input.intended)))
        .collect();
    arrived.sort_unstable();
    let mut arrived = arrived.into_iter().peekable();
    let mut newest = Time::ZERO;
    run.states
        .iter()
        .map(|state| {
            while let Some((_, intended)) = arrived.next_if(|&(at, _)| at <= state.at) {
                newest = newest.max(intended);
            }
            nanos(state.at.since(newest))
        })
        .collect()
}

/// The delays of events, sorted, and how many never came; none without events.
fn delays<'a>(events: impl Iterator<Item = &'a EventRecord>) -> Option<CensoredQuantiles> {
    let (mut delays, mut lost) = (Vec::new(), 0);
    for event in events {
        match event.arrived {
            Some(at) => delays.push(nanos(at.since(event.at))),
            None => lost += 1,
        }
    }
    delays.sort_unstable();
    (!delays.is_empty() || lost > 0)
        .then(|| CensoredQuantiles::of_sorted_nanos(Population::Intended, &delays, lost))
}

/// Of each input of both sides when it was made, and by how many frames it rolled the
/// other side back; none if it never came.
pub(crate) fn rolled_back<'a>(
    run: &'a GameRecords,
    inputs: &'a [MessageRecord],
    rollback: Rollback,
) -> impl Iterator<Item = (Time, Option<u64>)> + 'a {
    let frame = nanos(rollback.frame).max(1);
    let foreseen = frame * u64::from(rollback.input_delay);
    let ups = inputs.iter().map(|input| (input.intended, input.arrived));
    let downs = run.states.iter().map(|state| (state.at, state.seen));
    ups.chain(downs).map(move |(at, came)| {
        let late = came.map(|came| nanos(came.since(at)).saturating_sub(foreseen));
        (at, late.map(|late| late.div_ceil(frame)))
    })
}

impl Rollback {
    /// Whether the game has to wait for an input that rolls it back by so many frames.
    pub(crate) fn stalls(self, frames: Option<u64>) -> bool {
        frames.is_none_or(|frames| frames > u64::from(self.most))
    }
}

/// By how many frames inputs rolled the game back, and the share of those for which it had
/// to wait.
fn rollbacks(
    runs: &[(&GameRecords, &[MessageRecord])],
    rollback: Rollback,
) -> (CensoredQuantiles, f64) {
    let each = runs
        .iter()
        .flat_map(|(run, inputs)| rolled_back(run, inputs, rollback));
    let all: Vec<Option<u64>> = each.map(|(_, frames)| frames).collect();
    let stalled = all
        .iter()
        .filter(|&&frames| rollback.stalls(frames))
        .count();
    let mut frames: Vec<u64> = all.iter().copied().flatten().collect();
    frames.sort_unstable();
    let (came, inputs) = (frames.len() as u64, all.len() as u64);
    let at = |per_mille| {
        let position = position(per_mille, came, inputs - came);
        let value = position.value(|rank| frames[rank as usize - 1] as f64);
        value.filter(|value| value.is_finite())
    };
    let sum: u64 = frames.iter().sum();
    let quantiles = CensoredQuantiles {
        of: Population::Intended,
        min: at(0),
        p50: at(500),
        p90: at(900),
        p99: at(990),
        p99_9: at(999),
        max: at(1000),
        mean: (came == inputs && came > 0).then(|| sum as f64 / came as f64),
    };
    (quantiles, share(stalled as u64, inputs))
}

#[cfg(test)]
mod tests;
