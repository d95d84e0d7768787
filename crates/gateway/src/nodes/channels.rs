//! A node for channels: it stands by for the lease, and while it has it, it keeps a route
//! for each connection loop of every edge.

mod balancing;
mod event;
mod following;
mod handing_over;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::SideId;
use crate::core::bus::ToConnections;

use super::NodeTimes;
use super::bus::{Address, NodeId, Note};
use super::codec::encode_to_connections;
use super::follow::{Entry, Follower, Following};
use super::frame::{Content, Data, Frame, PROTOCOL, Unread};
use super::handover::{Incoming, Outgoing, Shift};
use super::lease::{Lease, LeaseAnswer, LeaseTask, Standing};
use super::route::RouteCounters;
use super::sides::Sides;

use balancing::Standby;
pub use event::{ChannelsEvent, Replayed};

/// A node for channels. See the [module](super).
#[derive(Debug)]
pub struct ChannelsNode {
    node: NodeId,
    times: NodeTimes,
    lease: Lease,
    /// How it stood to the channels when it was last looked at.
    standing: Standing,
    /// The routes of this epoch.
    sides: Sides,
    has_global_owner: bool,
    /// The epoch since which the channels have not been lost.
    since: u64,
    /// How far their clock is ahead of this node's.
    shift: Shift,
    announce_at: Time,
    /// Nodes that stand by.
    standbys: BTreeMap<NodeId, Standby>,
    /// This node ends, and hands the channels over.
    outgoing: Option<Outgoing>,
    /// The owner ends, and hands them over to this node.
    incoming: Option<Incoming>,
    /// The node that follows this one.
    follower: Option<Follower>,
    /// How often nodes began to follow this one, and when the next may.
    sessions: u32,
    follow_at: Time,
    /// The owner that this node follows.
    following: Option<Following>,
    /// The last time that an owner began to be followed by this node: its epoch, and the
    /// number that the owner gave it.
    followed: (u64, u32),
    resyncs: u64,
    /// How long none may follow after the next that is lost.
    follow_pause: Duration,
    /// Since when the follower is in sync.
    in_sync_since: Time,
    /// The node that follows this one, which ends.
    heir: Option<NodeId>,
    is_ending: bool,
    /// How many shards this node's process owns.
    load: u16,
    /// Since when this node owns the channels.
    owns_since: Time,
    /// It ends only so that this one has the channels.
    yields_to: Option<NodeId>,
    /// That one has not taken them: this node goes on in a new epoch, once it has that.
    reclaims: bool,
    /// How often in a row no other node has taken them.
    refusals: u32,
    frames: VecDeque<(Address, Bytes)>,
    events: VecDeque<ChannelsEvent>,
    notes: VecDeque<Note>,
    refused: BTreeSet<u16>,
}

impl ChannelsNode {
    /// A node that stands by.
    #[must_use]
    pub fn new(now: Time, node: NodeId, times: NodeTimes) -> Self {
        Self {
            node,
            times,
            lease: Lease::new(now, node, times),
            standing: Standing::StandsBy,
            sides: Sides::new(times),
            has_global_owner: false,
            since: 0,
            shift: Shift::default(),
            announce_at: now,
            standbys: BTreeMap::new(),
            outgoing: None,
            incoming: None,
            follower: None,
            sessions: 0,
            follow_at: now,
            following: None,
            followed: (0, 0),
            resyncs: 0,
            follow_pause: times.renew,
            in_sync_since: now,
            heir: None,
            is_ending: false,
            load: 0,
            owns_since: now,
            yields_to: None,
            reclaims: false,
            refusals: 0,
            frames: VecDeque::new(),
            events: VecDeque::new(),
            notes: VecDeque::new(),
            refused: BTreeSet::new(),
        }
    }

    /// How it stands to the channels now. While it does not own them, the channel manager
    /// is to be left alone.
    #[must_use]
    pub fn standing(&self, now: Time) -> Standing {
        match self.lease.standing(now) {
            // What it has handed over is another's to change.
            Standing::Owns(epoch) if self.outgoing.is_some() || self.reclaims => {
                Standing::Rests(epoch)
            }
            standing => standing,
        }
    }

    /// Whether it owns the channels or could take them over: it has been in touch with the
    /// lease.
    #[must_use]
    pub fn is_ready(&self, now: Time) -> bool {
        self.lease.is_in_touch(now)
    }

    /// How many connection loops of edges have a route.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.sides.by_id.len()
    }

    /// What routes have counted, and how many were lost.
    #[must_use]
    pub fn counters(&self) -> (RouteCounters, u64) {
        self.sides.counters()
    }

    /// Whether a game server owns GLOBAL, for edges to know.
    pub fn set_has_global_owner(&mut self, now: Time, has_one: bool) {
        if self.has_global_owner != has_one {
            self.has_global_owner = has_one;
            self.announce_at = now;
        }
    }

    /// A message of the channel manager. What is for a side that is no more is dropped.
    pub fn send(&mut self, now: Time, side: SideId, message: &ToConnections) {
        let bytes = encode_to_connections(self.shift.to_channels(now), message);
        if self.sides.push(now, side, message, &bytes)
            && let Some(follower) = &mut self.follower
        {
            follower.on_said(side, &bytes);
        }
    }

    /// The bus is there again.
    pub fn on_up(&mut self) {
        for side in self.sides.by_id.values_mut() {
            side.end.send_again();
        }
        if let Some(follower) = &mut self.follower {
            follower.end.send_again();
        }
        let following = self.following.as_mut();
        if let Some(end) = following.and_then(|it| it.end.as_mut()) {
            end.send_again();
        }
    }

    /// An answer of the lease's entry has come.
    pub fn on_lease(&mut self, now: Time, number: u64, answer: LeaseAnswer) {
        let revision = self.lease.revision();
        self.lease.on_answer(now, number, answer);
        self.look_at_lease(now);
        if let (Some(follower), true) = (&mut self.follower, revision != self.lease.revision()) {
            follower.end.answer_at_once();
        }
        // Whoever knows that this node is ready may end the owner at once.
        if let Some((owner, epoch)) = self.lease.holder() {
            self.answer_owner(now, owner, epoch);
        }
    }

    /// A frame has come.
    pub fn on_frame(&mut self, now: Time, bytes: Bytes) {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(Unread::OtherProtocol(theirs)) => {
                if self.refused.insert(theirs) {
                    let ours = PROTOCOL;
                    self.notes.push_back(Note::OtherProtocol { theirs, ours });
                }
                return;
            }
            Err(Unread::Malformed) => return,
        };
        match frame.content {
            Content::Announce { .. } => {
                if frame.from != self.node {
                    self.lease.note_epoch(frame.epoch);
                    self.answer_owner(now, frame.from, frame.epoch);
                }
                return;
            }
            Content::Handover { data } => {
                self.look_at_lease(now);
                self.on_handover(now, frame.from, frame.epoch, data);
                return;
            }
            // One that hands the channels over wants to know at once.
            Content::Leaves => {
                self.on_leaves(now, frame.from);
                return;
            }
            Content::Follow(follow) => {
                self.look_at_lease(now);
                self.on_follow(now, frame.from, frame.epoch, follow);
                return;
            }
            Content::Stale { newest } => {
                self.lease.raise(now, newest);
                return;
            }
            _ => {}
        }
        self.look_at_lease(now);
        // One that rests takes nothing: what it would take is sent again.
        if self.standing(now) != Standing::Owns(frame.epoch) {
            return;
        }
        match frame.content {
            Content::Hello {
                number,
                incarnation,
            } => self.on_hello(now, frame.from, number, incarnation),
            Content::Data { token, data } => self.on_data(now, frame.from, token, data),
            Content::Bye { token } => {
                if let Some(side) = self.sides.find(frame.from, token) {
                    self.lose(now, side, "it has ended");
                }
            }
            Content::StandsBy { load } => self.on_stands_by(now, frame.from, load),
            _ => {}
        }
    }

    fn on_hello(&mut self, now: Time, edge: NodeId, number: u16, incarnation: u32) {
        let Standing::Owns(epoch) = self.standing else {
            return;
        };
        let token = match self.sides.of_loop(edge, number) {
            Some((_, known)) if known.incarnation == incarnation => known.token,
            // A frame of the past.
            Some((_, known)) if known.incarnation > incarnation => return,
            known => {
                if let Some((old, _)) = known {
                    self.lose(now, old, "it has begun anew");
                }
                let Some((side, joined)) = self.sides.add(now, edge, number, incarnation) else {
                    return;
                };
                self.on_joined(now, side, joined);
                self.notes.push_back(Note::EdgeJoined { edge, number });
                joined.token
            }
        };
        let welcome = Content::Welcome {
            number,
            incarnation,
            token,
        };
        self.welcome(epoch, edge, welcome);
    }

    fn on_data(&mut self, now: Time, edge: NodeId, token: u32, data: Data) {
        let Some(id) = self.sides.find(edge, token) else {
            if let Standing::Owns(epoch) = self.standing {
                self.post(epoch, Address::Node(edge), Content::Reset { token });
            }
            return;
        };
        if self
            .sides
            .by_id
            .get(&id)
            .is_some_and(|side| side.is_unsound)
        {
            return;
        }
        let news = self.news_for_follower(id, &data);
        let came = self.sides.take(now, id, data);
        if let (true, Some(data)) = (came.fits, news) {
            self.record(now, &Entry::Data { side: id, data });
        }
        for message in came.messages {
            self.events.push_back(ChannelsEvent::Message(id, message));
        }
        if !came.is_sound
            && let Some(side) = self.sides.by_id.get_mut(&id)
        {
            // Once what came before is done.
            side.is_unsound = true;
        }
    }

    /// Gives a route up: for the channel manager its connections have broken off.
    fn lose(&mut self, now: Time, id: SideId, why: &'static str) {
        let Some((joined, closed)) = self.sides.remove(id) else {
            return;
        };
        self.on_lost(now, id);
        self.notes.push_back(Note::EdgeLost {
            edge: joined.edge,
            number: joined.number,
            why,
            // The last says that the route is lost.
            connections: closed.len() - 1,
        });
        for message in closed {
            self.events.push_back(ChannelsEvent::Message(id, message));
        }
        if let Standing::Owns(epoch) = self.standing {
            let token = joined.token;
            self.post(epoch, Address::Node(joined.edge), Content::Reset { token });
        }
    }

    /// Begins or ends to own the channels, as the lease has it.
    fn look_at_lease(&mut self, now: Time) {
        let (before, after) = (self.standing, self.lease.standing(now));
        if before == after {
            return;
        }
        self.standing = after;
        let epoch_of = |standing| match standing {
            Standing::StandsBy => None,
            Standing::Owns(epoch) | Standing::Rests(epoch) => Some(epoch),
        };
        if epoch_of(before) == epoch_of(after) {
            self.notes.push_back(match after {
                Standing::Owns(_) => Note::GoesOn,
                _ => Note::Resting,
            });
            return;
        }
        if let Standing::Owns(epoch) = after
            && std::mem::take(&mut self.reclaims)
            && epoch_of(before).is_some()
        {
            self.reclaim(now, epoch);
            return;
        }
        if epoch_of(before).is_some() {
            self.yield_no_more(now);
            self.outgoing = None;
            self.follower = None;
            self.standbys.clear();
            self.sides.clear();
            self.has_global_owner = false;
            self.events.push_back(ChannelsEvent::End);
            let why = "the lease is given up, or another node has it";
            self.notes.push_back(Note::OwnerNoMore(why));
        }
        if let Some(epoch) = epoch_of(after) {
            if self.is_ending {
                self.lease.end(now, None);
                self.standing = Standing::StandsBy;
            } else {
                self.begin(now, epoch);
            }
        }
    }

    fn announcement(&self) -> Content {
        Content::Announce {
            has_global_owner: self.has_global_owner,
            since: self.since,
        }
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    #[must_use]
    pub fn next_deadline(&self, now: Time) -> Option<Time> {
        let lease = self.lease.next_deadline();
        let handover = self.handover_deadline(now);
        let following = self.following_deadline(now);
        let handover = handover.into_iter().chain(following).min();
        let Standing::Owns(_) = self.standing(now) else {
            // One that rests has its lease's end behind it.
            let lease = lease.map(|due| due.max(now + self.times.resend / 10));
            return lease.into_iter().chain(handover).min();
        };
        let sides = self.sides.next_deadline(now).into_iter();
        let all = sides.chain(lease).chain(self.follower_deadline(now));
        all.chain([self.announce_at]).min()
    }

    /// Sends what is due, and gives up routes on which nothing moves.
    pub fn handle_deadline(&mut self, now: Time) {
        self.lease.handle_deadline(now);
        self.look_at_lease(now);
        self.drive_handover(now);
        self.drive_following(now);
        let Standing::Owns(epoch) = self.standing(now) else {
            return;
        };
        if self.announce_at <= now {
            self.announce_at = now + self.times.heartbeat;
            let announcement = self.announcement();
            self.post(epoch, Address::All, announcement);
        }
        // One at a time: what the channels have to say of it is said to the others before
        // the next is gone, here as with a node that follows.
        let lost = self.sides.lost(now).filter(|_| self.events.is_empty());
        if let Some((id, why)) = lost {
            self.lose(now, id, why);
        }
        self.drive_follower(now, epoch);
        let from = self.node;
        for side in self.sides.by_id.values_mut() {
            let token = side.joined.token;
            while let Some(data) = side.end.poll(now) {
                let content = Content::Data { token, data };
                let frame = Frame {
                    from,
                    epoch,
                    content,
                };
                let to = Address::Node(side.joined.edge);
                self.frames.push_back((to, frame.encode()));
            }
        }
    }

    fn post(&mut self, epoch: u64, to: Address, content: Content) {
        let frame = Frame {
            from: self.node,
            epoch,
            content,
        };
        self.frames.push_back((to, frame.encode()));
    }

    /// The next frame to send.
    pub fn poll_frame(&mut self) -> Option<(Address, Bytes)> {
        self.frames.pop_front()
    }

    /// What is to be done with the lease's entry.
    pub fn poll_task(&mut self) -> Option<LeaseTask> {
        self.lease.poll_task()
    }

    /// What is to be done with the channel manager.
    pub fn poll_event(&mut self) -> Option<ChannelsEvent> {
        let event = self.events.pop_front();
        event.or_else(|| self.next_replayed())
    }

    /// What is to be logged.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.lease.poll_note().or_else(|| self.notes.pop_front())
    }
}
