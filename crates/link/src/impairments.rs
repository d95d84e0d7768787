//! The impairments of one direction: whether there is an outage or a burst, how
//! much is lost and how long the way is, as functions of seed and instant.
//!
//! Instants are nanoseconds of impairment time and must not decrease from call
//! to call; whoever wants to look back starts anew.

use crate::Direction;
use crate::interval::{Cursor, Length, Onset, Source};
use crate::jitter::Jitter;
use crate::keyed::{Purpose, Scope, Stream};
use crate::playback::{OpportunityCursor, StepCursor};
use crate::profile::plan::{HandoverPlan, Plan, Played, Shared};
use crate::service::Capacity;
use crate::wander::Wander;

/// Where a forward traveller stands in a direction's impairments.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    delay_ns: u64,
    loss: f64,
    outages: Cursor,
    bursts: Option<Bursts>,
    jitter: Option<Jitter>,
    handover: Option<(Stream, HandoverPlan)>,
    recorded: Option<StepCursor>,
}

#[derive(Clone, Debug)]
struct Bursts {
    cursor: Cursor,
    loss_good: f64,
    loss_bad: f64,
}

/// Delay and independent loss at an instant, jitter aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    pub(crate) delay_ns: u64,
    pub(crate) loss: f64,
}

impl Impairments {
    pub(crate) fn new(plan: &Plan, seed: u64, direction: Direction) -> Self {
        let own = scope(direction, false);
        let jitter = plan.jitter.as_ref().map(|(table, correlation)| {
            let table = table.clone();
            let stream = |purpose| Stream::new(seed, own, purpose);
            match correlation {
                None => Jitter::independent(table, stream(Purpose::Jitter)),
                Some(span) => {
                    Jitter::wandering(table, Wander::new(stream(Purpose::JitterWander), *span))
                }
            }
        });
        Self {
            delay_ns: plan.delay_ns,
            loss: plan.loss,
            outages: Cursor::new(&outages(plan, seed, direction)),
            bursts: plan.bursts.as_ref().map(|bursts| Bursts {
                cursor: Cursor::new(&burst(plan, seed, direction)),
                loss_good: bursts.value.loss_good,
                loss_bad: bursts.value.loss_bad,
            }),
            jitter,
            handover: plan.handover.as_ref().map(|handover| {
                let scope = scope(direction, handover.by_both);
                let stream = Stream::new(seed, scope, Purpose::Handover);
                (stream, handover.value)
            }),
            recorded: match &plan.played {
                Some(Played::Recorded(recording, direction)) => {
                    Some(StepCursor::new(recording.clone(), *direction))
                }
                Some(Played::Mahimahi(_)) | None => None,
            },
        }
    }

    /// Whether everything that enters is dropped.
    #[inline]
    pub(crate) fn is_out(&mut self, instant: u64) -> bool {
        self.outages.holding(instant).is_some()
    }

    /// The probability of loss by the burst process.
    #[inline]
    pub(crate) fn burst_loss(&mut self, instant: u64) -> f64 {
        let Some(bursts) = &mut self.bursts else {
            return 0.0;
        };
        if bursts.cursor.holding(instant).is_some() {
            bursts.loss_bad
        } else {
            bursts.loss_good
        }
    }

    /// Delay and independent loss, jitter aside.
    #[inline]
    pub(crate) fn base(&mut self, instant: u64) -> Base {
        let mut base = match &mut self.recorded {
            None => Base {
                delay_ns: self.delay_ns,
                loss: self.loss,
            },
            Some(cursor) => {
                let (step, _) = cursor.at(instant);
                Base {
                    delay_ns: step.delay_us * 1_000,
                    loss: f64::from(step.loss_ppm) * 1e-6,
                }
            }
        };
        if let Some((stream, plan)) = self.handover {
            let extra = stream.unit(instant / plan.every_ns, 0) * plan.extra_ns as f64;
            base.delay_ns += extra as u64;
        }
        base
    }

    /// The jitter of the packet with the coin (`slot`, `index`) that enters at
    /// `instant`.
    #[inline]
    pub(crate) fn jitter(&mut self, instant: u64, slot: u64, index: u64) -> u64 {
        match &mut self.jitter {
            None => 0,
            Some(jitter) => jitter.extra(instant, slot, index),
        }
    }

    /// The jitter in the middle case; see [`Jitter::typical`].
    pub(crate) fn typical_jitter(&mut self, instant: u64) -> u64 {
        self.jitter
            .as_mut()
            .map_or(0, |jitter| jitter.typical(instant))
    }
}

/// The sources of a direction's outages.
pub(crate) fn outages(plan: &Plan, seed: u64, direction: Direction) -> Vec<Source> {
    sources(&plan.outages, seed, direction, Purpose::Outages)
}

/// The sources of a direction's stalls, a trace's aside.
pub(crate) fn stalls(plan: &Plan, seed: u64, direction: Direction) -> Vec<Source> {
    sources(&plan.stalls, seed, direction, Purpose::Stalls)
}

/// The source of a direction's bad states, if it has any.
pub(crate) fn burst(plan: &Plan, seed: u64, direction: Direction) -> Vec<Source> {
    let source = plan.bursts.as_ref().map(|bursts| Source {
        onset: bursts.value.onset,
        length: bursts.value.length,
        stream: Stream::new(seed, scope(direction, bursts.by_both), Purpose::BurstSpans),
    });
    source.into_iter().collect()
}

/// A direction's capacity once the impairments have begun, its stalls aside.
pub(crate) fn capacity(plan: &Plan) -> Capacity {
    match &plan.played {
        None => Capacity::Steady(plan.rate),
        Some(Played::Recorded(recording, direction)) => {
            Capacity::Recorded(StepCursor::new(recording.clone(), *direction))
        }
        Some(Played::Mahimahi(opportunities)) => {
            Capacity::Opportunities(OpportunityCursor::new(opportunities.clone()))
        }
    }
}

/// Whom something concerns that is said of both directions or of one alone.
pub(crate) const fn scope(direction: Direction, by_both: bool) -> Scope {
    match (by_both, direction) {
        (true, _) => Scope::Both,
        (false, Direction::Up) => Scope::Up,
        (false, Direction::Down) => Scope::Down,
    }
}

fn sources(
    spells: &Shared<Vec<(Onset, Length)>>,
    seed: u64,
    direction: Direction,
    purpose: Purpose,
) -> Vec<Source> {
    let stream = Stream::new(seed, scope(direction, spells.by_both), purpose);
    let numbered = (0_u64..).zip(&spells.value);
    numbered
        .map(|(position, &(onset, length))| Source {
            onset,
            length,
            stream: stream.nth(position),
        })
        .collect()
}
