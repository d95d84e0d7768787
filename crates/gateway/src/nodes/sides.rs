//! The owner's ends of the routes to all connection loops of edges.
//!
//! What becomes of them follows from what comes and from what the channel manager has to
//! say, so that a node that is handed the same has the same.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::bus::{ToChannels, ToConnections};
use crate::core::{ConnKey, SideId};

use super::NodeTimes;
use super::bus::NodeId;
use super::codec::decode_to_channels;
use super::frame::Data;
use super::route::{Nonsense, RouteCounters, RouteEnd, SavedEnd};

/// A connection loop of an edge, as it joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) edge: NodeId,
    pub(super) number: u16,
    pub(super) incarnation: u32,
    pub(super) token: u32,
}

/// The route of one.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) joined: Joined,
    pub(super) end: RouteEnd,
    /// Connections that have attempted to log in and are not closed.
    pub(super) keys: BTreeSet<ConnKey>,
    /// What has come on it cannot be read: it is to be given up.
    pub(super) is_unsound: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Sides {
    times: NodeTimes,
    pub(super) by_id: BTreeMap<SideId, Side>,
    /// The number of the next: one is used again only after all others, for what the
    /// manager has for the last that had it must not come to another.
    next: u16,
    tokens: u32,
    /// What routes counted that are no more.
    past: RouteCounters,
    lost: u64,
}

/// All of them, written down for another node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedSides {
    pub(super) next: u16,
    pub(super) tokens: u32,
    pub(super) sides: Vec<SavedSide>,
}

/// One of them, written down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedSide {
    pub(super) id: SideId,
    pub(super) edge: u64,
    pub(super) number: u16,
    pub(super) incarnation: u32,
    pub(super) token: u32,
    pub(super) keys: BTreeSet<ConnKey>,
    pub(super) end: SavedEnd,
}

/// What a frame's content came to.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// For the channel manager.
    pub(super) messages: Vec<ToChannels>,
    /// The content fits the route.
    pub(super) fits: bool,
    /// … and so do all messages in it: otherwise the route is to be given up.
    pub(super) is_sound: bool,
}

impl Sides {
    pub(super) fn new(times: NodeTimes) -> Self {
        Self {
            times,
            by_id: BTreeMap::new(),
            next: 0,
            tokens: 0,
            past: RouteCounters::default(),
            lost: 0,
        }
    }

    /// What routes have counted, and how many were lost.
    pub(super) fn counters(&self) -> (RouteCounters, u64) {
        let mut all = self.past;
        for side in self.by_id.values() {
            all.add(side.end.counters());
        }
        (all, self.lost)
    }

    /// Forgets all routes, which are lost to nobody: another node has them.
    pub(super) fn clear(&mut self) {
        for (_, side) in std::mem::take(&mut self.by_id) {
            self.past.add(side.end.counters());
        }
    }

    /// Goes on with those of another node, and what was counted here.
    pub(super) fn replace(&mut self, others: Self) {
        let (past, lost) = self.counters();
        *self = Self {
            past,
            lost,
            ..others
        };
    }

    /// A route that is to be given up, and why.
    pub(super) fn lost(&self, now: Time) -> Option<(SideId, &'static str)> {
        let mut sides = self.by_id.iter();
        sides.find_map(|(&id, side)| Some((id, side.is_lost(now)?)))
    }

    /// When something is to be sent on a route, or one is to be given up.
    pub(super) fn next_deadline(&self, now: Time) -> Option<Time> {
        if self.by_id.values().any(|side| side.is_unsound) {
            return Some(now);
        }
        let sides = self.by_id.values();
        sides.map(|side| side.end.next_deadline(now)).min()
    }

    /// The route of an edge that this token names.
    pub(super) fn find(&self, edge: NodeId, token: u32) -> Option<SideId> {
        let is_it = |side: &Side| side.joined.token == token && side.joined.edge == edge;
        let mut sides = self.by_id.iter();
        sides.find(|(_, side)| is_it(side)).map(|(&id, _)| id)
    }

    /// The route of a connection loop of an edge.
    pub(super) fn of_loop(&self, edge: NodeId, number: u16) -> Option<(SideId, Joined)> {
        let is_it = |side: &Side| side.joined.edge == edge && side.joined.number == number;
        let mut sides = self.by_id.iter();
        sides
            .find(|(_, side)| is_it(side))
            .map(|(&id, side)| (id, side.joined))
    }

    /// Makes a route for a connection loop; `None` if there are too many.
    pub(super) fn add(
        &mut self,
        now: Time,
        edge: NodeId,
        number: u16,
        incarnation: u32,
    ) -> Option<(SideId, Joined)> {
        let id = (0..=u16::MAX)
            .map(|after| SideId(self.next.wrapping_add(after)))
            .find(|id| !self.by_id.contains_key(id))?;
        let joined = Joined {
            edge,
            number,
            incarnation,
            token: self.tokens.wrapping_add(1),
        };
        self.join(now, id, joined);
        Some((id, joined))
    }

    /// There is a route for a connection loop, as the owner has made it.
    pub(super) fn join(&mut self, now: Time, id: SideId, joined: Joined) {
        self.next = id.0.wrapping_add(1);
        self.tokens = joined.token;
        let side = Side {
            joined,
            end: RouteEnd::new(now, self.times),
            keys: BTreeSet::new(),
            is_unsound: false,
        };
        self.by_id.insert(id, side);
    }

    /// Takes a frame's content that has come on a route.
    pub(super) fn take(&mut self, now: Time, id: SideId, data: Data) -> Taken {
        self.take_by(id, |end, messages| end.take(now, data, messages))
    }

    /// Takes what the owner has taken.
    pub(super) fn replay(&mut self, now: Time, id: SideId, data: Data) -> Taken {
        self.take_by(id, |end, messages| end.replay(now, data, messages))
    }

    fn take_by(
        &mut self,
        id: SideId,
        take: impl FnOnce(&mut RouteEnd, &mut Vec<Bytes>) -> Result<(), Nonsense>,
    ) -> Taken {
        let Some(side) = self.by_id.get_mut(&id) else {
            return Taken::default();
        };
        let mut bytes = Vec::new();
        match take(&mut side.end, &mut bytes) {
            Ok(()) => side.messages(bytes),
            Err(Nonsense) => Taken::default(),
        }
    }

    /// A message of the channel manager, encoded. Returns whether it has a route.
    pub(super) fn push(
        &mut self,
        now: Time,
        id: SideId,
        message: &ToConnections,
        bytes: &Bytes,
    ) -> bool {
        let Some(side) = self.by_id.get_mut(&id) else {
            return false;
        };
        let window = match message {
            ToConnections::Window(window) => Some((window.to.clone(), window.channel)),
            _ => None,
        };
        side.end.push(now, bytes, window);
        true
    }

    /// Gives a route up: for the channel manager its connections have broken off.
    pub(super) fn remove(&mut self, id: SideId) -> Option<(Joined, Vec<ToChannels>)> {
        let side = self.by_id.remove(&id)?;
        self.past.add(side.end.counters());
        self.lost += 1;
        let closed = side.keys.iter().map(|&key| ToChannels::Closed {
            key,
            broke_off: true,
        });
        let all = closed.chain([ToChannels::RouteLost]);
        Some((side.joined, all.collect()))
    }

    pub(super) fn save(&self, now: Time) -> SavedSides {
        let sides = self.by_id.iter().map(|(&id, side)| SavedSide {
            id,
            edge: side.joined.edge.0,
            number: side.joined.number,
            incarnation: side.joined.incarnation,
            token: side.joined.token,
            keys: side.keys.clone(),
            end: side.end.save(now),
        });
        SavedSides {
            next: self.next,
            tokens: self.tokens,
            sides: sides.collect(),
        }
    }

    /// `None` if it cannot be what was written down.
    pub(super) fn restore(now: Time, times: NodeTimes, saved: SavedSides) -> Option<Self> {
        let mut sides = Self {
            next: saved.next,
            tokens: saved.tokens,
            ..Self::new(times)
        };
        for side in saved.sides {
            let restored = Side {
                joined: Joined {
                    edge: NodeId(side.edge),
                    number: side.number,
                    incarnation: side.incarnation,
                    token: side.token,
                },
                end: RouteEnd::restore(now, times, side.end)?,
                keys: side.keys,
                is_unsound: false,
            };
            sides.by_id.insert(side.id, restored);
        }
        Some(sides)
    }
}

impl Side {
    /// Why it is to be given up, if it is.
    fn is_lost(&self, now: Time) -> Option<&'static str> {
        let unsound = self.is_unsound.then_some("it speaks nonsense");
        unsound.or(self.end.is_lost(now))
    }

    /// Reads messages, up to the first that is none.
    fn messages(&mut self, all: Vec<Bytes>) -> Taken {
        let mut taken = Taken {
            messages: Vec::with_capacity(all.len()),
            fits: true,
            is_sound: true,
        };
        for bytes in all {
            let Ok(message) = decode_to_channels(bytes) else {
                taken.is_sound = false;
                break;
            };
            match &message {
                ToChannels::Auth(attempt) => {
                    self.keys.insert(attempt.key);
                }
                ToChannels::Admitted(connection) => {
                    self.keys.insert(connection.key);
                }
                ToChannels::Closed { key, .. } => {
                    self.keys.remove(key);
                }
                _ => {}
            }
            taken.messages.push(message);
        }
        taken
    }
}
