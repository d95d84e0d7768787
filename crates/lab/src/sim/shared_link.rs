//! One link with everybody on it, in virtual time: one lane or several, and
//! other traffic.
//!
//! It drives the lanes and the [`SharedPath`] with the other traffic, and puts
//! on the path what the lanes send. At one instant the path comes first, then the lanes
//! in their order.

use std::sync::Arc;

use lagometer_link::cross::Cross;
use lagometer_link::{Direction, SharedLink};
use lagometer_tcp::wire::{is_ecn_capable, mark_congestion};
use lagometer_testbed::{EventDriven, run_until};
use lagometer_units::Time;
use slab::Slab;

use super::capture::SimCapture;
use super::lane::{OfferedPacket, SimLane};
use crate::outcome::LaneOutcome;
use crate::plan::Plan;
use crate::shared_path::{LanePacket, SharedPath};

/// Lanes and other traffic on one link.
pub struct SharedLinkSim {
    now: Time,
    plan: Plan,
    path: SharedPath,
    lanes: Vec<SimLane>,
    /// Lanes' packets that are on the path, and when they were put there.
    on_path: Slab<(Time, Vec<u8>)>,
}

impl SharedLinkSim {
    /// The `lanes`, with their names, and the other traffic on `link`. The lanes
    /// must have been made for a shared link ([`SimLane::on_shared_link`]).
    #[must_use]
    pub fn new(
        plan: &Plan,
        lanes: Vec<(String, SimLane)>,
        crosses: &[Cross],
        link: SharedLink,
    ) -> Self {
        let (names, lanes): (Vec<_>, Vec<_>) = lanes.into_iter().unzip();
        Self {
            now: Time::ZERO,
            plan: plan.clone(),
            path: SharedPath::new(plan, &names, crosses, link),
            lanes,
            on_path: Slab::new(),
        }
    }

    /// From now on remembers every packet that lane number `lane` puts on the link.
    pub fn remember_packets(&mut self, lane: usize) {
        self.lanes[lane].remember_packets();
    }

    /// The packets of lane number `lane` that were remembered, in the order in which
    /// they left the link's queue.
    #[must_use]
    pub fn packets(&self, lane: usize) -> &[OfferedPacket] {
        self.lanes[lane].packets()
    }

    /// From now on keeps every packet that a lane puts on the link, for a capture.
    pub(crate) fn capture_packets(&mut self) {
        self.lanes.iter_mut().for_each(SimLane::capture_packets);
    }

    /// Hands over the packets that have left the link's queue since it did so last;
    /// `first` is the number of its first lane. Whether there are no more.
    pub(crate) fn hand_over(&mut self, capture: &SimCapture<'_>, first: usize, is_over: bool) {
        let on_path = self.on_path.iter().map(|(_, &(at, _))| at);
        let until = on_path.min().unwrap_or(self.now).min(self.now);
        let until = if is_over { Time::MAX } else { until };
        for (lane, sim) in (first..).zip(&mut self.lanes) {
            capture.take(lane, sim.take_captured(), until);
        }
    }

    /// Plays on until `limit` or the end of all lanes, whichever is first; says
    /// whether all have ended. How the play is sliced does not change it.
    pub fn run_until(&mut self, limit: Time) -> bool {
        run_until(self, limit.min(self.plan.gives_up()))
    }

    /// How many lanes are on it.
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// What the lanes did so far, in their order.
    pub fn outcomes(&mut self) -> Vec<LaneOutcome> {
        let used = Arc::new(self.path.bottleneck(self.now));
        let outcomes = self.lanes.iter().map(|lane| LaneOutcome {
            bottleneck: Some(Arc::clone(&used)),
            ..lane.outcome()
        });
        outcomes.collect()
    }

    /// Puts what a lane has sent on the path.
    fn send(&mut self, nth: usize) {
        for (direction, datagram) in self.lanes[nth].take_sent() {
            let is_ip = self.lanes[nth].is_ip();
            let mut packet = LanePacket {
                lane: nth,
                direction,
                number: 0,
                bytes: (datagram.len() + self.lanes[nth].header_bytes()) as u64,
                is_ecn_capable: is_ip && is_ecn_capable(&datagram),
            };
            packet.number = self.on_path.insert((self.now, datagram)) as u64;
            self.path.offer(self.now, packet);
            self.settle();
        }
    }

    /// Lets lanes know what became of their packets.
    fn settle(&mut self) {
        while let Some(settled) = self.path.poll() {
            let place = usize::try_from(settled.number).ok();
            let Some((at, mut datagram)) = place.and_then(|it| self.on_path.try_remove(it)) else {
                continue;
            };
            let lane = &mut self.lanes[settled.lane];
            let direction: Direction = settled.direction;
            lane.remember(at, direction, &datagram, settled.fate);
            if settled.is_marked {
                mark_congestion(&mut datagram);
            }
            lane.settle(direction, settled.fate, datagram);
        }
    }
}

impl EventDriven for SharedLinkSim {
    fn now(&self) -> Time {
        self.now
    }

    /// Whether all lanes have ended, and so has the play where one of them ended before
    /// it should: others use the link on, as they do over sockets.
    fn is_over(&self) -> bool {
        let has_played = self.now >= self.plan.ends();
        let is_over = |lane: &SimLane| lane.is_over() && (has_played || !lane.has_failed());
        self.lanes.iter().all(is_over)
    }

    fn next_event(&self) -> Option<Time> {
        let lanes = self.lanes.iter().filter(|lane| !lane.is_over());
        let lanes = lanes.filter_map(SimLane::next_event);
        lanes.chain(self.path.next_event()).min()
    }

    fn play_instant(&mut self, now: Time) {
        self.now = now;
        self.path.step(now);
        self.settle();
        for nth in 0..self.lanes.len() {
            let lane = &mut self.lanes[nth];
            if !lane.is_over() && lane.next_event().is_some_and(|at| at <= now) {
                lane.play_instant(now);
                self.send(nth);
            }
        }
    }

    fn pass_to(&mut self, until: Time) {
        self.now = until;
        for lane in &mut self.lanes {
            lane.run_until(until);
        }
    }
}
