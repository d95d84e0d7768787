//! The link's truth: what its impairments are and when, without any traffic.

use std::time::Duration;

use lagometer_units::Time;

use crate::Direction;
use crate::impairments::{self, Impairments};
use crate::interval::{Cursor, Interval, Union};
use crate::playback::StepCursor;
use crate::profile::plan::{Plan, Played};
use crate::trace::{Opportunities, Recording};

/// A stretch of impairment. Times are impairment time: zero is the instant at
/// which the impairments start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Outage, stall or burst.
    pub kind: DisturbanceKind,
    /// When it starts.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
}

/// What is wrong during a disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DisturbanceKind {
    /// All that enters is dropped.
    Outage,
    /// Nothing is served and everything waits. In a Mahimahi trace, where
    /// delivery always pauses between two opportunities, a pause of at least
    /// 100 ms.
    Stall,
    /// The bad state of burst loss.
    Burst,
}

impl DisturbanceKind {
    /// The kind in one word, as documents have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::Stall => "stall",
            Self::Burst => "burst",
        }
    }
}

/// What a lone small packet meets that enters at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// The one-way delay without queueing: base, handover and recorded delay,
    /// and jitter: the wandering level where jitter is correlated, its median
    /// where each packet draws for itself.
    pub delay: Duration,
    /// How long it waits for a stall to end first.
    pub held: Duration,
    /// The probability that it is lost, between 0 and 1; 1 during an outage.
    pub loss: f64,
    /// Bits per second; `None` is no limit, zero a stall. Of a Mahimahi trace,
    /// its mean.
    pub rate_bits_per_second: Option<u64>,
}

/// A pause of a Mahimahi trace that counts as a stall.
const LONG_PAUSE_NS: u64 = 100_000_000;

/// All disturbances of a direction that start before `until`, by start.
pub(crate) fn disturbances(
    plan: &Plan,
    seed: u64,
    direction: Direction,
    until: u64,
) -> Vec<Disturbance> {
    let mut found = Vec::new();
    let mut add = |kind, intervals: &mut dyn Iterator<Item = Interval>| {
        let started = intervals.take_while(|interval| interval.start < until);
        found.extend(started.map(|interval| Disturbance {
            kind,
            start: Time::from_nanos(interval.start),
            end: Time::from_nanos(interval.end),
        }));
    };
    for (kind, sources) in [
        (
            DisturbanceKind::Outage,
            impairments::outages(plan, seed, direction),
        ),
        (
            DisturbanceKind::Stall,
            impairments::stalls(plan, seed, direction),
        ),
        (
            DisturbanceKind::Burst,
            impairments::burst(plan, seed, direction),
        ),
    ] {
        add(kind, &mut Union::new(&sources));
    }
    match &plan.played {
        None => {}
        Some(Played::Recorded(recording, direction)) => {
            let steps = recording.steps(*direction).iter();
            let mut outages = Vec::new();
            let mut stalls = Vec::new();
            for (index, step) in steps.enumerate() {
                let interval = step_interval(recording, *direction, index);
                if step.loss_ppm == 1_000_000 {
                    outages.push(interval);
                }
                if step.rate_bits_per_second == Some(0) {
                    stalls.push(interval);
                }
            }
            let lasts = recording.lasts_us() * 1_000;
            add(DisturbanceKind::Outage, &mut Looped::new(outages, lasts));
            add(DisturbanceKind::Stall, &mut Looped::new(stalls, lasts));
        }
        Some(Played::Mahimahi(opportunities)) => {
            let pauses = long_pauses(opportunities);
            let mut looped = Looped::new(pauses, opportunities.lasts());
            add(DisturbanceKind::Stall, &mut looped);
        }
    }
    found.sort_by_key(|disturbance| (disturbance.start, disturbance.kind));
    found
}

/// What a lone small packet meets at `from` and every `step` after, before
/// `until`.
pub(crate) fn conditions(
    plan: &Plan,
    seed: u64,
    direction: Direction,
    (from, until, step): (u64, u64, u64),
) -> Vec<(Time, Conditions)> {
    let mut impairments = Impairments::new(plan, seed, direction);
    let mut stalls = Cursor::new(&impairments::stalls(plan, seed, direction));
    let mut recorded = match &plan.played {
        Some(Played::Recorded(recording, direction)) => {
            Some(StepCursor::new(recording.clone(), *direction))
        }
        Some(Played::Mahimahi(_)) | None => None,
    };
    let mut sampled = Vec::new();
    let mut instant = from;
    while instant < until {
        let base = impairments.base(instant);
        let outage = f64::from(u8::from(impairments.is_out(instant)));
        let passes = (1.0 - outage) * (1.0 - base.loss) * (1.0 - impairments.burst_loss(instant));
        let stalled_until = stalls.holding(instant).map(|stall| stall.end);
        let (mut rate, mut ready) = (plan.calm_rate(), stalled_until.unwrap_or(instant));
        if let Some(cursor) = &mut recorded {
            rate = cursor.at(instant).0.rate_bits_per_second;
            ready = first_moving(cursor.clone(), instant);
        }
        let conditions = Conditions {
            delay: Duration::from_nanos(base.delay_ns + impairments.typical_jitter(instant)),
            held: Duration::from_nanos(ready - instant),
            loss: 1.0 - passes,
            rate_bits_per_second: if stalled_until.is_some() {
                Some(0)
            } else {
                rate
            },
        };
        sampled.push((Time::from_nanos(instant), conditions));
        instant = instant.saturating_add(step.max(1));
    }
    sampled
}

/// The first instant from `instant` on at which a recording's rate is not 0.
fn first_moving(mut cursor: StepCursor, mut instant: u64) -> u64 {
    loop {
        let (step, until) = cursor.at(instant);
        if step.rate_bits_per_second != Some(0) {
            return instant;
        }
        instant = until;
    }
}

fn step_interval(recording: &Recording, direction: Direction, index: usize) -> Interval {
    let steps = recording.steps(direction);
    let end_us = steps
        .get(index + 1)
        .map_or(recording.lasts_us(), |next| next.from_us);
    Interval {
        start: steps[index].from_us * 1_000,
        end: end_us * 1_000,
    }
}

fn long_pauses(opportunities: &Opportunities) -> Vec<Interval> {
    let instants = opportunities.instants();
    let starts = [0].iter().chain(instants);
    starts
        .zip(instants)
        .filter(|&(start, end)| end - start >= LONG_PAUSE_NS)
        .map(|(&start, &end)| Interval { start, end })
        .collect()
}

/// Intervals that recur with a period, merged where they touch.
struct Looped {
    intervals: Vec<Interval>,
    period: u64,
    made: u64,
}

impl Looped {
    const fn new(intervals: Vec<Interval>, period: u64) -> Self {
        Self {
            intervals,
            period,
            made: 0,
        }
    }

    /// The interval numbered `nth` through all rounds.
    fn interval(&self, nth: u64) -> Option<Interval> {
        let count = self.intervals.len() as u64;
        let shift = nth.checked_div(count)?.checked_mul(self.period)?;
        let interval = self.intervals[(nth % count) as usize];
        Some(Interval {
            start: interval.start.checked_add(shift)?,
            end: interval.end.checked_add(shift)?,
        })
    }
}

impl Iterator for Looped {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        let mut merged = self.interval(self.made)?;
        self.made += 1;
        // No further than a round: what is always so would never end.
        let latest = merged.start.saturating_add(self.period);
        while let Some(next) = self.interval(self.made) {
            if next.start > merged.end || merged.end >= latest {
                break;
            }
            merged.end = next.end;
            self.made += 1;
        }
        Some(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_a_word_for_each_kind_of_disturbance() {
        use DisturbanceKind::{Burst, Outage, Stall};
        assert_eq!(
            [Outage, Stall, Burst].map(DisturbanceKind::name),
            ["outage", "stall", "burst"]
        );
    }
}
