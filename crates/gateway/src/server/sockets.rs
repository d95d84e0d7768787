//! The connections of one loop: what carries each, and what it waits for.

use lagometer_units::Time;

use crate::core::{ConnKey, Peer};

use super::carrier::Carrier;
use super::gatekeeper::Pass;
use super::poller::Interest;

/// One connection.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) key: ConnKey,
    pub(super) peer: Peer,
    pub(super) carrier: Carrier,
    pub(super) pass: Pass,
    pub(super) opened: Time,
    /// It has not been let in yet.
    pub(super) is_stranger: bool,
    /// The last write found no room for all.
    pub(super) blocked: bool,
    /// What the poller watches it for.
    pub(super) interest: Interest,
}

/// By the slots of the connection side.
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

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Socket> {
        self.slots.iter_mut().flatten().map(AsMut::as_mut)
    }
}
