//! The link: both directions of a profile, played from a seed.

use std::time::Duration;

use lagometer_units::Time;

use crate::Direction;
use crate::fate::Fate;
use crate::oneway::OneWay;
use crate::profile::Profile;
use crate::regime::Regime;
use crate::stats::LinkStats;
use crate::truth::{self, Conditions, Disturbance};

/// The path between two endpoints. It is given a packet as it enters and decides
/// its fate; the packet itself stays with the caller.
///
/// The future impairments are known, since it is a function of the seed and the
/// time, so a packet's whole fate is known when it enters: there are no
/// deadlines to keep. Two links made from the same arguments give the same
/// fates to the same packets, on every machine.
#[derive(Clone, Debug)]
pub struct Link {
    profile: Profile,
    seed: u64,
    ways: [OneWay; 2],
}

impl Link {
    /// A link that behaves as `profile` says, with the dice of `seed`.
    ///
    /// Until `impairments_starts` the link is calm: base delay, rate and queue,
    /// nothing else (of a recording: its least delay and highest rate, of a
    /// Mahimahi trace its mean rate). Handshakes belong there, so that they do
    /// not shift what the measured traffic meets.
    #[must_use]
    pub fn new(profile: &Profile, seed: u64, regime: Regime, impairments_starts: Time) -> Self {
        let way = |direction| {
            let plan = profile.plan(direction);
            OneWay::new(plan, seed, direction, regime, impairments_starts.as_nanos())
        };
        Self {
            profile: profile.clone(),
            seed,
            ways: [way(Direction::Up), way(Direction::Down)],
        }
    }

    /// What becomes of an IP packet of `bytes`, headers included, that enters
    /// `direction` at `now`.
    ///
    /// `now` must not decrease from one call for a direction to the next; an
    /// earlier instant is taken as the latest so far.
    pub fn offer(&mut self, direction: Direction, now: Time, bytes: usize) -> Fate {
        self.ways[direction.index()].offer(now.as_nanos(), bytes as u64)
    }

    /// What `direction` did so far.
    #[must_use]
    pub const fn stats(&self, direction: Direction) -> &LinkStats {
        self.ways[direction.index()].stats()
    }

    /// How many arrivals, copies included, are still to come after `now`,
    /// which must not be before the direction's latest offer.
    #[must_use]
    pub fn in_flight(&self, direction: Direction, now: Time) -> u64 {
        self.ways[direction.index()].in_flight(now.as_nanos())
    }

    /// The bytes that wait in the queue at `now`, which must not be before the
    /// direction's latest offer. A packet that is being sent waits no longer.
    #[must_use]
    pub fn waiting_bytes(&self, direction: Direction, now: Time) -> u64 {
        self.ways[direction.index()].waiting_bytes(now.as_nanos())
    }

    /// How long the packet that `direction` took in last waits in the queue
    /// until its first bit is sent; `now` is the instant at which it was offered.
    #[must_use]
    pub fn waits(&self, direction: Direction, now: Time) -> Duration {
        Duration::from_nanos(self.ways[direction.index()].waits(now.as_nanos()))
    }

    /// The disturbances of `direction` that start before `until`, in the order
    /// of their starts; all in impairment time, of which zero is the instant at
    /// which the impairments start. A function of profile and seed alone.
    #[must_use]
    pub fn truth(&self, direction: Direction, until: Time) -> Vec<Disturbance> {
        let plan = self.profile.plan(direction);
        truth::disturbances(plan, self.seed, direction, until.as_nanos())
    }

    /// What a lone small packet meets that enters `direction` at `from`, and
    /// at every `step` after, before `until`; all in impairment time. A function
    /// of profile and seed alone. A zero step is taken as a nanosecond.
    #[must_use]
    pub fn conditions(
        &self,
        direction: Direction,
        from: Time,
        until: Time,
        step: Duration,
    ) -> Vec<(Time, Conditions)> {
        let step = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        let grid = (from.as_nanos(), until.as_nanos(), step);
        truth::conditions(self.profile.plan(direction), self.seed, direction, grid)
    }
}
