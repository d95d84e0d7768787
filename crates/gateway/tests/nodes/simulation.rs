//! Nodes, peers and the bus in one virtual time, and what must hold.

mod begin;
mod ends;
mod next;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lagometer_gateway::core::{
    ChannelSettings, ConnectionManager, ConnectionSettings, Fsm, ShardCount, ShardId, ShardMap,
};
use lagometer_gateway::nodes::{BusEvent, ChannelsNode, NodeId, NodeTimes, Note, ShardedEdge};
use lagometer_units::Time;

use crate::bus::{Bus, MS};
use crate::faults::{self, Fault};
use crate::outcome::Outcome;
use crate::peers::{self, GamePeer};
use crate::random::Random;
use crate::turns::{ChannelsPart, turn_channels, turn_edge};
use crate::world;

/// After the last fault everything is right within this: a lease, a route's timeout, and
/// the time to connect again.
pub(crate) const RECOVERY: u64 = 20_000 * MS;

/// Nothing changes any more for so long before views are looked at.
pub(crate) const QUIET: u64 = 3_000 * MS;

/// After the last fault it is looked so often whether all is right.
const LOOKS_EVERY: u64 = 20 * MS;

/// The game's server changes something so often.
const UPDATE_EVERY: u64 = 200 * MS;

/// A peer that was hung up on connects again after this.
const CONNECT_AFTER: u64 = 200 * MS;

/// A server that recovers waits for so long: until its edge is missed it has what it had still,
/// under its former connection.
const RECOVERS_AFTER: u64 = 13_000 * MS;

pub(crate) enum Part {
    Edge(Box<(ShardedEdge, Vec<ConnectionManager>)>),
    Channels(Box<ChannelsPart>),
}

/// A place that a node may have: who is there now.
pub(crate) struct NodeSlot {
    pub(crate) id: NodeId,
    pub(crate) part: Option<Part>,
    /// How far its clock is ahead of the world's.
    ahead: u64,
    paused_until: u64,
    /// When it has something to do if nothing comes, as it found after its last turn.
    due: u64,
    inbox: VecDeque<(ShardId, BusEvent)>,
    starts_at: Option<u64>,
    /// It ends: until when it is let, and when another is started in its place.
    ending: Option<(u64, u64)>,
}

/// Connection loops of each edge.
const LOOPS: u16 = 2;

pub(crate) struct Simulation {
    pub(crate) now: u64,
    random: Random,
    bus: Bus,
    pub(crate) slots: Vec<NodeSlot>,
    edges: usize,
    pub(crate) shards: ShardCount,
    pub(crate) peers: Vec<GamePeer>,
    connects_at: Vec<u64>,
    schedule: VecDeque<(u64, Fault)>,
    pub(crate) truth: u32,
    update_at: u64,
    /// Shards whose last owner died and was followed, and nobody has gone on with them yet.
    pub(crate) died_followed: BTreeSet<ShardId>,
    /// Who owned which shard in which epoch, as its own node said.
    pub(crate) owners: BTreeMap<(ShardId, u64), NodeId>,
    nodes: u64,
    says: bool,
    outcome: Outcome,
}

impl Simulation {
    pub(crate) fn play(mut self) -> Outcome {
        let quiet_from = faults::UNTIL + RECOVERY;
        let end = quiet_from + QUIET;
        let (mut right_since, mut looks_at) = (None, faults::UNTIL);
        while self.now < end {
            self.now = self.next().min(end);
            while self.schedule.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, fault) = self.schedule.pop_front().expect("there is one");
                self.go_wrong(fault);
            }
            self.start_nodes();
            while let Some((node, shard, event)) = self.bus.arrive(self.now) {
                let slot = self.slots.iter_mut().find(|slot| slot.id == node);
                if let Some(slot) = slot
                    && Bus::has_room(slot.inbox.iter().filter(|(of, _)| *of == shard).count())
                {
                    slot.inbox.push_back((shard, event));
                }
            }
            for index in 0..self.slots.len() {
                if self.slots[index].wakes_at(self.now) <= self.now {
                    self.turn(index);
                }
            }
            if self.turn_peers(quiet_from) {
                for index in 0..self.edges {
                    self.turn(index);
                }
            }
            self.end_ended();
            for peer in &self.peers {
                assert_eq!(peer.wrong, None, "at {} ms", self.now / MS);
            }
            if self.now >= looks_at {
                looks_at = self.now + LOOKS_EVERY;
                match self.what_is_wrong() {
                    Some(_) => right_since = None,
                    None => {
                        right_since.get_or_insert(self.now);
                    }
                }
            }
        }
        if let Some(wrong) = self.what_is_wrong() {
            panic!("in the end {wrong}");
        }
        let recovered = right_since.expect("it is right") - faults::UNTIL;
        assert!(
            recovered <= RECOVERY,
            "right only after {} ms",
            recovered / MS
        );
        self.outcome.recovered_ms = recovered / MS;
        self.check_channels();
        self.sum_up()
    }

    /// All shards are sound, nothing is under way between them, and GLOBAL has one owner, which
    /// all know.
    fn check_channels(&self) {
        let mut global_owners = BTreeSet::new();
        for slot in &self.slots {
            let Some(Part::Channels(channels)) = &slot.part else {
                continue;
            };
            let shards = channels.shards.iter();
            for manager in shards.filter_map(|shard| shard.managers.own.as_ref()) {
                manager.check_invariants().expect("sound channels");
                assert_eq!(manager.handovers_under_way(), 0);
                global_owners.insert(manager.global_owner().map(|(owner, _)| owner));
            }
        }
        assert_eq!(global_owners.len(), 1, "GLOBAL's: {global_owners:?}");
        assert!(!global_owners.contains(&None), "GLOBAL has no owner");
    }

    fn sum_up(mut self) -> Outcome {
        for slot in &mut self.slots {
            Self::count(&mut self.outcome, slot.part.take());
        }
        self.outcome.updates = u64::from(self.truth);
        self.outcome.takeovers = self.owners.len() as u64;
        self.outcome.reconnections = self.peers.iter().map(|peer| peer.hung_up).sum();
        self.outcome.frames_lost = self.bus.frames_lost;
        for (handovers, torn) in self.peers.iter().map(GamePeer::handovers) {
            self.outcome.handovers += handovers;
            self.outcome.torn += torn;
        }
        self.outcome.recoveries = self.peers[0].recoveries;
        self.outcome.missed = self.peers.iter().map(|peer| peer.missed).sum();
        let longest = self.peers.iter().map(|peer| peer.longest).max();
        self.outcome.longest_without_news_ms = longest.unwrap_or_default() / MS;
        self.outcome
    }

    fn count(outcome: &mut Outcome, part: Option<Part>) {
        let all = match part {
            None => return,
            Some(Part::Edge(edge)) => vec![edge.0.counters()],
            Some(Part::Channels(channels)) => {
                outcome.yielded += channels.yielded;
                let nodes = channels.shards.iter().map(|shard| &shard.node);
                outcome.resyncs += nodes.clone().map(ChannelsNode::resyncs).sum::<u64>();
                nodes.map(ChannelsNode::counters).collect()
            }
        };
        for (counters, lost) in all {
            outcome.routes_lost += lost;
            outcome.resent += counters.resent;
            outcome.gaps += counters.gaps;
            outcome.windows_left_out += counters.windows_left_out;
        }
    }

    pub(crate) fn local(&self, slot: &NodeSlot) -> Time {
        Time::from_nanos(self.now + slot.ahead)
    }

    fn start_nodes(&mut self) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.starts_at.is_none_or(|at| at > self.now) {
                continue;
            }
            slot.starts_at = None;
            self.nodes += 1;
            slot.id = NodeId(1000 + self.nodes);
            slot.inbox.clear();
            slot.due = self.now;
            let local = Time::from_nanos(self.now + slot.ahead);
            let times = NodeTimes::default();
            slot.part = Some(if index < self.edges {
                let settings = ConnectionSettings {
                    client_fsm: Fsm::authoritative_client(),
                    ..ConnectionSettings::default()
                };
                let map = ShardMap {
                    count: self.shards,
                    grid: Some(world::grid()),
                    ..ChannelSettings::default().shard_map()
                };
                let edge = ShardedEdge::new(local, slot.id, LOOPS, times, map);
                let side = || ConnectionManager::new(settings.clone());
                Part::Edge(Box::new((edge, (0..LOOPS).map(|_| side()).collect())))
            } else {
                Part::Channels(Box::new(ChannelsPart::new(
                    local,
                    slot.id,
                    self.shards,
                    self.peers[0].recovers,
                )))
            });
            self.bus.add(self.now, slot.id);
        }
    }

    fn go_wrong(&mut self, fault: Fault) {
        if self.says {
            eprintln!("{:>6} ms: {fault:?}", self.now / MS);
        }
        match fault {
            Fault::Kill { node, back_after } => self.kill(node, back_after),
            Fault::End { node, back_after } => self.end(node, back_after),
            Fault::EndOwner { back_after } => {
                let owner = self.slots.iter().position(|slot| self.owned_by(slot) > 0);
                if let Some(node) = owner {
                    self.outcome.planned_ends += self.owned_by(&self.slots[node]);
                    self.end(node, back_after);
                }
            }
            Fault::KillOwner {
                back_after,
                followed,
            } => self.kill_owner(back_after, followed),
            Fault::KillStandby { back_after } => {
                let standbys = self.standbys();
                if let [node, _, ..] = standbys[..] {
                    self.kill(node, back_after);
                }
            }
            Fault::Cut { node, lasting } => {
                let id = self.slots[node].id;
                self.bus.cut(self.now, id, self.now + lasting);
            }
            Fault::CutAll { lasting } => {
                for slot in &self.slots {
                    self.bus.cut(self.now, slot.id, self.now + lasting);
                }
            }
            Fault::Pause { node, lasting } => {
                self.slots[node].paused_until = self.now + lasting;
            }
            Fault::Leap { node, by } => {
                self.slots[node].ahead += by;
                self.slots[node].due = self.now;
            }
            Fault::Impairments(number) => self.bus.impairments = faults::impairments(number),
            Fault::LoseEntry => self.bus.forget_entries(),
        }
    }

    /// A node does what it has to do.
    fn turn(&mut self, index: usize) {
        let now = self.now;
        let slot = &mut self.slots[index];
        if slot.paused_until > now {
            return;
        }
        let local = Time::from_nanos(now + slot.ahead);
        let events = std::mem::take(&mut slot.inbox);
        match &mut slot.part {
            None => return,
            Some(Part::Edge(edge)) => {
                turn_edge(local, events, &mut edge.0, &mut edge.1);
                if peers::close(index, &mut edge.1, &mut self.peers) {
                    for (peer, at) in self.peers.iter().zip(&mut self.connects_at) {
                        if peer.at.is_none() && *at <= now {
                            *at = now + connects_after(peer);
                        }
                    }
                }
            }
            Some(Part::Channels(channels)) => {
                turn_channels(local, events, channels, slot.ending.is_some());
            }
        }
        let id = self.slots[index].id;
        self.send(index, id);
        self.slots[index].due = self.due(&self.slots[index]);
    }

    /// Sends what a node has, and takes its notes.
    fn send(&mut self, index: usize, id: NodeId) {
        let (mut frames, mut tasks, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        match &mut self.slots[index].part {
            None => return,
            Some(Part::Edge(edge)) => {
                frames.extend(std::iter::from_fn(|| edge.0.poll_frame()));
                notes.extend(std::iter::from_fn(|| edge.0.poll_note()));
            }
            Some(Part::Channels(channels)) => {
                for (shard, part) in self.shards.all().zip(&mut channels.shards) {
                    let node = &mut part.node;
                    while let Some((to, frame)) = node.poll_frame() {
                        frames.push((shard, to, frame));
                    }
                    while let Some(task) = node.poll_task() {
                        tasks.push((shard, task));
                    }
                    while let Some(note) = node.poll_note() {
                        notes.push((shard, note));
                    }
                }
            }
        }
        for (shard, to, frame) in frames {
            self.bus.publish(self.now, id, shard, to, &frame);
        }
        for (shard, task) in tasks {
            self.bus.ask(self.now, id, shard, task);
        }
        for (shard, note) in notes {
            if self.says {
                let at = self.now / MS;
                eprintln!("{at:>6} ms: {id} (place {index}), {shard}: {note}");
            }
            match note {
                Note::Owner(epoch) => {
                    self.owners.insert((shard, epoch), id);
                }
                Note::Resting => self.outcome.rests += 1,
                Note::NotYielded(_) => self.outcome.kept += 1,
                Note::Resumed(_) => {
                    self.outcome.resumed += 1;
                    let went_on = self.died_followed.remove(&shard);
                    self.outcome.followed_resumed += u64::from(went_on);
                }
                _ => {}
            }
        }
    }

    /// Returns whether anybody said anything.
    fn turn_peers(&mut self, quiet_from: u64) -> bool {
        let now = self.now;
        let mut any = false;
        for index in 0..self.peers.len() {
            if self.peers[index].at.is_none() && self.connects_at[index] <= now {
                self.connects_at[index] = now + CONNECT_AFTER;
                let edge = self.random.within(0, self.edges as u64) as usize;
                let slot = &mut self.slots[edge];
                let local = Time::from_nanos(now + slot.ahead);
                if let Some(Part::Edge(it)) = &mut slot.part
                    && slot.paused_until <= now
                {
                    self.peers[index].connect(local, edge, side_of(index, &mut it.1));
                    any = true;
                }
            }
        }
        for index in 0..self.peers.len() {
            let Some((edge, _)) = self.peers[index].at else {
                continue;
            };
            let slot = &mut self.slots[edge];
            let local = Time::from_nanos(now + slot.ahead);
            if let Some(Part::Edge(it)) = &mut slot.part
                && slot.paused_until <= now
            {
                let side = side_of(index, &mut it.1);
                any |= self.peers[index].exchange(now, local, side, self.truth);
            }
        }
        if now < self.update_at || now >= quiet_from {
            return any;
        }
        self.update_at = now + UPDATE_EVERY;
        if let Some((edge, _)) = self.peers[0].at {
            let slot = &mut self.slots[edge];
            let local = Time::from_nanos(now + slot.ahead);
            if let Some(Part::Edge(it)) = &mut slot.part
                && slot.paused_until <= now
            {
                self.peers[0].update(local, side_of(0, &mut it.1), &mut self.truth);
                any = true;
            }
        }
        any
    }
}

/// How long a peer that was hung up on waits.
fn connects_after(peer: &GamePeer) -> u64 {
    if peer.recovers {
        RECOVERS_AFTER
    } else {
        CONNECT_AFTER
    }
}

/// The connection loop of an edge that a peer connects to.
pub(crate) fn side_of(peer: usize, sides: &mut [ConnectionManager]) -> &mut ConnectionManager {
    let loops = sides.len();
    &mut sides[peer % loops]
}
