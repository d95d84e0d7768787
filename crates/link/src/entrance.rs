//! A packet's fate before and after the queue: loss in front of it, delay behind
//! it.
//!
//! A packet passes these in turn: MTU; outage; independent loss; burst loss; here
//! the queue; delay and jitter; order; duplication; damage. What is lost on the
//! way in takes no room in the queue.

use lagometer_units::Time;

use crate::Direction;
use crate::fate::{Arrival, Damage, Fate, Reason};
use crate::impairments::{self, Impairments};
use crate::keyed::{Purpose, Stream};
use crate::profile::plan::Plan;
use crate::profile::written::Oversize;
use crate::regime::{Entry, Regime, Turnstile};

/// One direction of a link but for its queue.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    impairments_starts: u64,
    turnstile: Turnstile,
    coins: Coins,
    impairments: Impairments,
    calm_delay_ns: u64,
    may_reorder: bool,
    /// The latest arrival so far, which nobody may undercut where order holds.
    latest_arrival: u64,
    mtu: Option<(u64, Oversize)>,
    duplication: Option<(f64, u64)>,
    reordering: Option<(f64, u64)>,
    corruption: f64,
}

/// What a packet meets behind the queue. It is settled when the packet enters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    delay_ns: u64,
    /// It keeps no order: what it is held back for.
    held_back_ns: Option<u64>,
    damage: Option<Damage>,
    copy: Option<(u64, Option<Damage>)>,
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

impl Entrance {
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
            calm_delay_ns: plan.calm_delay_ns(),
            may_reorder: plan.may_reorder,
            latest_arrival: 0,
            mtu: plan.mtu,
            duplication: plan.duplication,
            reordering: plan.reordering,
            corruption: plan.corruption,
        }
    }

    /// A packet of `bytes` enters at `now`: what it will meet behind the queue, or
    /// its fate where it does not get as far. `now` must not decrease from call
    /// to call.
    pub(crate) fn enter(&mut self, now: u64, bytes: u64) -> Result<Passage, Fate> {
        let since_start = now.checked_sub(self.impairments_starts);
        let entry = since_start.map(|impairments| self.turnstile.enter(impairments));
        if let Some((mtu_bytes, oversize)) = self.mtu
            && bytes > mtu_bytes
        {
            return Err(match oversize {
                Oversize::Vanish => Fate::Dropped(Reason::Oversize),
                Oversize::Refuse => Fate::Refused { mtu_bytes },
            });
        }
        match entry {
            None => Ok(Passage {
                delay_ns: self.calm_delay_ns,
                held_back_ns: None,
                damage: None,
                copy: None,
            }),
            Some(entry) => self.enter_impaired(entry),
        }
    }

    fn enter_impaired(&mut self, entry: Entry) -> Result<Passage, Fate> {
        let Entry {
            instant,
            slot,
            index,
        } = entry;
        if self.impairments.is_out(instant) {
            return Err(Fate::Dropped(Reason::Outage));
        }
        let base = self.impairments.base(instant);
        if self.coins.loss.heads(slot, index, base.loss) {
            return Err(Fate::Dropped(Reason::Loss));
        }
        let burst_loss = self.impairments.burst_loss(instant);
        if self.coins.burst_loss.heads(slot, index, burst_loss) {
            return Err(Fate::Dropped(Reason::Burst));
        }
        let jitter = self.impairments.jitter(instant, slot, index);
        let held_back = self
            .reordering
            .filter(|&(share, _)| self.coins.reordering.heads(slot, index, share));
        let copy = self.duplication.and_then(|(share, apart)| {
            let copied = self.coins.duplication.heads(slot, index, share);
            copied.then(|| (apart, self.damage(self.coins.corruption_of_copy, entry)))
        });
        Ok(Passage {
            delay_ns: base.delay_ns.saturating_add(jitter),
            held_back_ns: held_back.map(|(_, extra)| extra),
            damage: self.damage(self.coins.corruption, entry),
            copy,
        })
    }

    /// The fate of a packet whose last bit left the queue at `departure`. Calls
    /// must come in the order of departures.
    pub(crate) fn leave(&mut self, departure: u64, passage: &Passage) -> Fate {
        let arrival = departure.saturating_add(passage.delay_ns);
        let arrival = match passage.held_back_ns {
            Some(extra) => arrival.saturating_add(extra),
            None => self.in_order(arrival),
        };
        let at = |arrival, damage| Arrival {
            at: Time::from_nanos(arrival),
            damage,
        };
        Fate::Delivered {
            first: at(arrival, passage.damage),
            copy: passage
                .copy
                .map(|(apart, damage)| at(arrival.saturating_add(apart), damage)),
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
}
