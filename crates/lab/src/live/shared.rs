//! A path with several senders under lanes over real sockets.
//!
//! The same [`SharedPath`] as in virtual time, other traffic and all, for the router of
//! an emulated network. What happens on it happens at its own instants, however late
//! the router asks: in real time a router that oversleeps delays nobody's film.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lagometer_emu::{LaneLink, PathFate, PathPacket, PathSender};
use lagometer_link::cross::Cross;
use lagometer_link::{Arrival, Fate, Link, SharedLink};
use lagometer_tcp::wire::is_ecn_capable;
use lagometer_units::Time;

use crate::outcome::BottleneckUse;
use crate::resolve::Resolved;
use crate::shared_path::{LanePacket, SharedPath};

/// A path, by the router's clock.
#[derive(Debug)]
struct LivePath {
    path: SharedPath,
    /// When what is measured starts, by the router's clock and by the path's, which is
    /// that of virtual time.
    starts: Time,
    measuring_starts: Time,
    /// How long after what happens on the path the router may look after it. No packet
    /// arrives earlier after it has left a queue than the least delay.
    notice: Duration,
    /// It is looked after while no lane's packet is on it, too.
    is_steady: bool,
}

/// On a clock that does not wait for the router, what happens on a path is reckoned in
/// pieces of so long, and not all at once when a lane's packet comes: that would delay
/// what is due then.
const PIECE: Duration = Duration::from_millis(1);

/// Makes the links of a seed's lanes, and keeps the paths that they share.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    resolved: &'a Resolved,
    seed: u64,
    /// The clock stands still while anybody computes.
    is_virtual: bool,
    /// The path of each lane, made last; of one for all lanes, that one.
    paths: RefCell<Vec<Arc<Mutex<LivePath>>>>,
}

impl<'a> Links<'a> {
    pub(crate) const fn new(resolved: &'a Resolved, seed: u64, is_virtual: bool) -> Self {
        Self {
            resolved,
            seed,
            is_virtual,
            paths: RefCell::new(Vec::new()),
        }
    }

    /// The link of lane number `lane`, whose impairments, and other traffic, start at
    /// `starts`; never, and nobody else on it, if that is [`Time::MAX`]. Lanes must be
    /// asked for in their order, all of them each time.
    pub(crate) fn link(&self, lane: usize, starts: Time) -> LaneLink {
        let resolved = self.resolved;
        if !resolved.needs_shared_link() {
            return Link::new(&resolved.profile, self.seed, resolved.regime, starts).into();
        }
        let mut paths = self.paths.borrow_mut();
        if lane == 0 {
            paths.clear();
        }
        let place = if resolved.experiment.shared { lane } else { 0 };
        if place == 0 {
            let mut path = LivePath::new(resolved, self.seed, lane, starts);
            if !self.is_virtual {
                path.notice = path.notice.min(PIECE);
                path.is_steady = true;
            }
            paths.push(Arc::new(Mutex::new(path)));
        }
        let path = Arc::clone(&paths[paths.len() - 1]);
        PathSender::new(path, place).into()
    }

    /// Who used the link of lane number `lane` by `now`; nothing where it was its own.
    pub(crate) fn bottleneck(&self, lane: usize, now: Time) -> Option<Arc<BottleneckUse>> {
        let paths = self.paths.borrow();
        let number = if self.resolved.experiment.shared {
            0
        } else {
            lane
        };
        let mut path = paths
            .get(number)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = path.of_router(now);
        path.path.advance(now);
        Some(Arc::new(path.path.bottleneck(now)))
    }
}

impl LivePath {
    fn new(resolved: &Resolved, seed: u64, lane: usize, starts: Time) -> Self {
        let plan = resolved.plan.under(seed);
        let measuring_starts = plan.measuring_starts();
        let is_calm = starts == Time::MAX;
        let crosses: &[Cross] = if is_calm { &[] } else { &resolved.cross };
        let (impairments, starts) = if is_calm {
            (Time::MAX, measuring_starts)
        } else {
            (measuring_starts, starts)
        };
        let lanes = if resolved.experiment.shared {
            &*resolved.lanes
        } else {
            &resolved.lanes[lane..=lane]
        };
        let names: Vec<String> = lanes.iter().map(|lane| lane.name.clone()).collect();
        let profile = &resolved.profile;
        let link = SharedLink::new(profile, seed, resolved.regime, impairments);
        Self {
            path: SharedPath::new(&plan, &names, crosses, link),
            starts,
            measuring_starts,
            notice: profile.least_delay(),
            is_steady: false,
        }
    }

    /// An instant of the router's by the path's clock.
    fn of_router(&self, at: Time) -> Time {
        shifted(at, self.starts, self.measuring_starts)
    }

    /// An instant of the path's by the router's clock.
    fn of_path(&self, at: Time) -> Time {
        shifted(at, self.measuring_starts, self.starts)
    }

    fn fate_of_path(&self, fate: Fate) -> Fate {
        let arrival = |it: Arrival| Arrival {
            at: self.of_path(it.at),
            ..it
        };
        match fate {
            Fate::Delivered { first, copy } => Fate::Delivered {
                first: arrival(first),
                copy: copy.map(arrival),
            },
            Fate::Dropped(_) | Fate::Refused { .. } => fate,
        }
    }
}

impl lagometer_emu::SharedPath for LivePath {
    fn offer(&mut self, now: Time, packet: PathPacket<'_>) {
        let now = self.of_router(now);
        self.path.advance(now);
        self.path.offer(
            now,
            LanePacket {
                lane: packet.sender,
                direction: packet.direction,
                number: packet.number,
                bytes: packet.bytes.len() as u64,
                is_ecn_capable: is_ecn_capable(packet.bytes),
            },
        );
    }

    /// What leaves a queue arrives a delay later, and nothing that happens before
    /// then without the router is late: so it need not wake for every packet of a film.
    fn next_deadline(&self) -> Option<Time> {
        let is_awaited = self.is_steady || self.path.holds_lane_packets();
        let next = is_awaited.then(|| self.path.next_event()).flatten()?;
        Some(self.of_path(next) + self.notice)
    }

    fn handle_deadline(&mut self, now: Time) {
        let now = self.of_router(now);
        self.path.advance(now);
    }

    fn poll(&mut self) -> Option<PathFate> {
        let settled = self.path.poll()?;
        Some(PathFate {
            number: settled.number,
            fate: self.fate_of_path(settled.fate),
            is_marked: settled.is_marked,
        })
    }
}

/// `at` on a clock that reads `to` when its own reads `from`; never before its start.
fn shifted(at: Time, from: Time, to: Time) -> Time {
    if at >= from {
        to + at.since(from)
    } else {
        to - from.since(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::Plan;
    use crate::resolve::resolve;
    use lagometer_emu::SharedPath as _;
    use lagometer_link::{Direction, catalogue};
    use lagometer_testbed::Testbed;

    /// When the schedule starts by the router's clock: earlier than in virtual time.
    const STARTS: Time = Time::from_millis(3_200);
    const PACKETS: u64 = 2_000;

    fn played(network: &str, shared: bool) -> Resolved {
        let text = format!(
            "name = \"t\"\nsummary = \"t\"\nnetwork = \"{network}\"\nshared = {shared}\n\
             lanes = [\"udp\", \"kcp\"]\n[workload.paced-echo]\nsize = \"200 B\"\n\
             interval = \"50 ms\"\n"
        );
        let experiment = Experiment::parse("t.toml", &text).unwrap();
        let profile = catalogue::named(network).unwrap();
        resolve(experiment, network.to_owned(), profile, Testbed::Kernel).unwrap()
    }

    /// The `number`-th packet of a sender, and how long after the start it comes.
    fn packet(number: u64) -> (Duration, PathPacket<'static>) {
        let packet = PathPacket {
            sender: 0,
            direction: Direction::BOTH[number as usize % 2],
            number,
            bytes: &[0; 228],
        };
        (Duration::from_micros(2_503 * number), packet)
    }

    /// Fates by number, where the router looks after the path as seldom as it may.
    fn by_a_router(network: &str, is_steady: bool) -> Vec<(u64, Fate)> {
        let resolved = played(network, false);
        let mut path = LivePath::new(&resolved, 1, 0, STARTS);
        path.is_steady = is_steady;
        let mut fates = Vec::new();
        for number in 0..PACKETS {
            let (after, packet) = packet(number);
            let now = STARTS + after;
            while let Some(at) = path.next_deadline().filter(|at| *at <= now) {
                path.handle_deadline(at);
                while let Some(settled) = path.poll() {
                    let arrives = settled.fate.arrivals().map(|it| it.at);
                    assert!(arrives.min().is_none_or(|first| first >= at), "{settled:?}");
                    fates.push((settled.number, settled.fate));
                }
            }
            path.offer(now, packet);
        }
        while path.path.holds_lane_packets() {
            let at = path.next_deadline().unwrap();
            path.handle_deadline(at);
        }
        while let Some(settled) = path.poll() {
            fates.push((settled.number, settled.fate));
        }
        fates.sort_by_key(|&(number, _)| number);
        fates
    }

    /// The same, event by event, by the clock of virtual time.
    fn in_virtual_time(network: &str) -> Vec<(u64, Fate)> {
        let resolved = played(network, false);
        let starts = resolved.plan.measuring_starts();
        let link = SharedLink::new(&resolved.profile, 1, resolved.regime, starts);
        let plan = resolved.plan.under(1);
        let names = ["udp".to_owned()];
        let mut path = SharedPath::new(&plan, &names, &resolved.cross, link);
        for number in 0..PACKETS {
            let (after, packet) = packet(number);
            path.advance(starts + after);
            path.offer(
                starts + after,
                LanePacket {
                    lane: 0,
                    direction: packet.direction,
                    number,
                    bytes: packet.bytes.len() as u64,
                    is_ecn_capable: false,
                },
            );
        }
        while path.holds_lane_packets() {
            let next = path.next_event().unwrap();
            path.step(next);
        }
        let mut fates: Vec<_> = std::iter::from_fn(|| path.poll())
            .map(|settled| (settled.number, settled.fate))
            .collect();
        fates.sort_by_key(|&(number, _)| number);
        fates
    }

    #[test]
    fn fates_are_those_of_virtual_time_however_seldom_the_router_asks() {
        for network in ["home-film", "home-film-fq", "home-upload"] {
            let found = by_a_router(network, false);
            assert_eq!(found, by_a_router(network, true), "{network}");
            let expected = in_virtual_time(network);
            assert_eq!(found.len() as u64, PACKETS, "{network}");
            let earlier = (Time::ZERO + Plan::LEAD_IN).since(STARTS);
            for ((number, fate), (_, expected)) in found.iter().zip(&expected) {
                let arrives = |fate: &Fate, by| {
                    let all = fate.arrivals().map(|it| it.at + by);
                    all.collect::<Vec<_>>()
                };
                assert_eq!(
                    arrives(fate, earlier),
                    arrives(expected, Duration::ZERO),
                    "{network}, {number}"
                );
            }
            // The film is there: packets wait in the queue or are dropped by it.
            let waits = |(number, fate): &(u64, Fate)| {
                let entered = STARTS + packet(*number).0;
                let first = fate.arrivals().map(|it| it.at).min();
                first.is_none_or(|at| at.since(entered) > Duration::from_millis(20))
            };
            let waiting = found.iter().filter(|it| waits(it)).count();
            assert!((network == "home-film-fq") == (waiting < 100), "{waiting}");
        }
    }

    #[test]
    fn a_calm_path_has_nobody_else_on_it_and_lanes_share_one_where_they_are_to() {
        let resolved = played("home-film", true);
        let links = Links::new(&resolved, 1, true);
        for starts in [Time::MAX, STARTS] {
            for lane in 0..2 {
                assert!(matches!(links.link(lane, starts), LaneLink::Shared(_)));
            }
            assert_eq!(links.paths.borrow().len(), 1);
        }
        let used = links
            .bottleneck(1, STARTS + Duration::from_secs(5))
            .unwrap();
        let film = used.ways[1].parties.last().unwrap();
        assert!(film.name == "film" && film.packets > 1_000, "{film:?}");
        let mut calm = LivePath::new(&resolved, 1, 0, Time::MAX);
        calm.handle_deadline(Time::from_millis(60_000));
        assert_eq!(calm.path.next_event(), None);
    }
}
