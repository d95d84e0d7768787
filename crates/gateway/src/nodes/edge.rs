//! An edge's ways to the owner of one shard of the channels: a route for each of its
//! connection loops.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::{ToChannels, ToConnections};

use super::NodeTimes;
use super::bus::{Address, NodeId, Note};
use super::codec::{decode_to_connections, encode_to_channels};
use super::frame::{Content, Data, Frame, PROTOCOL, Unread};
use super::route::{RouteCounters, RouteEnd};

/// From so many bytes on that wait for the channels, nothing more is taken of
/// connections.
const FULL_AT_BYTES: usize = 4 << 20;

/// Frames from so many epochs that are past are answered by as many frames a heartbeat.
const STALE_AT_ONCE: usize = 8;

/// Something for a connection loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A message of the channels.
    Message(ToConnections),
    /// The channels know nothing of this loop any more. What it sends is dropped until it
    /// has said with this number that it has [settled](super::ShardedEdge::settled) that.
    Lost(u32),
}

/// One connection loop's route.
#[derive(Debug)]
struct Route {
    /// Counts the routes that this loop has had.
    incarnation: u32,
    /// The owner's name for it, once it stands.
    token: Option<u32>,
    end: RouteEnd,
    /// The loop knows that its last route was lost.
    is_settled: bool,
    /// When it is asked for next.
    ask_at: Time,
}

/// The owner of the channels, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    node: NodeId,
    epoch: u64,
}

/// An edge node. See the [module](super).
#[derive(Debug)]
pub(super) struct EdgeNode {
    node: NodeId,
    times: NodeTimes,
    owner: Option<Owner>,
    has_global_owner: bool,
    routes: Vec<Route>,
    frames: VecDeque<(Address, Bytes)>,
    deliveries: VecDeque<(u16, Delivery)>,
    notes: VecDeque<Note>,
    refused: BTreeSet<u16>,
    /// Owners of the past that were answered, and since when.
    stale: BTreeSet<NodeId>,
    stale_since: Time,
    began: Time,
    has_missed_owner: bool,
    /// What routes counted that are no more.
    past: RouteCounters,
    lost_routes: u64,
}

impl EdgeNode {
    /// An edge with so many connection loops.
    pub(super) fn new(now: Time, node: NodeId, loops: u16, times: NodeTimes) -> Self {
        let route = |_| Route {
            incarnation: 0,
            token: None,
            end: RouteEnd::new(now, times),
            is_settled: true,
            ask_at: now,
        };
        Self {
            node,
            times,
            owner: None,
            has_global_owner: false,
            routes: (0..loops).map(route).collect(),
            frames: VecDeque::new(),
            deliveries: VecDeque::new(),
            notes: VecDeque::new(),
            refused: BTreeSet::new(),
            stale: BTreeSet::new(),
            stale_since: now,
            began: now,
            has_missed_owner: false,
            past: RouteCounters::default(),
            lost_routes: 0,
        }
    }

    /// Whether more may be taken of connections: not while much waits for the channels.
    pub(super) fn has_room(&self) -> bool {
        let waiting = self.routes.iter().map(|route| route.end.waiting()).max();
        waiting.unwrap_or(0) < FULL_AT_BYTES
    }

    /// Whether all connection loops have their route.
    pub(super) fn is_joined(&self) -> bool {
        self.routes.iter().all(|route| route.token.is_some())
    }

    /// Whether a game server owns GLOBAL, as far as the owner of the channels said.
    pub(super) fn has_global_owner(&self) -> bool {
        self.has_global_owner
    }

    /// The newest epoch received.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.owner.map(|owner| owner.epoch)
    }

    /// What routes have counted, and how many were lost.
    pub(super) fn counters(&self) -> (RouteCounters, u64) {
        let mut all = self.past;
        for route in &self.routes {
            all.add(route.end.counters());
        }
        (all, self.lost_routes)
    }

    /// A message of a connection loop.
    pub(super) fn send(&mut self, now: Time, number: u16, message: &ToChannels) {
        if let Some(route) = self.routes.get_mut(usize::from(number))
            && route.is_settled
        {
            route.end.push(now, &encode_to_channels(message), None);
        }
    }

    /// A loop has closed all connections of the route with this number, and what it sends
    /// from now on is of others.
    pub(super) fn settled(&mut self, now: Time, number: u16, incarnation: u32) {
        if let Some(route) = self.routes.get_mut(usize::from(number))
            && route.incarnation == incarnation
        {
            route.is_settled = true;
            route.ask_at = now;
        }
    }

    /// The bus is there again.
    pub(super) fn on_up(&mut self, now: Time) {
        for route in &mut self.routes {
            route.end.send_again();
            route.ask_at = now;
        }
    }

    /// A frame has come.
    pub(super) fn on_frame(&mut self, now: Time, bytes: Bytes) {
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
            Content::Announce {
                has_global_owner,
                since,
            } => {
                let Frame { from, epoch, .. } = frame;
                let owner = Owner { node: from, epoch };
                self.on_announcement(now, owner, since, has_global_owner);
            }
            Content::Welcome {
                number,
                incarnation,
                token,
            } if self.is_of_owner(&frame) => self.on_welcome(now, number, incarnation, token),
            Content::Data { token, ref data } if self.is_of_owner(&frame) => {
                self.on_data(now, token, data.clone());
            }
            Content::Reset { token } if self.is_of_owner(&frame) => {
                if let Some(number) = self.number_of(token) {
                    self.lose(
                        now,
                        number,
                        "the node with the channels has given the route up",
                    );
                }
            }
            _ => {}
        }
    }

    fn is_of_owner(&self, frame: &Frame) -> bool {
        self.owner
            .is_some_and(|owner| owner.node == frame.from && owner.epoch == frame.epoch)
    }

    /// Somebody says that it owns the channels, which are those of all owners `since` an
    /// epoch.
    fn on_announcement(&mut self, now: Time, announced: Owner, since: u64, has_global_owner: bool) {
        if let Some(owner) = self.owner
            && owner != announced
        {
            if announced.epoch <= owner.epoch {
                self.answer_stale(now, announced, owner.epoch);
                return;
            }
            let goes_on = since <= owner.epoch;
            for number in 0..self.routes.len() {
                let route = &mut self.routes[number];
                if route.token.is_some() && goes_on {
                    route.end.go_on(now);
                } else if route.token.is_some() {
                    self.lose(now, number, "another node owns the channels now");
                }
                self.routes[number].ask_at = now;
            }
            if goes_on {
                let Owner { node, epoch } = announced;
                self.notes.push_back(Note::GoesOnAt { node, epoch });
            }
        } else if self.owner.is_none() {
            for route in &mut self.routes {
                route.ask_at = now;
            }
        }
        self.owner = Some(announced);
        self.has_global_owner = has_global_owner;
        self.has_missed_owner = false;
    }

    /// Notifies a former owner that there is a newer epoch.
    fn answer_stale(&mut self, now: Time, announced: Owner, newest: u64) {
        if now.since(self.stale_since) >= self.times.heartbeat {
            self.stale_since = now;
            self.stale.clear();
        }
        if self.stale.len() < STALE_AT_ONCE && self.stale.insert(announced.node) {
            let frame = self.frame(announced.epoch, Content::Stale { newest });
            self.frames
                .push_back((Address::Node(announced.node), frame));
        }
    }

    fn on_welcome(&mut self, now: Time, number: u16, incarnation: u32, token: u32) {
        let Some(route) = self.routes.get_mut(usize::from(number)) else {
            return;
        };
        if route.incarnation == incarnation && route.token.is_none() && route.is_settled {
            route.token = Some(token);
            route.end.begin(now);
            if number == 0
                && let Some(Owner { node, epoch }) = self.owner
            {
                self.notes.push_back(Note::Joined { node, epoch });
            }
        }
    }

    fn on_data(&mut self, now: Time, token: u32, data: Data) {
        let Some(number) = self.number_of(token) else {
            return;
        };
        let mut messages = Vec::new();
        let mut is_sound = self.routes[number]
            .end
            .take(now, data, &mut messages)
            .is_ok();
        for bytes in messages {
            let Ok(message) = decode_to_connections(now, bytes) else {
                is_sound = false;
                break;
            };
            let delivery = Delivery::Message(message);
            self.deliveries.push_back((number as u16, delivery));
        }
        if !is_sound {
            self.lose(now, number, "the node with the channels speaks nonsense");
        }
    }

    fn number_of(&self, token: u32) -> Option<usize> {
        self.routes
            .iter()
            .position(|route| route.token == Some(token))
    }

    /// Gives a route up: its loop is notified, and it is asked for anew.
    fn lose(&mut self, now: Time, number: usize, why: &'static str) {
        let fresh = RouteEnd::new(now, self.times);
        let route = &mut self.routes[number];
        self.past.add(route.end.counters());
        self.lost_routes += 1;
        route.end = fresh;
        route.token = None;
        route.is_settled = false;
        route.incarnation += 1;
        route.ask_at = now;
        let lost = Delivery::Lost(route.incarnation);
        let number = number as u16;
        self.deliveries.push_back((number, lost));
        self.notes.push_back(Note::Lost { number, why });
    }

    /// The node ends: the owner is notified, once.
    pub(super) fn end(&mut self) {
        let Some(owner) = self.owner else {
            return;
        };
        let tokens: Vec<u32> = self.routes.iter().filter_map(|it| it.token).collect();
        for token in tokens {
            let bye = self.frame(owner.epoch, Content::Bye { token });
            self.frames.push_back((Address::Node(owner.node), bye));
        }
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    pub(super) fn next_deadline(&self, now: Time) -> Option<Time> {
        let due = self.routes.iter().filter_map(|route| match route.token {
            Some(_) => Some(route.end.next_deadline(now)),
            None => (route.is_settled || self.owner.is_none()).then_some(route.ask_at),
        });
        due.min()
    }

    /// Sends what is due, and gives up routes on which nothing moves.
    pub(super) fn handle_deadline(&mut self, now: Time) {
        let Some(owner) = self.owner else {
            for route in &mut self.routes {
                if route.ask_at <= now {
                    route.ask_at = now + self.times.heartbeat;
                }
            }
            let waits_long = now.since(self.began) >= self.times.lease;
            if waits_long && !std::mem::replace(&mut self.has_missed_owner, true) {
                self.notes.push_back(Note::NoOwner);
            }
            return;
        };
        for number in 0..self.routes.len() {
            let Some(token) = self.routes[number].token else {
                self.ask_for_route(now, number, owner);
                continue;
            };
            if let Some(why) = self.routes[number].end.is_lost(now) {
                self.lose(now, number, why);
                continue;
            }
            while let Some(data) = self.routes[number].end.poll(now) {
                let frame = self.frame(owner.epoch, Content::Data { token, data });
                self.frames.push_back((Address::Node(owner.node), frame));
            }
        }
    }

    fn ask_for_route(&mut self, now: Time, number: usize, owner: Owner) {
        let route = &mut self.routes[number];
        if !route.is_settled || now < route.ask_at {
            return;
        }
        route.ask_at = now + self.times.heartbeat;
        let hello = Content::Hello {
            number: number as u16,
            incarnation: route.incarnation,
        };
        let frame = self.frame(owner.epoch, hello);
        self.frames.push_back((Address::Node(owner.node), frame));
    }

    /// The next frame to send.
    pub(super) fn poll_frame(&mut self) -> Option<(Address, Bytes)> {
        self.frames.pop_front()
    }

    /// The next thing for a connection loop.
    pub(super) fn poll_delivery(&mut self) -> Option<(u16, Delivery)> {
        self.deliveries.pop_front()
    }

    /// What is to be logged.
    pub(super) fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    fn frame(&self, epoch: u64, content: Content) -> Bytes {
        Frame {
            from: self.node,
            epoch,
            content,
        }
        .encode()
    }
}
