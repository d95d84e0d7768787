//! The connections as channels know them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::core::bus::HomeVersion;
use crate::core::by_number::ByNumber;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};
use crate::core::settings::ConnNumbers;

/// So many drawn numbers may be taken before the next free one does.
const DRAWS: u32 = 64;

use super::accounts::Account;

/// A connection that has attempted to be let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ConnectionInfo {
    pub(super) side: SideId,
    pub(super) key: ConnKey,
    pub(super) peer: Peer,
    pub(super) admitted: bool,
    pub(super) player: String,
    /// It is being closed: nothing of it counts any more.
    pub(super) leaving: bool,
    pub(super) subscribed: ByNumber<ChannelId, ()>,
    pub(super) owned: BTreeSet<ChannelId>,
    /// What it has used of its budgets.
    pub(super) account: Account,
    /// Where it comes from, if that has an address.
    pub(super) address: Option<IpAddr>,
    /// It may be elsewhere: nothing it does is held against its address.
    pub(super) is_address_forgeable: bool,
    /// Bytes of what it caused that were dropped before a full server.
    pub(super) undelivered_bytes: usize,
    /// It was let in, and other shards are to know of it before anything follows from that.
    pub(super) introduction: Option<Introduction>,
    /// In a shard that is not home: which of home's decisions let it in.
    pub(super) version: HomeVersion,
}

/// What follows once all shards know of a connection that was let in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Introduction {
    /// Of the login, for the copy of its answer that GLOBAL's owner gets.
    pub(super) broadcast: u32,
    /// It has come back for what it had.
    pub(super) recovers: bool,
}

impl ConnectionInfo {
    /// The address that what it does is held against, if it is known to be there.
    pub(super) fn proven_address(&self) -> Option<IpAddr> {
        self.address.filter(|_| !self.is_address_forgeable)
    }
}

/// What is written down of the connections: `C` is one of them, or where one is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedConnections<C> {
    by_id: Vec<(ConnId, C)>,
    reserved: BTreeSet<ConnId>,
    last: u32,
    /// How numbers are given out, with the secret they are drawn with: whoever goes on gives
    /// out the same.
    numbers: ConnNumbers,
    drawn: u64,
}

/// All connections, by number and by side.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    by_id: ByNumber<ConnId, Box<ConnectionInfo>>,
    by_key: BTreeMap<(SideId, ConnKey), ConnId>,
    /// Numbers that servers may come back for.
    reserved: BTreeSet<ConnId>,
    last: u32,
    /// How numbers are given out.
    numbers: ConnNumbers,
    /// Numbers are drawn with this rather than counted.
    key: Option<hmac::Key>,
    drawn: u64,
}

impl ConnectionTable {
    pub(super) fn new(numbers: &ConnNumbers) -> Self {
        Self {
            key: match numbers {
                ConnNumbers::Counted => None,
                ConnNumbers::Drawn(secret) => Some(hmac::Key::new(hmac::HMAC_SHA256, secret)),
            },
            numbers: numbers.clone(),
            by_id: ByNumber::default(),
            by_key: BTreeMap::new(),
            reserved: BTreeSet::new(),
            last: 0,
            drawn: 0,
        }
    }

    pub(super) fn save(&self) -> SavedConnections<&ConnectionInfo> {
        SavedConnections {
            by_id: self.iter().collect(),
            reserved: self.reserved.clone(),
            last: self.last,
            numbers: self.numbers.clone(),
            drawn: self.drawn,
        }
    }

    /// A table with connections that were written down. Numbers to come are those that the
    /// table there would have given out.
    pub(super) fn restore(saved: SavedConnections<ConnectionInfo>) -> Self {
        let mut table = Self {
            reserved: saved.reserved,
            last: saved.last,
            drawn: saved.drawn,
            ..Self::new(&saved.numbers)
        };
        for (id, connection) in saved.by_id {
            table.insert(id, connection);
        }
        table
    }

    /// Those let in and not leaving.
    pub(super) fn get(&self, id: ConnId) -> Option<&ConnectionInfo> {
        self.by_id
            .get(&id)
            .map(|connection| &**connection)
            .filter(|connection| connection.admitted && !connection.leaving)
    }

    /// Whether a connection is on this side: its number may have been another's, and
    /// something of that one on its way.
    pub(super) fn is_on(&self, id: ConnId, side: SideId) -> bool {
        self.any(id)
            .is_some_and(|connection| connection.side == side)
    }

    /// Likewise, those not let in and those leaving included.
    pub(super) fn any(&self, id: ConnId) -> Option<&ConnectionInfo> {
        self.by_id.get(&id).map(|connection| &**connection)
    }

    pub(super) fn any_mut(&mut self, id: ConnId) -> Option<&mut ConnectionInfo> {
        self.by_id.get_mut(&id).map(|connection| &mut **connection)
    }

    pub(super) fn find(&self, side: SideId, key: ConnKey) -> Option<ConnId> {
        self.by_key.get(&(side, key)).copied()
    }

    pub(super) fn is_taken(&self, id: ConnId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Gives a connection the next number that is free, up to `max`; numbers
    /// are used again only once all were used. Drawn numbers follow from nothing
    /// that a peer knows.
    ///
    /// Some of the numbers are for servers alone: a number is given at the
    /// first attempt to log in, and whoever attempts and never proves anything
    /// must not keep a game server out.
    pub(super) fn add(&mut self, max: u32, connection: ConnectionInfo) -> Option<ConnId> {
        let for_servers = match connection.peer {
            Peer::Server => 0,
            Peer::Client => (max / 16).min(1024),
        };
        if self.by_id.len() + self.reserved.len() >= (max - for_servers) as usize {
            return None;
        }
        let mut draws = if self.key.is_some() { DRAWS } else { 0 };
        let id = loop {
            self.last = match &self.key {
                Some(key) if draws > 0 => {
                    draws -= 1;
                    self.drawn += 1;
                    drawn(key, self.drawn, max)
                }
                _ if self.last >= max => 1,
                _ => self.last + 1,
            };
            let id = ConnId(self.last);
            if !self.is_taken(id) && !self.reserved.contains(&id) {
                break id;
            }
        };
        self.by_key.insert((connection.side, connection.key), id);
        self.by_id.insert(id, Box::new(connection));
        Some(id)
    }

    /// Takes in a connection that another shard has given its number, which must be free.
    pub(super) fn insert(&mut self, id: ConnId, connection: ConnectionInfo) {
        self.by_key.insert((connection.side, connection.key), id);
        self.by_id.insert(id, Box::new(connection));
    }

    pub(super) fn reserve(&mut self, id: ConnId) {
        self.reserved.insert(id);
    }

    pub(super) fn unreserve(&mut self, id: ConnId) {
        self.reserved.remove(&id);
    }

    /// Gives a connection another number, which must be free.
    pub(super) fn renumber(&mut self, old: ConnId, new: ConnId) {
        if let Some(connection) = self.by_id.remove(&old) {
            self.by_key.insert((connection.side, connection.key), new);
            self.by_id.insert(new, connection);
        }
    }

    pub(super) fn remove(&mut self, id: ConnId) -> Option<Box<ConnectionInfo>> {
        let connection = self.by_id.remove(&id)?;
        self.by_key.remove(&(connection.side, connection.key));
        Some(connection)
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnId, &ConnectionInfo)> {
        self.by_id
            .iter()
            .map(|(id, connection)| (id, &**connection))
    }

    /// How many connections are found by their keys.
    pub(super) fn keys(&self) -> usize {
        self.by_key.len()
    }

    /// Numbers that servers may come back for.
    pub(super) fn reserved(&self) -> &BTreeSet<ConnId> {
        &self.reserved
    }

    /// The numbers of all clients that are let in.
    pub(super) fn introduced_clients(&self) -> impl Iterator<Item = ConnId> {
        self.by_id
            .iter()
            .filter(|(_, connection)| {
                connection.admitted
                    && !connection.leaving
                    && connection.peer == Peer::Client
                    && connection.introduction.is_none()
            })
            .map(|(id, _)| id)
    }
}

/// The number from 1 to `max` that a draw gives. Of 64 bits, so that none is
/// noticeably likelier than another.
fn drawn(key: &hmac::Key, draw: u64, max: u32) -> u32 {
    let tag = hmac::sign(key, &draw.to_le_bytes());
    let mut bits = [0; 8];
    bits.copy_from_slice(&tag.as_ref()[..8]);
    1 + (u64::from_le_bytes(bits) % u64::from(max)) as u32
}
