//! The conversations whose peers have not shown that they receive what is sent
//! to their address: a table bounded in places and in memory. Whoever comes is
//! taken in, and the oldest has to go.
//!
//! Those who forge addresses can fill it. Who returns a cookie is in it for no
//! longer than a call and comes in all the same. Who proves its address by an
//! acknowledgement, as kcp-go does, has to stay for a round trip: a flood that
//! fills the table faster than that pushes it out each time it resends, for as
//! long as the flood lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use lagometer_limits::source_prefix;

use crate::core::ConnKey;

/// Unproven conversations by age, and of each source prefix.
#[derive(Debug, Default)]
pub(in crate::server) struct Unproven {
    by_age: BTreeMap<u64, Conversation>,
    by_source_prefix: BTreeMap<IpAddr, BTreeSet<u64>>,
    next: u64,
    held_bytes: usize,
}

/// A conversation in the table: by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct UnprovenId(u64);

#[derive(Clone, Copy, Debug)]
struct Conversation {
    key: ConnKey,
    source_prefix: IpAddr,
    held_bytes: usize,
}

impl Unproven {
    /// Who has to go before another from `address` may come: its oldest where
    /// it has its share, otherwise the oldest of all where the table is full.
    pub(in crate::server) fn to_evict(
        &self,
        address: IpAddr,
        at_most: u32,
        of_an_address: u32,
    ) -> Option<ConnKey> {
        let own = self.by_source_prefix.get(&source_prefix(address));
        let oldest_own = own.and_then(|ids| {
            let has_its_share = ids.len() >= of_an_address as usize;
            ids.first().filter(|_| has_its_share)
        });
        let is_full = self.by_age.len() >= at_most as usize;
        let oldest = self.by_age.keys().next().filter(|_| is_full);
        let id = oldest_own.or(oldest)?;
        self.by_age.get(id).map(|conversation| conversation.key)
    }

    /// Who has to go because all together hold more memory than that.
    pub(in crate::server) fn to_evict_for_memory(&self, at_most_bytes: usize) -> Option<ConnKey> {
        let oldest = self.by_age.values().next()?;
        (self.held_bytes > at_most_bytes).then_some(oldest.key)
    }

    /// Takes one in.
    pub(in crate::server) fn insert(&mut self, key: ConnKey, address: IpAddr) -> UnprovenId {
        let (id, source_prefix) = (self.next, source_prefix(address));
        self.next += 1;
        let conversation = Conversation {
            key,
            source_prefix,
            held_bytes: 0,
        };
        self.by_age.insert(id, conversation);
        self.by_source_prefix
            .entry(source_prefix)
            .or_default()
            .insert(id);
        UnprovenId(id)
    }

    /// One holds so much memory from now on.
    pub(in crate::server) fn hold(&mut self, id: UnprovenId, bytes: usize) {
        if let Some(conversation) = self.by_age.get_mut(&id.0) {
            let before = std::mem::replace(&mut conversation.held_bytes, bytes);
            self.held_bytes = self.held_bytes - before + bytes;
        }
    }

    /// How much memory all hold.
    pub(in crate::server) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// One was proven, or has gone.
    pub(in crate::server) fn remove(&mut self, id: UnprovenId) {
        let Some(conversation) = self.by_age.remove(&id.0) else {
            return;
        };
        self.held_bytes -= conversation.held_bytes;
        if let Some(ids) = self.by_source_prefix.get_mut(&conversation.source_prefix) {
            ids.remove(&id.0);
            if ids.is_empty() {
                self.by_source_prefix.remove(&conversation.source_prefix);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(slot: u32) -> ConnKey {
        ConnKey {
            slot,
            generation: 1,
        }
    }

    #[test]
    fn whoever_has_many_addresses_has_the_share_of_one() {
        let mut table = Unproven::default();
        let of = |host: u32| -> IpAddr { format!("2001:db8::{host:x}").parse().unwrap() };
        let first = table.insert(key(0), of(0));
        for slot in 1..3 {
            assert_eq!(table.to_evict(of(slot), 100, 3), None);
            table.insert(key(slot), of(slot));
        }
        assert_eq!(table.to_evict(of(3), 100, 3), Some(key(0)));
        let elsewhere = "2001:db8:0:1::1".parse().unwrap();
        assert_eq!(table.to_evict(elsewhere, 100, 3), None);
        table.remove(first);
        assert_eq!(table.to_evict(of(3), 100, 3), None);
    }
}
