//! How an owner that ends hands the channels over, and how a node that stands by takes them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use lagometer_units::Time;

use super::super::bus::{Address, NodeId, Note};
use super::super::follow::Loss;
use super::super::frame::{Content, Data};
use super::super::handover::{Incoming, Outgoing, Package, Shift, is_taken};
use super::super::lease::Standing;
use super::super::route::RouteEnd;
use super::super::sides::Sides;
use super::balancing::Standby;
use super::{ChannelsEvent, ChannelsNode};

/// A node that stands by answers each announcement: who has missed so many is not asked.
const MISSED_AT_MOST: u32 = 3;

impl ChannelsNode {
    /// The node ends: others may have the channels at once. If one stands by, they are
    /// handed over to it before ([`ChannelsEvent::HandOver`] comes); until
    /// [`is_over`](Self::is_over) the node is to be driven on.
    pub fn end(&mut self, now: Time) {
        // Even if another does not take them.
        if self.yields_to.take().is_some()
            && let Some(outgoing) = &mut self.outgoing
        {
            outgoing.until = now + self.times.handover;
        }
        // What it reclaims is handed over once it has that.
        if !std::mem::replace(&mut self.is_ending, true) && !self.reclaims {
            self.leave(now);
        }
    }

    /// Hands the channels over, if they are this node's, and ends to own or follow any.
    pub(super) fn leave(&mut self, now: Time) {
        self.look_at_lease(now);
        if let (Standing::StandsBy, Some((owner, epoch))) = (self.standing, self.lease.holder()) {
            self.post(epoch, Address::Node(owner), Content::Leaves);
        }
        self.heir = self.complete_follower();
        let mut others: VecDeque<NodeId> = self.in_touch(now).collect();
        // One that follows is first, and one that does not keep up is last: it may be gone. Of
        // the others, who said last that it stands by is most likely there still.
        let (heir, standbys) = (self.heir, &self.standbys);
        let follower = self.follower.as_ref();
        let keeps_up = follower.is_some_and(|it| it.keeps_up(now, self.times.follow / 4));
        let yields_to = self.yields_to;
        let order = |node: &NodeId| {
            let rank = match heir == Some(*node) {
                _ if yields_to == Some(*node) => 0,
                true if keeps_up => 1,
                false => 2,
                true => 3,
            };
            (rank, Reverse(standbys.get(node).map(|standby| standby.at)))
        };
        others.make_contiguous().sort_by_key(order);
        match (self.standing, others.pop_front()) {
            (Standing::Owns(_), Some(to)) => {
                self.outgoing = Some(Outgoing {
                    to,
                    end: RouteEnd::new(now, self.times),
                    answered_at: now,
                    package: Bytes::new(),
                    others,
                    until: now + self.handover_time(),
                });
                // What it does not know of is never sent from here.
                self.follower = None;
                self.events.push_back(ChannelsEvent::HandOver);
            }
            _ => self.give_up(now, self.heir),
        }
    }

    /// How many nodes stand by for the channels that this node owns.
    #[must_use]
    pub fn standbys(&self, now: Time) -> usize {
        self.in_touch(now).count()
    }

    pub(super) fn in_touch(&self, now: Time) -> impl Iterator<Item = NodeId> {
        let within = self.times.heartbeat * MISSED_AT_MOST;
        let standbys = self.standbys.iter();
        standbys
            .filter(move |(_, standby)| now.since(standby.at) < within)
            .map(|(&node, _)| node)
    }

    /// Whether it has ended and there is nothing more to do or to wait for.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.outgoing.is_none() && self.lease.is_over()
    }

    /// The channel manager as it has [written](crate::core::ChannelManager::snapshot)
    /// itself, after all that it had to say was [sent](Self::send); `None` if it could not.
    /// It is to be left alone from now on.
    pub fn hand_over(&mut self, now: Time, channels: Option<Vec<u8>>) {
        let package = channels.map(|channels| self.package(now, channels));
        let Some(outgoing) = &mut self.outgoing else {
            return;
        };
        match package.and_then(|package| package.encode()) {
            Some(bytes) => {
                outgoing.end.push(now, &bytes, None);
                outgoing.package = bytes;
            }
            None => {
                self.not_handed_over(now, "they cannot be written, or there is too much of them");
            }
        }
    }

    pub(super) fn package(&self, now: Time, channels: Vec<u8>) -> Package {
        Package {
            channels_at: self.shift.to_channels(now),
            since: self.since,
            has_global_owner: self.has_global_owner,
            sides: self.sides.save(now),
            channels: channels.into(),
        }
    }

    /// The channels of a [`ChannelsEvent::Replica`] were read back, or could not be.
    pub fn on_replica(&mut self, now: Time, is_sound: bool) {
        if let Some(following) = &mut self.following {
            following.on_restored(now, is_sound);
        } else if let Some(incoming) = &mut self.incoming {
            incoming.answer(now, is_sound);
            if is_sound {
                // Should the owner die before it gives the lease up, that runs out.
                let until = now + self.times.handover + self.times.lease;
                self.lease.hurry(now, until);
            }
        }
    }

    /// How far the clock of the channels is ahead of the node's, nanoseconds, where they
    /// come from another node.
    #[must_use]
    pub fn channels_ahead_ns(&self) -> i64 {
        self.shift.ahead_ns()
    }

    /// What the clock of the channels shows now. It is what the manager is to be handed.
    #[must_use]
    pub fn channels_time(&self, now: Time) -> Time {
        self.shift.to_channels(now)
    }

    /// The node's instant at which the clock of the channels shows that.
    #[must_use]
    pub fn node_time(&self, at: Time) -> Time {
        self.shift.to_node(at)
    }

    pub(super) fn on_stands_by(&mut self, now: Time, node: NodeId, load: u16) {
        self.standbys.insert(node, Standby { at: now, load });
        let most = self.times.heartbeat * MISSED_AT_MOST;
        self.standbys
            .retain(|_, standby| now.since(standby.at) < most);
    }

    /// Says to an owner that this node stands by.
    pub(super) fn answer_owner(&mut self, now: Time, owner: NodeId, epoch: u64) {
        if owner != self.node
            && self.standing == Standing::StandsBy
            && !self.is_ending
            && self.is_ready(now)
        {
            let load = self.load;
            self.post(epoch, Address::Node(owner), Content::StandsBy { load });
        }
    }

    /// A frame of a handover, in either direction.
    pub(super) fn on_handover(&mut self, now: Time, from: NodeId, epoch: u64, data: Data) {
        match self.standing {
            Standing::StandsBy if !self.is_ending => self.on_incoming(now, from, epoch, data),
            Standing::Owns(own) | Standing::Rests(own) if own == epoch => {
                self.on_answer(now, from, data);
            }
            _ => {}
        }
    }

    fn on_incoming(&mut self, now: Time, from: NodeId, epoch: u64, data: Data) {
        self.lease.note_epoch(epoch);
        let known = self.incoming.as_ref().map(|it| (it.from, it.epoch));
        if known != Some((from, epoch)) {
            if known.is_some_and(|(_, of)| of >= epoch) || epoch < self.lease.newest() {
                return;
            }
            self.incoming = Some(Incoming {
                from,
                epoch,
                end: Some(RouteEnd::new(now, self.times)),
                package: None,
                shift: Shift::default(),
                is_ready: false,
            });
        }
        let Some(incoming) = &mut self.incoming else {
            return;
        };
        let Some(end) = &mut incoming.end else {
            return;
        };
        let mut messages = Vec::new();
        if end.take(now, data, &mut messages).is_err() {
            self.incoming = None;
            return;
        }
        for message in messages {
            let Some(mut package) = Package::decode(&message) else {
                incoming.answer(now, false);
                continue;
            };
            incoming.shift = Shift::new(now, package.channels_at);
            let channels = std::mem::take(&mut package.channels);
            incoming.package = Some(package);
            // It is newer than what this node has followed so far.
            self.following = None;
            self.events.push_back(ChannelsEvent::Replica(channels));
        }
    }

    fn on_answer(&mut self, now: Time, from: NodeId, data: Data) {
        let Some(outgoing) = self.outgoing.as_mut().filter(|it| it.to == from) else {
            return;
        };
        outgoing.answered_at = now;
        let mut messages = Vec::new();
        let is_nonsense = outgoing.end.take(now, data, &mut messages).is_err();
        match messages.first() {
            Some(answer) if !is_nonsense && is_taken(answer) => {
                let (node, bytes) = (from, outgoing.package.len());
                self.notes.push_back(Note::HandedOver { node, bytes });
                self.give_up(now, Some(from));
            }
            None if !is_nonsense => {}
            // Others may have other settings.
            _ => {
                self.heir.take_if(|heir| *heir == from);
                self.ask_another(now, "no node that stands by can read them");
            }
        }
    }

    /// Another node ends that stood by.
    pub(super) fn on_leaves(&mut self, now: Time, node: NodeId) {
        self.standbys.remove(&node);
        self.heir.take_if(|heir| *heir == node);
        if self.follower.as_ref().is_some_and(|it| it.node == node) {
            self.lose_follower(now, Loss::Ended);
        }
        let Some(outgoing) = &mut self.outgoing else {
            return;
        };
        outgoing.others.retain(|other| *other != node);
        if outgoing.to == node && !outgoing.package.is_empty() {
            self.ask_another(now, "the node that stood by has ended");
        }
    }

    /// The node asked does not take them: the next is asked, if there is one.
    fn ask_another(&mut self, now: Time, why: &'static str) {
        let times = self.times;
        let outgoing = self.outgoing.as_mut();
        if !outgoing.is_some_and(|outgoing| outgoing.ask_another(now, times)) {
            self.not_handed_over(now, why);
        }
    }

    pub(super) fn not_handed_over(&mut self, now: Time, why: &'static str) {
        if self.yields_to.is_some() {
            self.keep(now, why);
            return;
        }
        self.notes.push_back(Note::NotHandedOver(why));
        // As if this node had died: nothing was sent that one that follows does not have.
        self.give_up(now, self.heir);
    }

    fn give_up(&mut self, now: Time, successor: Option<NodeId>) {
        self.outgoing = None;
        self.lease.end(now, successor);
        self.look_at_lease(now);
    }

    /// Sends what is due of a handover.
    pub(super) fn drive_handover(&mut self, now: Time) {
        self.drive_reclaiming(now);
        let (standing, times) = (self.standing, self.times);
        if let (Some(outgoing), Standing::Owns(epoch) | Standing::Rests(epoch)) =
            (&mut self.outgoing, standing)
        {
            let is_silent = now.since(outgoing.answered_at) >= times.heartbeat;
            if is_silent && outgoing.until > now {
                outgoing.ask_another(now, times);
            }
            let to = outgoing.to;
            if outgoing.until <= now {
                self.not_handed_over(now, "the node that stands by does not answer in time");
                return;
            }
            for data in outgoing.end.poll_all(now) {
                self.post(epoch, Address::Node(to), Content::Handover { data });
            }
        }
        // One of an owner that others have succeeded is of no use.
        let lease = &self.lease;
        self.incoming
            .take_if(|incoming| lease.is_past(incoming.epoch));
        if let Some(incoming) = &mut self.incoming
            && let Some(end) = &mut incoming.end
        {
            let (to, epoch) = (incoming.from, incoming.epoch);
            if end.is_lost(now).is_some() {
                incoming.end = None;
                return;
            }
            for data in end.poll_all(now) {
                self.post(epoch, Address::Node(to), Content::Handover { data });
            }
        }
    }

    pub(super) fn handover_deadline(&self, now: Time) -> Option<Time> {
        let outgoing = self.outgoing.as_ref();
        let outgoing = outgoing.map(|it| it.end.next_deadline(now).min(it.until));
        let incoming = self.incoming.as_ref().and_then(|it| it.end.as_ref());
        let incoming = incoming.map(|end| end.next_deadline(now));
        outgoing.into_iter().chain(incoming).min()
    }

    /// This node owns the channels from now on, in this epoch.
    pub(super) fn begin(&mut self, now: Time, epoch: u64) {
        self.announce_at = now;
        self.owns_since = now;
        self.refusals = 0;
        (self.follow_at, self.follow_pause) = (now, self.times.renew);
        self.standbys.clear();
        self.notes.push_back(Note::Owner(epoch));
        let predecessor = self.lease.predecessor();
        let incoming = self.incoming.take();
        let incoming =
            incoming.filter(|it| it.is_ready && predecessor == Some((it.from, it.epoch)));
        let handed_over = incoming.and_then(|incoming| {
            let (from, shift) = (incoming.from, incoming.shift);
            let package = incoming.package?;
            let sides = Sides::restore(now, self.times, package.sides)?;
            let (since, has_owner) = (package.since, package.has_global_owner);
            Some((from, since, has_owner, shift, sides))
        });
        let followed = self.take_followed(now, predecessor);
        let Some((from, since, has_owner, shift, sides)) = handed_over.or(followed) else {
            self.since = epoch;
            self.shift = Shift::default();
            self.events.push_back(ChannelsEvent::Begin(epoch));
            return;
        };
        self.since = since;
        self.shift = shift;
        self.has_global_owner = has_owner;
        self.sides.replace(sides);
        self.notes.push_back(Note::Resumed(from));
        self.events.push_back(ChannelsEvent::Resume(epoch));
        self.announce_to_edges(epoch);
    }

    /// Each edge learns of the epoch before anything of its routes comes.
    pub(super) fn announce_to_edges(&mut self, epoch: u64) {
        let edges: BTreeSet<NodeId> = (self.sides.by_id.values())
            .map(|side| side.joined.edge)
            .collect();
        for edge in edges {
            let announce = self.announcement();
            self.post(epoch, Address::Node(edge), announce);
        }
    }
}
