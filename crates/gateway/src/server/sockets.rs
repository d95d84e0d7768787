//! The connections of one loop: what carries each, and what it waits for.

use std::time::Duration;

use lagometer_units::Time;

use crate::core::{ConnKey, Peer};

use super::admission_control::Permit;
use super::pace::Pace;
use super::poller::Interest;
use super::stream_transport::StreamTransport;

/// One connection.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) key: ConnKey,
    pub(super) peer: Peer,
    pub(super) transport: StreamTransport,
    pub(super) permit: Permit,
    pub(super) opened: Time,
    /// It has not logged in yet.
    pub(super) is_unauthenticated: bool,
    /// What was read and not taken in yet.
    pub(super) backlog: Vec<u8>,
    /// It stands in the list of those that are to be read again.
    pub(super) is_listed: bool,
    /// The last turn in which it was read.
    pub(super) read_in_turn: Option<u64>,
    /// The poller has reported that the peer has gone: behind what is to be read is
    /// the end.
    pub(super) has_ended: bool,
    /// Nothing is read of it until then: it has sent more than its share.
    pub(super) paused_until: Option<Time>,
    /// Nothing is read of it until the core resumes it: what it sent waits for a
    /// server that cannot keep up.
    pub(super) is_held_back: bool,
    pub(super) pace: Pace,
    /// Of the datagrams of KCP, beside what is read of them.
    pub(super) datagram_pace: Pace,
    /// Processor time that it has cost before its login.
    pub(super) login_work: Duration,
    /// The last write found no room for all.
    pub(super) blocked: bool,
    /// What the poller watches it for.
    pub(super) interest: Interest,
}

impl Socket {
    /// Whether it is not to be read for now.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some() || self.is_held_back
    }
}

/// By the slots of the connection manager.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    slots: Vec<Option<Box<Socket>>>,
    open: usize,
}

impl Sockets {
    pub(super) fn insert(&mut self, socket: Socket) {
        let slot = socket.key.slot();
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.open += 1;
        self.slots[slot] = Some(Box::new(socket));
    }

    /// Whoever is in the slot now.
    pub(super) fn at(&mut self, slot: usize) -> Option<&mut Socket> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    pub(super) fn get(&mut self, key: ConnKey) -> Option<&mut Socket> {
        self.at(key.slot()).filter(|socket| socket.key == key)
    }

    pub(super) fn remove(&mut self, key: ConnKey) -> Option<Box<Socket>> {
        self.get(key)?;
        self.open -= 1;
        self.slots[key.slot()].take()
    }

    pub(super) fn len(&self) -> usize {
        self.open
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.slots.iter().flatten().map(AsRef::as_ref)
    }
}
