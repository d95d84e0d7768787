//! One direction of a link at work: what becomes of each packet it is offered.
//!
//! A packet passes these in turn: MTU; outage; independent loss; burst loss;
//! queue and rate (with their stalls); delay and jitter; order; duplication;
//! damage. What is lost on the way in takes no room in the queue.

use std::collections::VecDeque;

use lagometer_units::Time;

use crate::Direction;
use crate::fate::{Arrival, Damage, Fate, Reason};
use crate::impairments::{self, Impairments};
use crate::interval::Cursor;
use crate::keyed::{Purpose, Stream};
use crate::profile::plan::Plan;
use crate::profile::written::Oversize;
use crate::regime::{Entry, Regime, Turnstile};
use crate::service::{Queue, Service};
use crate::stats::{Amount, LinkStats};

#[derive(Clone, Debug)]
pub(crate) struct OneWay {
    impairments_starts: u64,
    latest_offer: u64,
    turnstile: Turnstile,
    coins: Coins,
    impairments: Impairments,
    service: Service,
    calm_delay_ns: u64,
    may_reorder: bool,
    /// The latest arrival so far, which nobody may undercut where order holds.
    latest_arrival: u64,
    mtu: Option<(u64, Oversize)>,
    duplication: Option<(f64, u64)>,
    reordering: Option<(f64, u64)>,
    corruption: f64,
    stats: LinkStats,
    /// Arrivals still to come, in order.
    to_come: VecDeque<u64>,
}

/// The coins thrown for each packet.
#[derive(Clone, Debug)]
struct Coins {
    loss: Stream,
    burst_loss: Stream,
    duplication: Stream,
    reordering: Stream,
    corruption: Stream,
    corruption_of_copy: Stream,
}

impl OneWay {
    pub(crate) fn new(
        plan: &Plan,
        seed: u64,
        direction: Direction,
        regime: Regime,
        impairments_starts: u64,
    ) -> Self {
        let coin = |purpose| Stream::new(seed, impairments::scope(direction, false), purpose);
        Self {
            impairments_starts,
            latest_offer: 0,
            turnstile: Turnstile::new(regime),
            coins: Coins {
                loss: coin(Purpose::Loss),
                burst_loss: coin(Purpose::BurstLoss),
                duplication: coin(Purpose::Duplication),
                reordering: coin(Purpose::Reordering),
                corruption: coin(Purpose::Corruption),
                corruption_of_copy: coin(Purpose::CorruptionOfCopy),
            },
            impairments: Impairments::new(plan, seed, direction),
            service: Service {
                capacity: impairments::capacity(plan),
                stalls: Cursor::new(&impairments::stalls(plan, seed, direction)),
                impairments_starts,
                calm_rate: plan.calm_rate(),
                limit_bytes: plan.queue_bytes,
                queue: Queue::default(),
            },
            calm_delay_ns: plan.calm_delay_ns(),
            may_reorder: plan.may_reorder,
            latest_arrival: 0,
            mtu: plan.mtu,
            duplication: plan.duplication,
            reordering: plan.reordering,
            corruption: plan.corruption,
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
        let since_start = now.checked_sub(self.impairments_starts);
        let entry = since_start.map(|impairments| self.turnstile.enter(impairments));
        if let Some((mtu_bytes, oversize)) = self.mtu
            && bytes > mtu_bytes
        {
            return match oversize {
                Oversize::Vanish => Fate::Dropped(Reason::Oversize),
                Oversize::Refuse => Fate::Refused { mtu_bytes },
            };
        }
        match entry {
            None => self.calm(now, bytes),
            Some(entry) => self.stormy(now, entry, bytes),
        }
    }

    /// Before the impairments start: base delay and rate, nothing else.
    fn calm(&mut self, now: u64, bytes: u64) -> Fate {
        let Some(departure) = self.service.offer(now, bytes) else {
            return Fate::Dropped(Reason::QueueFull);
        };
        let arrival = self.in_order(departure.saturating_add(self.calm_delay_ns));
        Fate::Delivered {
            first: Arrival {
                at: Time::from_nanos(arrival),
                damage: None,
            },
            copy: None,
        }
    }

    fn stormy(&mut self, now: u64, entry: Entry, bytes: u64) -> Fate {
        let Entry {
            instant,
            slot,
            index,
        } = entry;
        if self.impairments.is_out(instant) {
            return Fate::Dropped(Reason::Outage);
        }
        let base = self.impairments.base(instant);
        if self.coins.loss.heads(slot, index, base.loss) {
            return Fate::Dropped(Reason::Loss);
        }
        let burst_loss = self.impairments.burst_loss(instant);
        if self.coins.burst_loss.heads(slot, index, burst_loss) {
            return Fate::Dropped(Reason::Burst);
        }
        let Some(departure) = self.service.offer(now, bytes) else {
            return Fate::Dropped(Reason::QueueFull);
        };
        let jitter = self.impairments.jitter(instant, slot, index);
        let arrival = departure
            .saturating_add(base.delay_ns)
            .saturating_add(jitter);
        let arrival = match self.reordering {
            Some((share, extra)) if self.coins.reordering.heads(slot, index, share) => {
                arrival.saturating_add(extra)
            }
            _ => self.in_order(arrival),
        };
        let copy = self.duplication.and_then(|(share, apart)| {
            let copied = self.coins.duplication.heads(slot, index, share);
            copied.then(|| Arrival {
                at: Time::from_nanos(arrival.saturating_add(apart)),
                damage: self.damage(self.coins.corruption_of_copy, entry),
            })
        });
        Fate::Delivered {
            first: Arrival {
                at: Time::from_nanos(arrival),
                damage: self.damage(self.coins.corruption, entry),
            },
            copy,
        }
    }

    /// An arrival no earlier than those before it, where order holds.
    fn in_order(&mut self, arrival: u64) -> u64 {
        if self.may_reorder {
            return arrival;
        }
        self.latest_arrival = self.latest_arrival.max(arrival);
        self.latest_arrival
    }

    fn damage(&self, stream: Stream, entry: Entry) -> Option<Damage> {
        let damaged = stream.heads(entry.slot, entry.index, self.corruption);
        damaged.then(|| Damage::new(stream.nth(entry.slot).draw(entry.index, 0)))
    }

    fn count(&mut self, bytes: u64, fate: &Fate) {
        let packet = Amount::packet(bytes);
        self.stats.offered += packet;
        match fate {
            Fate::Delivered { .. } => self.stats.delivered += packet,
            Fate::Dropped(reason) => self.stats.dropped[*reason as usize] += packet,
            Fate::Refused { .. } => self.stats.refused += packet,
        }
        for (nth, arrival) in fate.arrivals().enumerate() {
            if nth > 0 {
                self.stats.copies += packet;
            }
            if arrival.damage.is_some() {
                self.stats.damaged += packet;
            }
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
