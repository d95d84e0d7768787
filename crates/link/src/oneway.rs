//! One direction of a link at work: what becomes of each packet it is offered,
//! known at once because its queue serves in the order packets come.

use std::collections::VecDeque;

use crate::Direction;
use crate::entrance::Entrance;
use crate::fate::{Fate, Reason};
use crate::profile::plan::Plan;
use crate::regime::Regime;
use crate::service::Service;
use crate::stats::LinkStats;

#[derive(Clone, Debug)]
pub(crate) struct OneWay {
    latest_offer: u64,
    entrance: Entrance,
    service: Service,
    stats: LinkStats,
    /// Arrivals still to come, in order.
    to_come: VecDeque<u64>,
}

impl OneWay {
    pub(crate) fn new(
        plan: &Plan,
        seed: u64,
        direction: Direction,
        regime: Regime,
        impairments_starts: u64,
    ) -> Self {
        Self {
            latest_offer: 0,
            entrance: Entrance::new(plan, seed, direction, regime, impairments_starts),
            service: Service::new(plan, seed, direction, impairments_starts),
            stats: LinkStats::default(),
            to_come: VecDeque::new(),
        }
    }

    pub(crate) fn offer(&mut self, now: u64, bytes: u64) -> Fate {
        let now = now.max(self.latest_offer);
        self.latest_offer = now;
        while self.to_come.front().is_some_and(|&arrival| arrival <= now) {
            self.to_come.pop_front();
        }
        let fate = self.decide(now, bytes);
        self.count(bytes, &fate);
        fate
    }

    pub(crate) const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    pub(crate) fn in_flight(&self, now: u64) -> u64 {
        let arrived = self.to_come.partition_point(|&arrival| arrival <= now);
        (self.to_come.len() - arrived) as u64
    }

    pub(crate) fn waiting_bytes(&self, now: u64) -> u64 {
        self.service.waiting_bytes(now)
    }

    pub(crate) fn waits(&self, now: u64) -> u64 {
        self.service.waits(now)
    }

    fn decide(&mut self, now: u64, bytes: u64) -> Fate {
        let passage = match self.entrance.enter(now, bytes) {
            Ok(passage) => passage,
            Err(fate) => return fate,
        };
        match self.service.offer(now, bytes) {
            Some(departure) => self.entrance.leave(departure, &passage),
            None => Fate::Dropped(Reason::QueueFull),
        }
    }

    fn count(&mut self, bytes: u64, fate: &Fate) {
        self.stats.count(bytes, fate);
        for arrival in fate.arrivals() {
            self.expect(arrival.at.as_nanos());
        }
    }

    /// Notes an arrival to come. Few overtake many, so the place is found from
    /// the back.
    fn expect(&mut self, arrival: u64) {
        let earlier = self
            .to_come
            .iter()
            .rposition(|&other| other <= arrival)
            .map_or(0, |index| index + 1);
        self.to_come.insert(earlier, arrival);
    }
}
