//! A link for several senders, with any queueing discipline.
//!
//! [`Link`](crate::Link) knows a packet's fate when it enters, because its queue
//! serves in the order packets come. Here what comes later may decide, so fates
//! are known when a packet leaves the queue: the link has deadlines.

use std::collections::VecDeque;

use lagometer_units::Time;
use slab::Slab;

use crate::Direction;
use crate::entrance::{Entrance, Passage};
use crate::fate::Fate;
use crate::profile::Profile;
use crate::queue::{Packet, Queue};
use crate::regime::Regime;
use crate::service::Service;
use crate::stats::LinkStats;

/// A path whose packets wait in a [`Queue`].
///
/// The caller offers packets, looks after the link at its deadlines and takes
/// out fates after both. Everything but the queue is as in [`Link`](crate::Link);
/// with a queue that is first in, first out, the fates are the same, too.
#[derive(Clone, Debug)]
pub struct SharedLink {
    ways: [SharedWay; 2],
}

/// A packet that left the queue, or was dropped from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The direction it was offered to.
    pub direction: Direction,
    /// The packet.
    pub packet: Packet,
    /// What becomes of it.
    pub fate: Fate,
    /// Whether it is marked with "congestion experienced" (RFC 3168).
    pub is_marked: bool,
}

#[derive(Clone, Debug)]
struct SharedWay {
    direction: Direction,
    now: u64,
    entrance: Entrance,
    service: Service,
    queue: Queue,
    /// The tags of the packets in the queue and what they meet behind it. The
    /// queue knows a packet by its place here.
    passages: Slab<(u64, Passage)>,
    /// When the last packet's last bit left the queue.
    free: u64,
    /// When the next packet is sent, while one waits.
    next_start: Option<u64>,
    passed: VecDeque<Passed>,
    stats: LinkStats,
}

impl SharedLink {
    /// A link that behaves as `profile` says, with the dice of `seed`; calm until
    /// `impairments_starts`, as [`Link::new`](crate::Link::new).
    #[must_use]
    pub fn new(profile: &Profile, seed: u64, regime: Regime, impairments_starts: Time) -> Self {
        let starts = impairments_starts.as_nanos();
        let way = |direction| {
            let plan = profile.plan(direction);
            SharedWay {
                direction,
                now: 0,
                entrance: Entrance::new(plan, seed, direction, regime, starts),
                service: Service::new(plan, seed, direction, starts),
                queue: Queue::new(
                    &plan.queue.discipline,
                    plan.queue.limit,
                    seed.wrapping_mul(2).wrapping_add(direction.index() as u64),
                ),
                passages: Slab::new(),
                free: 0,
                next_start: None,
                passed: VecDeque::new(),
                stats: LinkStats::default(),
            }
        };
        Self {
            ways: [way(Direction::Up), way(Direction::Down)],
        }
    }

    /// Offers a packet that enters `direction` at `now`. Its fate can be taken out
    /// once it is known.
    ///
    /// `now` must not decrease from one call to the next; an earlier instant is
    /// taken as the latest so far.
    pub fn offer(&mut self, direction: Direction, now: Time, packet: Packet) {
        self.ways[direction.index()].offer(now.as_nanos(), packet);
    }

    /// When [`handle_deadline`](Self::handle_deadline) must be called, if nothing
    /// is offered before: the next packet leaves a queue.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let starts = self.ways.iter().filter_map(|way| way.next_start);
        starts.min().map(Time::from_nanos)
    }

    /// Lets what is due by `now` leave the queues.
    pub fn handle_deadline(&mut self, now: Time) {
        for way in &mut self.ways {
            way.advance(now.as_nanos());
        }
    }

    /// Takes out a packet whose fate is known: of a direction in the order they
    /// left the queue.
    pub fn poll(&mut self) -> Option<Passed> {
        self.ways.iter_mut().find_map(|way| way.passed.pop_front())
    }

    /// Bytes that wait in the queue of `direction`; what is being sent waits no
    /// longer.
    #[must_use]
    pub const fn waiting_bytes(&self, direction: Direction) -> u64 {
        self.ways[direction.index()].queue.bytes()
    }

    /// What `direction` did with the packets whose fates are known.
    #[must_use]
    pub const fn stats(&self, direction: Direction) -> &LinkStats {
        &self.ways[direction.index()].stats
    }
}

impl SharedWay {
    fn offer(&mut self, now: u64, packet: Packet) {
        self.advance(now);
        let now = self.now;
        let passage = match self.entrance.enter(now, packet.bytes) {
            Ok(passage) => passage,
            Err(fate) => return self.settle(packet, fate, false),
        };
        let start = self
            .next_start
            .unwrap_or_else(|| self.service.begin(now.max(self.free)));
        let place = self.passages.insert((packet.tag, passage));
        let waiting = Packet {
            tag: place as u64,
            ..packet
        };
        self.queue
            .enqueue(Time::from_nanos(now), waiting, start > now);
        self.settle_dropped();
        self.next_start = (!self.queue.is_empty()).then_some(start);
        self.advance(now);
    }

    fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        while let Some(start) = self.next_start.filter(|&start| start <= self.now) {
            let next = self.queue.dequeue(Time::from_nanos(start));
            self.settle_dropped();
            if let Some((packet, is_marked)) = next {
                self.free = self.service.carry(start, packet.bytes);
                if let Some((packet, passage)) = self.take_passage(packet) {
                    let fate = self.entrance.leave(self.free, &passage);
                    self.settle(packet, fate, is_marked);
                }
            }
            self.next_start = (!self.queue.is_empty()).then(|| self.service.begin(self.free));
        }
    }

    /// Takes note of what the queue has dropped.
    fn settle_dropped(&mut self) {
        while let Some((packet, reason)) = self.queue.take_dropped() {
            if let Some((packet, _)) = self.take_passage(packet) {
                self.settle(packet, Fate::Dropped(reason), false);
            }
        }
    }

    /// A packet of the queue with its own tag again, and its passage.
    fn take_passage(&mut self, packet: Packet) -> Option<(Packet, Passage)> {
        let place = usize::try_from(packet.tag).ok()?;
        let (tag, passage) = self.passages.try_remove(place)?;
        Some((Packet { tag, ..packet }, passage))
    }

    fn settle(&mut self, packet: Packet, fate: Fate, is_marked: bool) {
        self.stats.count(packet.bytes, &fate);
        self.passed.push_back(Passed {
            direction: self.direction,
            packet,
            fate,
            is_marked,
        });
    }
}
