//! One link with everybody on it: the packets of one lane or several, and other
//! traffic.
//!
//! A [`SharedPath`] holds the link, both ends of all other traffic, and the record of
//! who filled the queue. It is sans-IO: lanes' packets go in with the instant, their
//! fates come out when they are known. The testbed `sim` plays lanes on it
//! ([`SharedLinkSim`](crate::sim::SharedLinkSim)); over sockets the router of an emulated network
//! drives it (`crate::emu`). At one instant the link comes first, then other traffic in
//! the order of its list; lanes come after.

mod cross;
mod occupancy;
mod together;

use std::collections::VecDeque;

use lagometer_link::cross::Cross;
use lagometer_link::queue::{Flow, Packet};
use lagometer_link::{Arrivals, Direction, Fate, Passed, SharedLink};
use lagometer_tcp::wire::{is_ecn_capable, mark_congestion};
use lagometer_transport::tcp;
use lagometer_units::Time;
use slab::Slab;

use crate::outcome::BottleneckUse;
use crate::plan::Plan;
use cross::{CrossTraffic, Load};
use occupancy::{Left, Occupancy};
use together::together;

/// A link, other traffic on it, and room for lanes.
#[derive(Debug)]
pub(crate) struct SharedPath {
    now: Time,
    plan: Plan,
    link: SharedLink,
    lanes: usize,
    crosses: Vec<Guest>,
    /// What is on the link and whose it is, by the tag the link knows it under.
    on_link: Slab<(usize, Content)>,
    /// How many of them are lanes' packets.
    of_lanes: usize,
    /// Other traffic's packets that are on their way behind the queue.
    arrivals: Arrivals<Arrived>,
    queues: [Occupancy; 2],
    /// What each cross had received when measuring began, and when it ended.
    goodput: Vec<[Option<u64>; 2]>,
    /// Fates of lanes' packets that nobody has taken out yet.
    settled: VecDeque<Settled>,
}

/// A packet of a lane, as it is put on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LanePacket {
    /// The lane's place on the path.
    pub(crate) lane: usize,
    pub(crate) direction: Direction,
    /// By which its fate is reported.
    pub(crate) number: u64,
    /// With all headers.
    pub(crate) bytes: u64,
    pub(crate) is_ecn_capable: bool,
}

/// What became of a packet of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub(crate) lane: usize,
    pub(crate) direction: Direction,
    pub(crate) number: u64,
    pub(crate) fate: Fate,
    pub(crate) is_marked: bool,
}

/// Other traffic and the machine it belongs to.
#[derive(Debug)]
struct Guest {
    traffic: CrossTraffic,
    host: u32,
}

/// A packet on the link. Whose it is follows from the party's number: lanes first,
/// then other traffic.
#[derive(Debug)]
enum Content {
    /// A lane's, by its number.
    Lane(u64),
    Cross(Load),
}

/// A packet of other traffic at its receiver.
#[derive(Debug)]
struct Arrived {
    cross: usize,
    direction: Direction,
    load: Load,
}

impl SharedPath {
    /// `link` with room for lanes of these names, and other traffic on it.
    pub(crate) fn new(plan: &Plan, lanes: &[String], crosses: &[Cross], link: SharedLink) -> Self {
        let starts = plan.measuring_starts();
        let queue = |direction: Direction| {
            let mut parties: Vec<_> = lanes.iter().map(|name| (name.clone(), true)).collect();
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
            lanes: lanes.len(),
            crosses: guests.collect(),
            on_link: Slab::new(),
            of_lanes: 0,
            arrivals: Arrivals::default(),
            queues,
            goodput: vec![[None; 2]; crosses.len()],
            settled: VecDeque::new(),
        }
    }

    /// When there is something to do next that no lane does.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let crosses = self.crosses.iter().filter_map(|it| it.traffic.next_wake());
        let others = [self.arrivals.next_arrival(), self.link.next_deadline()];
        others.into_iter().flatten().chain(crosses).min()
    }

    /// Does all that is due at `now`, once; there may be something due again at once.
    /// Instants must not decrease from call to call.
    pub(crate) fn step(&mut self, now: Time) {
        self.now = now;
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
    }

    /// Does all that is due by `until`, each thing at its instant.
    pub(crate) fn advance(&mut self, until: Time) {
        while let Some(next) = self.next_event().filter(|&next| next <= until) {
            self.step(next.max(self.now));
        }
        self.now = self.now.max(until);
        self.note_goodput();
    }

    /// Puts a packet of a lane on the link at `now`, at which all else that is due must
    /// have been done.
    pub(crate) fn offer(&mut self, now: Time, packet: LanePacket) {
        self.now = self.now.max(now);
        self.of_lanes += 1;
        let on_link = Packet {
            tag: 0,
            flow: Flow {
                host: packet.lane as u32,
                flow: packet.lane as u32,
            },
            bytes: packet.bytes,
            is_ecn_capable: packet.is_ecn_capable,
        };
        let content = Content::Lane(packet.number);
        self.put(packet.direction, packet.lane, on_link, content);
    }

    /// Takes out the next fate of a lane's packet that became known.
    pub(crate) fn poll(&mut self) -> Option<Settled> {
        self.settled.pop_front()
    }

    /// Whether the fate of any lane's packet is not known yet.
    pub(crate) const fn holds_lane_packets(&self) -> bool {
        self.of_lanes > 0
    }

    /// Who used the link by `now`.
    pub(crate) fn bottleneck(&mut self, now: Time) -> BottleneckUse {
        let [up, down] = &mut self.queues;
        let mut ways = [up.used(now), down.used(now)];
        for (nth, guest) in self.crosses.iter().enumerate() {
            let [first, last] = self.goodput[nth];
            let last = last.unwrap_or_else(|| guest.traffic.received_bytes());
            let way = &mut ways[guest.traffic.direction.index()];
            way.parties[self.lanes + nth].goodput_bytes = Some(last - first.unwrap_or(last));
        }
        BottleneckUse {
            measured: now.since(self.measuring_began()).min(self.plan.duration),
            step: occupancy::step(self.plan.duration),
            ways,
        }
    }

    fn measuring_began(&self) -> Time {
        self.plan.measuring_starts() + self.plan.offset
    }

    /// Hands other traffic's packets to their receivers.
    fn deliver(&mut self) {
        while let Some(arrived) = self.arrivals.pop_due(self.now) {
            let traffic = &mut self.crosses[arrived.cross].traffic;
            traffic.receive(self.now, arrived.direction, &arrived.load);
            self.send_cross(arrived.cross);
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
            let party = self.lanes + nth;
            self.put(sent.direction, party, packet, Content::Cross(sent.load));
        }
    }

    fn put(&mut self, direction: Direction, party: usize, packet: Packet, content: Content) {
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
                    self.refuse(party - self.lanes, &passed, &packet);
                }
                Content::Lane(number) => {
                    self.of_lanes -= 1;
                    self.settled.push_back(Settled {
                        lane: party,
                        direction: passed.direction,
                        number,
                        fate: passed.fate,
                        is_marked: passed.is_marked,
                    });
                }
                Content::Cross(load) => self.send_off(party - self.lanes, &passed, load),
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
        let started = self.measuring_began();
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
