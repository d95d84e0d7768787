//! An edge's ways to the channels where these are divided into shards: a set of routes to
//! each shard's owner, and what a connection loop has to say sent to the shard concerned.
//!
//! A connection loop knows nothing of shards. Its logins go home; who is let in there is made
//! known to all shards before it has its answer ([`introductions`]). A message goes to the
//! shard of its channel ([`destination`]); the channels that somebody asks for are listed by
//! all, and put together here ([`listings`]). What shards have for each other is passed on.
//! Where any shard knows nothing of a loop any more, the loop begins anew with all of them.

mod destination;
mod introductions;
mod listings;

use std::collections::VecDeque;

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::{
    CheckedMessages, HomeVersion, Recipients, ToChannels, ToConnections, Window,
};
use crate::core::{ConnId, GroupId, ShardCount, ShardId, ShardMap};

use super::NodeTimes;
use super::bus::{Address, NodeId, Note};
use super::edge::{Delivery, EdgeNode};
use super::route::RouteCounters;

use destination::{Destination, Placement};
use introductions::{Introductions, Step};
use listings::Listings;

/// What an edge knows of one connection loop.
#[derive(Debug)]
struct Loop {
    introductions: Introductions,
    listings: Listings,
    placement: Placement,
    /// Counts how often a shard has lost the loop.
    losses: u32,
    /// The shards that have, and the numbers of their losses, until the loop has settled that.
    lost: Vec<(ShardId, u32)>,
}

/// An edge of a gateway: its ways to the owners of all shards of the channels.
#[derive(Debug)]
pub struct ShardedEdge {
    map: ShardMap,
    /// For each shard, in order.
    shards: Vec<EdgeNode>,
    loops: Vec<Loop>,
    /// Who owns GLOBAL, as home said last.
    global_owner: Option<(Option<ConnId>, HomeVersion)>,
    deliveries: VecDeque<(u16, Delivery)>,
}

impl ShardedEdge {
    /// An edge with so many connection loops.
    #[must_use]
    pub fn new(now: Time, node: NodeId, loops: u16, times: NodeTimes, map: ShardMap) -> Self {
        let shards = map.count.all();
        let new_loop = |number| Loop {
            introductions: Introductions::new(map.count),
            listings: Listings::new(map.count),
            placement: Placement::new(map, number),
            losses: 0,
            lost: Vec::new(),
        };
        Self {
            map,
            shards: shards
                .map(|_| EdgeNode::new(now, node, loops, times))
                .collect(),
            loops: (0..loops).map(new_loop).collect(),
            global_owner: None,
            deliveries: VecDeque::new(),
        }
    }

    /// Whether more may be taken of connections: not while much waits for the channels.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.shards.iter().all(EdgeNode::has_room)
    }

    /// Whether all connection loops have their route to each shard.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.shards.iter().all(EdgeNode::is_joined)
    }

    /// Whether a game server owns GLOBAL, as far as the owner of home said.
    #[must_use]
    pub fn has_global_owner(&self) -> bool {
        self.shards[0].has_global_owner()
    }

    /// The newest epoch of home that was received.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.shards[0].epoch()
    }

    /// What all routes have counted, and how many were lost.
    #[must_use]
    pub fn counters(&self) -> (RouteCounters, u64) {
        let mut sum = (RouteCounters::default(), 0);
        for shard in &self.shards {
            let (counters, lost) = shard.counters();
            sum.0.add(counters);
            sum.1 += lost;
        }
        sum
    }

    /// A message of a connection loop.
    pub fn send(&mut self, now: Time, number: u16, message: ToChannels) {
        if self.map.count == ShardCount::ONE {
            self.shards[0].send(now, number, &message);
            return;
        }
        let Some(of_loop) = self.loops.get_mut(usize::from(number)) else {
            return;
        };
        if !of_loop.lost.is_empty() {
            return;
        }
        match message {
            ToChannels::Messages { from, messages } => {
                self.send_messages(now, number, from, &messages);
            }
            ToChannels::Auth(attempt) => {
                of_loop.introductions.attempts(&attempt);
                self.shards[0].send(now, number, &ToChannels::Auth(attempt));
            }
            ToChannels::Closed { key, .. } => {
                if let Some(id) = of_loop.introductions.forget(key) {
                    of_loop.listings.forget(id);
                    of_loop.placement.forget(id);
                    self.send_to_all(now, number, &message);
                } else {
                    self.shards[0].send(now, number, &message);
                }
            }
            ToChannels::AddressProven { key } => {
                of_loop.introductions.address_proven(key);
                self.send_to_all(now, number, &message);
            }
            ToChannels::Resync { channel, .. } => {
                let shard = self.map.shard_of(channel);
                self.shards[shard.index()].send(now, number, &message);
            }
            // Who paused whom is of connections, which all are known at home.
            _ => self.shards[0].send(now, number, &message),
        }
    }

    fn send_to_all(&mut self, now: Time, number: u16, message: &ToChannels) {
        for shard in &mut self.shards {
            shard.send(now, number, message);
        }
    }

    /// Each of a packet's messages to the shard concerned. Those for one shard stay in order,
    /// as do those for one channel in one process; others never were.
    fn send_messages(&mut self, now: Time, number: u16, from: ConnId, messages: &CheckedMessages) {
        let of_loop = &mut self.loops[usize::from(number)];
        let destinations = messages.iter().map(|message| {
            let to = of_loop.placement.destination(from, &message);
            let is_refused = to == Destination::AllParts && !of_loop.listings.ask(from, &message);
            (!is_refused).then_some(to)
        });
        let destinations: Vec<Option<Destination>> = destinations.collect();
        for (id, shard) in self.map.count.all().zip(&mut self.shards) {
            let is_for = |to: &Option<Destination>| to.is_some_and(|to| to.includes(id));
            let messages = match destinations.iter().filter(|to| is_for(to)).count() {
                0 => continue,
                count if count == destinations.len() => messages.clone(),
                _ => messages.pick(|place| is_for(&destinations[place])),
            };
            shard.send(now, number, &ToChannels::Messages { from, messages });
        }
    }

    /// A loop has closed all connections that it had when it learnt of the loss with this
    /// number, and what it sends from now on is of others.
    pub fn settled(&mut self, now: Time, number: u16, loss: u32) {
        let Some(of_loop) = self.loops.get_mut(usize::from(number)) else {
            return;
        };
        if of_loop.losses != loss {
            return;
        }
        for (shard, incarnation) in std::mem::take(&mut of_loop.lost) {
            let node = &mut self.shards[shard.index()];
            node.settled(now, number, incarnation);
            if let Some((owner, version)) = self.global_owner
                && shard != ShardId::HOME
            {
                node.send(now, number, &ToChannels::GlobalOwner { owner, version });
            }
        }
    }

    /// The bus is there again.
    pub fn on_up(&mut self, now: Time) {
        for shard in &mut self.shards {
            shard.on_up(now);
        }
    }

    /// A frame of a shard has come.
    pub fn on_frame(&mut self, now: Time, shard: ShardId, bytes: Bytes) {
        if let Some(node) = self.shards.get_mut(shard.index()) {
            node.on_frame(now, bytes);
            self.take_deliveries(now);
        }
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    #[must_use]
    pub fn next_deadline(&self, now: Time) -> Option<Time> {
        let shards = self.shards.iter();
        shards.filter_map(|shard| shard.next_deadline(now)).min()
    }

    /// Does what is due.
    pub fn handle_deadline(&mut self, now: Time) {
        for shard in &mut self.shards {
            shard.handle_deadline(now);
        }
        self.take_deliveries(now);
    }

    /// The node ends: owners are notified, once.
    pub fn end(&mut self) {
        for shard in &mut self.shards {
            shard.end();
        }
    }

    /// The next frame to be sent, of which shard, and where to.
    pub fn poll_frame(&mut self) -> Option<(ShardId, Address, Bytes)> {
        let shards = self.map.count.all().zip(&mut self.shards);
        let mut frames = shards.filter_map(|(id, shard)| {
            let (to, frame) = shard.poll_frame()?;
            Some((id, to, frame))
        });
        frames.next()
    }

    /// Something for a connection loop.
    pub fn poll_delivery(&mut self) -> Option<(u16, Delivery)> {
        self.deliveries.pop_front()
    }

    /// What is to be logged, and which shard it is of.
    pub fn poll_note(&mut self) -> Option<(ShardId, Note)> {
        let shards = self.map.count.all().zip(&mut self.shards);
        let mut notes = shards.filter_map(|(id, shard)| Some((id, shard.poll_note()?)));
        notes.next()
    }

    fn take_deliveries(&mut self, now: Time) {
        for shard in self.map.count.all() {
            while let Some((number, delivery)) = self.shards[shard.index()].poll_delivery() {
                match delivery {
                    Delivery::Lost(incarnation) => self.lose(now, shard, number, incarnation),
                    Delivery::Message(message) if self.map.count == ShardCount::ONE => {
                        self.deliveries
                            .push_back((number, Delivery::Message(message)));
                    }
                    Delivery::Message(message) => self.take(now, shard, number, message),
                }
            }
        }
    }

    /// A shard knows nothing of a loop any more: for all others its connections have broken
    /// off.
    fn lose(&mut self, now: Time, shard: ShardId, number: u16, incarnation: u32) {
        let of_loop = &mut self.loops[usize::from(number)];
        of_loop.lost.push((shard, incarnation));
        of_loop.losses += 1;
        let loss = of_loop.losses;
        of_loop.listings.clear();
        of_loop.placement.clear();
        let keys: Vec<_> = of_loop.introductions.clear().collect();
        for key in keys {
            let closed = ToChannels::Closed {
                key,
                broke_off: true,
            };
            self.send_to_all(now, number, &closed);
        }
        self.deliveries.push_back((number, Delivery::Lost(loss)));
    }

    /// A shard's message for a connection loop.
    fn take(&mut self, now: Time, shard: ShardId, number: u16, message: ToConnections) {
        let of_loop = &mut self.loops[usize::from(number)];
        if let ToConnections::GlobalOwner {
            owner,
            number: decision,
        } = message
        {
            self.on_global_owner(now, number, owner, decision);
            return;
        }
        // Is of no connection.
        if let ToConnections::Relay { to, frame } = message {
            if let Some(other) = self.shards.get_mut(to.index()) {
                let from = shard;
                other.send(now, number, &ToChannels::Relayed { from, frame });
            }
            return;
        }
        // What comes for connections that are to be closed is of no use; who is banned for
        // is said again with the next login.
        if !of_loop.lost.is_empty() {
            return;
        }
        match message {
            ToConnections::AuthAnswer { .. } => {
                let epoch = self.shards[0].epoch().unwrap_or_default();
                match of_loop.introductions.on_answer(message, epoch) {
                    Some(Step::Deliver(answer)) => self.deliver(number, answer),
                    Some(Step::MakeKnown(admitted)) => {
                        let admitted = ToChannels::Admitted(admitted);
                        for shard in &mut self.shards[1..] {
                            shard.send(now, number, &admitted);
                        }
                    }
                    None => {}
                }
            }
            ToConnections::Known { key } => {
                if let Some((connection, answer)) = of_loop.introductions.on_known(shard, key) {
                    of_loop.placement.introduce(connection.id, connection.peer);
                    self.deliver(number, answer);
                    self.send_to_all(now, number, &ToChannels::Introduced { key });
                }
            }
            ToConnections::ListPart { to, channels } => {
                let answer = of_loop.listings.take(shard, to, channels);
                for message in answer.into_iter().flatten() {
                    self.deliver(number, ToConnections::Send { to, message });
                }
            }
            mut other => {
                self.renumber(shard, &mut other);
                self.deliver(number, other);
            }
        }
    }

    /// Gives the group that a shard speaks of, if it speaks of one, a number that is no other
    /// shard's.
    fn renumber(&self, shard: ShardId, message: &mut ToConnections) {
        let (ToConnections::Join { group, .. }
        | ToConnections::Leave { group, .. }
        | ToConnections::Window(Window {
            to: Recipients::Group(group),
            ..
        })
        | ToConnections::Missed {
            to: Recipients::Group(group),
            ..
        }) = message
        else {
            return;
        };
        let step = u32::from(self.map.count.get());
        let number = group.0.saturating_mul(step);
        *group = GroupId(number.saturating_add(u32::from(shard.0)));
    }

    fn deliver(&mut self, number: u16, message: ToConnections) {
        let delivery = Delivery::Message(message);
        self.deliveries.push_back((number, delivery));
    }

    /// Home has said who owns GLOBAL.
    fn on_global_owner(&mut self, now: Time, number: u16, owner: Option<ConnId>, decision: u64) {
        let epoch = self.shards[0].epoch().unwrap_or_default();
        let version = HomeVersion {
            epoch,
            number: decision,
        };
        let newest = self.global_owner.map(|(_, version)| version);
        if newest.is_none_or(|newest| newest < version) {
            self.global_owner = Some((owner, version));
        }
        // Even one that another loop has said: what this loop has of home comes after it.
        for shard in &mut self.shards[1..] {
            shard.send(now, number, &ToChannels::GlobalOwner { owner, version });
        }
    }
}
