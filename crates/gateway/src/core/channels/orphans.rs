//! Channels that clients made and that outlived them, by the settings of their
//! type.
//!
//! They belong to nobody's budget any more. They are kept up to a number, so that
//! connecting, making and leaving over and over adds up to nothing. Whoever has
//! left most makes room: one address cannot push out what others left, many with
//! little each can.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use lagometer_limits::{Shares, household};

use crate::core::ids::ChannelId;

/// Who left orphans: clients behind one address are one, and so are those
/// without an address that log in as the same player.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Maker {
    Address(IpAddr),
    Player(Arc<str>),
}

impl Maker {
    pub(super) fn new(address: Option<IpAddr>, player: &str) -> Self {
        match address {
            Some(address) => Self::Address(household(address)),
            None => Self::Player(player.into()),
        }
    }
}

/// The orphans, by who made them.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// By their age: the least is the oldest.
    by_age: BTreeMap<u64, (Maker, ChannelId)>,
    shares: Shares<Maker, u64>,
    last: u64,
}

impl Orphans {
    /// Takes in a channel. Returns its age among the orphans.
    pub(super) fn add(&mut self, maker: Maker, id: ChannelId) -> u64 {
        self.last += 1;
        self.shares.insert(maker.clone(), self.last);
        self.by_age.insert(self.last, (maker, id));
        self.last
    }

    pub(super) fn remove(&mut self, age: u64) -> Option<ChannelId> {
        let (maker, id) = self.by_age.remove(&age)?;
        self.shares.remove(maker, age);
        Some(id)
    }

    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Takes out the oldest channel of whoever has left most; of several the one
    /// whose oldest is oldest.
    pub(super) fn pop(&mut self) -> Option<ChannelId> {
        let age = self.shares.first_to_go(None)?;
        self.remove(age)
    }
}
