//! When a game's messages are meant to leave and how large they are: all that both sides
//! know beforehand.

use std::time::Duration;

use lagometer_results::{GameTerms, Rollback};
use lagometer_transport::Offer;
use lagometer_units::Time;

use super::GameTraffic;
use super::message::HEADER_BYTES;
use crate::draw::Draw;
use crate::plan::Plan;
use crate::workload::LaneWorkload as _;

/// What is drawn, each from a sequence of its own.
mod purpose {
    pub(super) const PHASE: u64 = 0x6A61_0001;
    pub(super) const SIZE: u64 = 0x6A61_0002;
    pub(super) const EVENTS_UP: u64 = 0x6A61_0003;
    pub(super) const EVENTS_DOWN: u64 = 0x6A61_0004;
}

/// The schedule of one lane's game. Offsets count from the start of measuring.
///
/// The game goes on through the time in which last messages are waited for; what is meant
/// to leave then is not recorded.
#[derive(Clone, Debug)]
pub struct Schedule {
    traffic: GameTraffic,
    offer: Offer,
    seed: u64,
    /// How long is recorded.
    played: Duration,
    /// How long is played.
    whole: Duration,
    /// How long after the client's first input the server's first step is.
    phase: Duration,
    events_up: Vec<Duration>,
    events_down: Vec<Duration>,
}

impl Schedule {
    /// That of a plan, over a transport that offers so much.
    #[must_use]
    pub fn new(traffic: &GameTraffic, plan: &Plan) -> Self {
        let seed = plan.seed;
        let step = Duration::from_secs(1) / traffic.snapshots.rate;
        let whole = plan.duration + plan.grace;
        let events = |rate: Option<f64>, purpose| {
            events_within(rate.unwrap_or(0.0), whole, &mut draw(seed, purpose, 0))
        };
        Self {
            offer: plan.offer,
            seed,
            played: plan.duration,
            whole,
            phase: step.mul_f64(draw(seed, purpose::PHASE, 0).unit()),
            events_up: events(traffic.events.map(|events| events.up), purpose::EVENTS_UP),
            events_down: events(
                traffic.events.map(|events| events.down),
                purpose::EVENTS_DOWN,
            ),
            traffic: traffic.clone(),
        }
    }

    pub(super) fn traffic(&self) -> &GameTraffic {
        &self.traffic
    }

    pub(super) const fn offer(&self) -> Offer {
        self.offer
    }

    pub(super) const fn seed(&self) -> u64 {
        self.seed
    }

    /// How long is recorded.
    pub(super) const fn played(&self) -> Duration {
        self.played
    }

    /// When input `number` is made; none once the game is over.
    pub(super) fn input(&self, number: u32) -> Option<Duration> {
        self.within(Duration::ZERO, self.traffic.inputs.rate, number)
    }

    /// When the server's step `number` is.
    pub(super) fn state(&self, number: u32) -> Option<Duration> {
        self.within(self.phase, self.traffic.snapshots.rate, number)
    }

    /// When voice frame `number` is, on either side.
    pub(super) fn voice(&self, number: u32) -> Option<Duration> {
        let every = self.traffic.voice?.every.duration();
        Some(every.saturating_mul(number)).filter(|&at| at < self.whole)
    }

    /// When the client's events are.
    pub(super) fn events_up(&self) -> &[Duration] {
        &self.events_up
    }

    /// When the server's events are.
    pub(super) fn events_down(&self) -> &[Duration] {
        &self.events_down
    }

    /// Bytes that snapshot `number` carries if it builds upon the one `span` before it; 0
    /// where it is whole.
    pub(super) fn state_bytes(&self, number: u32, span: u32) -> usize {
        let snapshots = &self.traffic.snapshots;
        let (full, delta) = (
            snapshots.full.bytes() as f64,
            snapshots.delta.bytes() as f64,
        );
        let changed = if span == 0 {
            1.0
        } else {
            1.0 - libm::pow(1.0 - delta / full, f64::from(span))
        };
        let normal = draw(self.seed, purpose::SIZE, u64::from(number)).normal();
        let bytes = full * changed * libm::exp(snapshots.spread * normal);
        let largest = super::Snapshots::LARGEST.bytes() as usize - HEADER_BYTES;
        (libm::round(bytes) as usize).clamp(1, largest)
    }

    /// What the figures depend on beside what happens.
    pub(super) fn terms(&self) -> GameTerms {
        let traffic = &self.traffic;
        let rollback = traffic.rollback.map(|rules| Rollback {
            frame: traffic.interval(),
            input_delay: rules.input_delay,
            most: rules.most,
        });
        GameTerms {
            interpolation: traffic.interpolation.duration(),
            rollback,
            voice_within: traffic
                .voice
                .map(|voice| voice.within.duration())
                .unwrap_or_default(),
        }
    }

    fn within(&self, phase: Duration, rate: u32, number: u32) -> Option<Duration> {
        let nanos = u64::from(number) * 1_000_000_000 / u64::from(rate);
        Some(phase + Duration::from_nanos(nanos)).filter(|&at| at < self.whole)
    }
}

/// An offset as an instant from the start of measuring.
pub(super) fn instant(offset: Duration) -> Time {
    Time::ZERO + offset
}

fn draw(seed: u64, purpose: u64, number: u64) -> Draw {
    Draw::of(&[seed, purpose, number])
}

/// Instants at random, so many a second on average (a Poisson process).
fn events_within(rate: f64, whole: Duration, draw: &mut Draw) -> Vec<Duration> {
    let mut instants = Vec::new();
    if rate <= 0.0 {
        return instants;
    }
    let mut at = 0.0;
    loop {
        at += draw.exponential(1.0 / rate);
        if at >= whole.as_secs_f64() {
            return instants;
        }
        instants.push(Duration::from_nanos((at * 1e9) as u64));
    }
}
