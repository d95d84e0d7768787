//! A node for channels: it stands by for the lease, and while it has it, it keeps a route
//! for each connection loop of every edge.

mod handing_over;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{ConnKey, SideId};

use super::NodeTimes;
use super::bus::{Address, NodeId, Note};
use super::codec::{decode_to_channels, encode_to_connections};
use super::frame::{Content, Data, Frame, PROTOCOL, Unread};
use super::handover::{Incoming, Outgoing, Shift};
use super::lease::{Lease, LeaseAnswer, LeaseTask, Standing};
use super::route::{RouteCounters, RouteEnd};

/// What is to be done with the channel manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelsEvent {
    /// This node owns the channels from now on: a new manager begins, without channels.
    Begin(u64),
    /// It owns the channels of the last [replica](Self::Replica): that manager goes on.
    /// Logins that it had given out are to be [asked about
    /// again](crate::core::ChannelManager::ask_again).
    Resume(u64),
    /// This node ends. What the manager has to say is to be sent, then it is to be written
    /// down and [handed over](ChannelsNode::hand_over).
    HandOver,
    /// The owner ends, and has written its manager down: it is to be read back and kept
    /// beside, and [`ChannelsNode::on_replica`] to be called.
    Replica(Bytes),
    /// A message of a connection loop, for the manager.
    Message(SideId, ToChannels),
    /// This node owns the channels no longer: the manager is to be forgotten.
    End,
}

/// A connection loop of an edge.
#[derive(Debug)]
struct Side {
    edge: NodeId,
    number: u16,
    incarnation: u32,
    token: u32,
    end: RouteEnd,
    /// Connections that have attempted to log in and are not closed.
    keys: BTreeSet<ConnKey>,
}

/// A node for channels. See the [module](super).
#[derive(Debug)]
pub struct ChannelsNode {
    node: NodeId,
    times: NodeTimes,
    lease: Lease,
    /// How it stood to the channels when it was last looked at.
    standing: Standing,
    /// The routes of this epoch.
    sides: BTreeMap<SideId, Side>,
    /// The number of the next: one is used again only after all others, for what the
    /// manager has for the last that had it must not come to another.
    next_side: u16,
    tokens: u32,
    has_global_owner: bool,
    /// The epoch since which the channels have not been lost.
    since: u64,
    /// How far their clock is ahead of this node's.
    shift: Shift,
    announce_at: Time,
    /// Nodes that stand by, and when each last said so.
    standbys: BTreeMap<NodeId, Time>,
    /// This node ends, and hands the channels over.
    outgoing: Option<Outgoing>,
    /// The owner ends, and hands them over to this node.
    incoming: Option<Incoming>,
    is_ending: bool,
    frames: VecDeque<(Address, Bytes)>,
    events: VecDeque<ChannelsEvent>,
    notes: VecDeque<Note>,
    refused: BTreeSet<u16>,
    past: RouteCounters,
    lost_routes: u64,
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
            sides: BTreeMap::new(),
            next_side: 0,
            tokens: 0,
            has_global_owner: false,
            since: 0,
            shift: Shift::default(),
            announce_at: now,
            standbys: BTreeMap::new(),
            outgoing: None,
            incoming: None,
            is_ending: false,
            frames: VecDeque::new(),
            events: VecDeque::new(),
            notes: VecDeque::new(),
            refused: BTreeSet::new(),
            past: RouteCounters::default(),
            lost_routes: 0,
        }
    }

    /// How it stands to the channels now. While it does not own them, the channel manager
    /// is to be left alone.
    #[must_use]
    pub fn standing(&self, now: Time) -> Standing {
        match self.lease.standing(now) {
            // What it has handed over is another's to change.
            Standing::Owns(epoch) if self.outgoing.is_some() => Standing::Rests(epoch),
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
        self.sides.len()
    }

    /// What routes have counted, and how many were lost.
    #[must_use]
    pub fn counters(&self) -> (RouteCounters, u64) {
        let mut all = self.past;
        for side in self.sides.values() {
            all.add(side.end.counters());
        }
        (all, self.lost_routes)
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
        let Some(side) = self.sides.get_mut(&side) else {
            return;
        };
        let window = match message {
            ToConnections::Window(window) => Some((window.to.clone(), window.channel)),
            _ => None,
        };
        let bytes = encode_to_connections(self.shift.to_channels(now), message);
        side.end.push(now, &bytes, window);
    }

    /// The bus is there again.
    pub fn on_up(&mut self) {
        for side in self.sides.values_mut() {
            side.end.send_again();
        }
    }

    /// An answer of the lease's entry has come.
    pub fn on_lease(&mut self, now: Time, number: u64, answer: LeaseAnswer) {
        self.lease.on_answer(now, number, answer);
        self.look_at_lease(now);
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
                if let Some(side) = self.side_of(frame.from, token) {
                    self.lose(side, "it has ended");
                }
            }
            Content::StandsBy => self.on_stands_by(now, frame.from),
            _ => {}
        }
    }

    fn on_hello(&mut self, now: Time, edge: NodeId, number: u16, incarnation: u32) {
        let Standing::Owns(epoch) = self.standing else {
            return;
        };
        let known = self
            .sides
            .iter()
            .find(|(_, side)| side.edge == edge && side.number == number)
            .map(|(&id, side)| (id, side.incarnation, side.token));
        let token = match known {
            Some((_, of, token)) if of == incarnation => token,
            // A frame of the past.
            Some((_, of, _)) if of > incarnation => return,
            known => {
                if let Some((old, ..)) = known {
                    self.lose(old, "it has begun anew");
                }
                let Some(id) = (0..=u16::MAX)
                    .map(|after| SideId(self.next_side.wrapping_add(after)))
                    .find(|id| !self.sides.contains_key(id))
                else {
                    return;
                };
                self.next_side = id.0.wrapping_add(1);
                self.tokens += 1;
                let side = Side {
                    edge,
                    number,
                    incarnation,
                    token: self.tokens,
                    end: RouteEnd::new(now, self.times),
                    keys: BTreeSet::new(),
                };
                self.sides.insert(id, side);
                self.notes.push_back(Note::EdgeJoined { edge, number });
                self.tokens
            }
        };
        let welcome = Content::Welcome {
            number,
            incarnation,
            token,
        };
        self.post(epoch, Address::Node(edge), welcome);
    }

    fn on_data(&mut self, now: Time, edge: NodeId, token: u32, data: Data) {
        let Some(id) = self.side_of(edge, token) else {
            if let Standing::Owns(epoch) = self.standing {
                self.post(epoch, Address::Node(edge), Content::Reset { token });
            }
            return;
        };
        let Some(side) = self.sides.get_mut(&id) else {
            return;
        };
        let mut messages = Vec::new();
        let mut is_sound = side.end.take(now, data, &mut messages).is_ok();
        for bytes in messages {
            let Ok(message) = decode_to_channels(bytes) else {
                is_sound = false;
                break;
            };
            match &message {
                ToChannels::Auth(attempt) => {
                    side.keys.insert(attempt.key);
                }
                ToChannels::Closed { key, .. } => {
                    side.keys.remove(key);
                }
                _ => {}
            }
            self.events.push_back(ChannelsEvent::Message(id, message));
        }
        if !is_sound {
            self.lose(id, "it speaks nonsense");
        }
    }

    fn side_of(&self, edge: NodeId, token: u32) -> Option<SideId> {
        self.sides
            .iter()
            .find(|(_, side)| side.token == token && side.edge == edge)
            .map(|(&id, _)| id)
    }

    /// Gives a route up: for the channel manager its connections have broken off.
    fn lose(&mut self, id: SideId, why: &'static str) {
        let Some(side) = self.sides.remove(&id) else {
            return;
        };
        self.past.add(side.end.counters());
        self.lost_routes += 1;
        self.notes.push_back(Note::EdgeLost {
            edge: side.edge,
            number: side.number,
            why,
            connections: side.keys.len(),
        });
        for key in side.keys {
            let closed = ToChannels::Closed {
                key,
                broke_off: true,
            };
            self.events.push_back(ChannelsEvent::Message(id, closed));
        }
        if let Standing::Owns(epoch) = self.standing {
            let token = side.token;
            self.post(epoch, Address::Node(side.edge), Content::Reset { token });
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
        if epoch_of(before).is_some() {
            self.outgoing = None;
            self.standbys.clear();
            for (_, side) in std::mem::take(&mut self.sides) {
                self.past.add(side.end.counters());
            }
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
        let Standing::Owns(_) = self.standing(now) else {
            // One that rests has its lease's end behind it.
            let lease = lease.map(|due| due.max(now + self.times.resend / 10));
            return lease.into_iter().chain(handover).min();
        };
        let sides = self.sides.values().map(|side| side.end.next_deadline(now));
        sides.chain(lease).chain([self.announce_at]).min()
    }

    /// Sends what is due, and gives up routes on which nothing moves.
    pub fn handle_deadline(&mut self, now: Time) {
        self.lease.handle_deadline(now);
        self.look_at_lease(now);
        self.drive_handover(now);
        let Standing::Owns(epoch) = self.standing(now) else {
            return;
        };
        if self.announce_at <= now {
            self.announce_at = now + self.times.heartbeat;
            let announcement = self.announcement();
            self.post(epoch, Address::All, announcement);
        }
        let lost: Vec<_> = self
            .sides
            .iter()
            .filter_map(|(&id, side)| Some((id, side.end.is_lost(now)?)))
            .collect();
        for (id, why) in lost {
            self.lose(id, why);
        }
        let from = self.node;
        for side in self.sides.values_mut() {
            let token = side.token;
            while let Some(data) = side.end.poll(now) {
                let content = Content::Data { token, data };
                let frame = Frame {
                    from,
                    epoch,
                    content,
                };
                let to = Address::Node(side.edge);
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
        self.events.pop_front()
    }

    /// What is to be logged.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.lease.poll_note().or_else(|| self.notes.pop_front())
    }
}
