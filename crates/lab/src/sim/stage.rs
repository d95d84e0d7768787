//! One link with everybody on it, in virtual time: one lane or several, and
//! other traffic.
//!
//! The stage drives the lanes and the other traffic and puts what they send on
//! one [`SharedLink`]. At one instant the link comes first, then other traffic in
//! the order of its list, then the lanes in theirs.

use std::sync::Arc;

use lagometer_link::cross::Cross;
use lagometer_link::queue::{Flow, Packet};
use lagometer_link::{Arrivals, Direction, Fate, Passed, SharedLink};
use lagometer_tcp::wire::{is_ecn_capable, mark_congestion};
use lagometer_transport::tcp;
use lagometer_units::Time;
use slab::Slab;

use super::cross::{CrossTraffic, Load};
use super::lane::SimLane;
use super::occupancy::{self, Left, Occupancy};
use super::together::together;
use crate::outcome::{BottleneckUse, LaneOutcome};
use crate::plan::Plan;

/// Lanes and other traffic on one link.
pub struct SimStage {
    now: Time,
    plan: Plan,
    link: SharedLink,
    lanes: Vec<SimLane>,
    crosses: Vec<Guest>,
    /// What is on the link and whose it is, by the tag the link knows it under.
    on_link: Slab<(usize, Content)>,
    /// Other traffic's packets that are on their way behind the queue.
    arrivals: Arrivals<Arrived>,
    queues: [Occupancy; 2],
    /// What each cross had received when measuring began, and when it ended.
    goodput: Vec<[Option<u64>; 2]>,
}

/// Other traffic and the machine it belongs to.
struct Guest {
    traffic: CrossTraffic,
    host: u32,
}

/// A packet on the link. Whose it is follows from the party's number: lanes first,
/// then other traffic.
enum Content {
    Lane(Vec<u8>),
    Cross(Load),
}

/// A packet of other traffic at its receiver.
struct Arrived {
    cross: usize,
    direction: Direction,
    load: Load,
}

impl SimStage {
    /// The `lanes`, with their names, and the other traffic on `link`. The lanes
    /// must have been made for a stage ([`SimLane::on_stage`]).
    #[must_use]
    pub fn new(
        plan: &Plan,
        lanes: Vec<(String, SimLane)>,
        crosses: &[Cross],
        link: SharedLink,
    ) -> Self {
        let starts = plan.measuring_starts();
        let queue = |direction: Direction| {
            let mut parties: Vec<_> = lanes.iter().map(|(name, _)| (name.clone(), true)).collect();
            parties.extend(crosses.iter().map(|cross| {
                let contends = Direction::from(cross.direction) == direction;
                (cross.name().to_owned(), contends)
            }));
            let together = together(plan, crosses, direction);
            Occupancy::new(&parties, starts + plan.offset, plan.duration, together)
        };
        let queues = [queue(Direction::Up), queue(Direction::Down)];
        let guests = hosts(lanes.len(), crosses)
            .into_iter()
            .zip((0_u64..).zip(crosses))
            .map(|(host, (position, cross))| Guest {
                traffic: CrossTraffic::new(cross, plan.seed, position, starts),
                host,
            });
        Self {
            now: Time::ZERO,
            plan: plan.clone(),
            link,
            crosses: guests.collect(),
            goodput: vec![[None; 2]; crosses.len()],
            lanes: lanes.into_iter().map(|(_, lane)| lane).collect(),
            on_link: Slab::new(),
            arrivals: Arrivals::default(),
            queues,
        }
    }

    /// Plays on until `limit` or the end of all lanes, whichever is first; says
    /// whether all have ended. How the play is sliced does not change it.
    pub fn run_until(&mut self, limit: Time) -> bool {
        let limit = limit.min(self.plan.gives_up());
        while !self.is_over() {
            let next = self.next_event().unwrap_or(Time::MAX).max(self.now);
            if next > limit {
                self.now = limit;
                for lane in &mut self.lanes {
                    lane.run_until(limit);
                }
                break;
            }
            self.now = next;
            self.step();
        }
        self.is_over()
    }

    /// How far it has played.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// How many lanes are on it.
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// What the lanes did so far, in their order.
    pub fn outcomes(&mut self) -> Vec<LaneOutcome> {
        let used = Arc::new(self.bottleneck());
        let outcomes = self.lanes.iter().map(|lane| LaneOutcome {
            bottleneck: Some(Arc::clone(&used)),
            ..lane.outcome()
        });
        outcomes.collect()
    }

    /// Who used the link so far.
    fn bottleneck(&mut self) -> BottleneckUse {
        let now = self.now;
        let [up, down] = &mut self.queues;
        let mut ways = [up.used(now), down.used(now)];
        let lanes = self.lanes.len();
        for (nth, guest) in self.crosses.iter().enumerate() {
            let [first, last] = self.goodput[nth];
            let last = last.unwrap_or_else(|| guest.traffic.received_bytes());
            let way = &mut ways[guest.traffic.direction.index()];
            way.parties[lanes + nth].goodput_bytes = Some(last - first.unwrap_or(last));
        }
        BottleneckUse {
            measured: self.measured(),
            step: occupancy::step(self.plan.duration),
            ways,
        }
    }

    /// How long it has measured.
    fn measured(&self) -> std::time::Duration {
        let started = self.plan.measuring_starts() + self.plan.offset;
        self.now.since(started).min(self.plan.duration)
    }

    fn is_over(&self) -> bool {
        self.lanes.iter().all(SimLane::is_over)
    }

    fn next_event(&self) -> Option<Time> {
        let lanes = self.lanes.iter().filter(|lane| !lane.is_over());
        let lanes = lanes.filter_map(SimLane::next_event).min();
        let crosses = self.crosses.iter().filter_map(|it| it.traffic.next_wake());
        [
            lanes,
            crosses.min(),
            self.arrivals.next_arrival(),
            self.link.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does all that is due now, once.
    fn step(&mut self) {
        let now = self.now;
        self.note_goodput();
        self.link.handle_deadline(now);
        self.take_fates();
        self.deliver();
        for nth in 0..self.crosses.len() {
            let traffic = &mut self.crosses[nth].traffic;
            if traffic.next_wake().is_some_and(|at| at <= now) {
                traffic.wake(now);
                self.send_cross(nth);
            }
        }
        for nth in 0..self.lanes.len() {
            let lane = &mut self.lanes[nth];
            if !lane.is_over() && lane.next_event().is_some_and(|at| at <= now) {
                lane.step(now);
                self.send_lane(nth);
            }
        }
    }

    /// Hands other traffic's packets to their receivers.
    fn deliver(&mut self) {
        while let Some(arrived) = self.arrivals.pop_due(self.now) {
            let traffic = &mut self.crosses[arrived.cross].traffic;
            traffic.receive(self.now, arrived.direction, &arrived.load);
            self.send_cross(arrived.cross);
        }
    }

    /// Puts what a lane has sent on the link.
    fn send_lane(&mut self, nth: usize) {
        for (direction, datagram) in self.lanes[nth].take_sent() {
            let is_ip = self.lanes[nth].is_ip();
            let packet = Packet {
                tag: 0,
                flow: Flow {
                    host: nth as u32,
                    flow: nth as u32,
                },
                bytes: (datagram.len() + self.lanes[nth].header_bytes()) as u64,
                is_ecn_capable: is_ip && is_ecn_capable(&datagram),
            };
            self.offer(direction, nth, packet, Content::Lane(datagram));
        }
    }

    /// Puts what other traffic has sent on the link.
    fn send_cross(&mut self, nth: usize) {
        while let Some(sent) = self.crosses[nth].traffic.poll() {
            let is_ecn_capable = match &sent.load {
                Load::Ip(packet) => is_ecn_capable(packet),
                Load::Paced { .. } | Load::Report(_) => false,
            };
            let packet = Packet {
                tag: 0,
                flow: Flow {
                    host: self.crosses[nth].host,
                    flow: (nth as u32 + 1) << 16 | sent.flow,
                },
                bytes: sent.load.bytes(),
                is_ecn_capable,
            };
            let party = self.lanes.len() + nth;
            self.offer(sent.direction, party, packet, Content::Cross(sent.load));
        }
    }

    fn offer(&mut self, direction: Direction, party: usize, packet: Packet, content: Content) {
        self.queues[direction.index()].enter(self.now, party, packet.bytes);
        let tag = self.on_link.insert((party, content)) as u64;
        self.link
            .offer(direction, self.now, Packet { tag, ..packet });
        self.take_fates();
    }

    /// Lets everybody know what became of their packets.
    fn take_fates(&mut self) {
        while let Some(passed) = self.link.poll() {
            let place = usize::try_from(passed.packet.tag).ok();
            let Some((party, content)) = place.and_then(|place| self.on_link.try_remove(place))
            else {
                continue;
            };
            let left = match passed.fate {
                Fate::Delivered { .. } if passed.is_marked => Left::Marked,
                Fate::Delivered { .. } => Left::Sent,
                Fate::Dropped(_) | Fate::Refused { .. } => Left::Dropped,
            };
            let queue = &mut self.queues[passed.direction.index()];
            queue.leave(self.now, party, passed.packet.bytes, left);
            match content {
                Content::Cross(Load::Ip(packet)) if matches!(passed.fate, Fate::Refused { .. }) => {
                    self.refuse(party - self.lanes.len(), &passed, &packet);
                }
                Content::Lane(mut datagram) => {
                    if passed.is_marked {
                        mark_congestion(&mut datagram);
                    }
                    self.lanes[party].settle(passed.direction, passed.fate, datagram);
                }
                Content::Cross(load) => self.send_off(party - self.lanes.len(), &passed, load),
            }
        }
    }

    /// Says to other traffic's TCP that a packet was too large for the link.
    fn refuse(&mut self, cross: usize, passed: &Passed, packet: &[u8]) {
        if let Fate::Refused { mtu_bytes } = passed.fate
            && let Some(answer) = tcp::packet_too_big(packet, mtu_bytes)
        {
            let back = passed.direction.opposite();
            self.arrive(self.now, cross, back, Load::Ip(answer));
        }
    }

    /// Sends a packet of other traffic on its way behind the queue. A damaged one
    /// fails its checksum and is gone.
    fn send_off(&mut self, cross: usize, passed: &Passed, mut load: Load) {
        if let (true, Load::Ip(packet)) = (passed.is_marked, &mut load) {
            mark_congestion(packet);
        }
        let whole = passed.fate.arrivals().filter(|it| it.damage.is_none());
        for arrival in whole {
            self.arrive(arrival.at, cross, passed.direction, load.clone());
        }
    }

    fn arrive(&mut self, at: Time, cross: usize, direction: Direction, load: Load) {
        let arrived = Arrived {
            cross,
            direction,
            load,
        };
        self.arrivals.push(at, arrived);
    }

    /// Notes what other traffic had received when measuring begins and ends.
    fn note_goodput(&mut self) {
        let started = self.plan.measuring_starts() + self.plan.offset;
        let instants = [started, started + self.plan.duration];
        for (guest, noted) in self.crosses.iter().zip(&mut self.goodput) {
            for (noted, instant) in noted.iter_mut().zip(instants) {
                if noted.is_none() && self.now >= instant {
                    *noted = Some(guest.traffic.received_bytes());
                }
            }
        }
    }
}

/// The number of each cross's machine: the lane's for "game" (where lanes share a
/// link that is refused), the same for the same name, or one of its own.
fn hosts(lanes: usize, crosses: &[Cross]) -> Vec<u32> {
    let own = |nth: usize| (lanes + nth) as u32;
    let of = |nth: usize, cross: &Cross| match cross.host.as_deref() {
        None => own(nth),
        Some("game") => 0,
        Some(name) => {
            let first = crosses
                .iter()
                .position(|other| other.host.as_deref() == Some(name));
            own(first.unwrap_or(nth))
        }
    };
    crosses
        .iter()
        .enumerate()
        .map(|(nth, cross)| of(nth, cross))
        .collect()
}
