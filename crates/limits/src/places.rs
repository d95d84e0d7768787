//! A bounded number of places, shared out by address.
//!
//! When all are taken, a new connection evicts the oldest of the address that
//! holds most: exhausting the places takes many addresses, again and again, and a
//! client at another address that sends at once is served.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::shares::Shares;
use crate::source_prefix;

/// Places, each held by something of one [`source_prefix`].
#[derive(Debug)]
pub struct Places<T> {
    most: usize,
    last: u64,
    /// Oldest first.
    held: BTreeMap<u64, (IpAddr, T)>,
    shares: Shares<IpAddr, u64>,
}

impl<T> Places<T> {
    /// So many places, at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            last: 0,
            held: BTreeMap::new(),
            shares: Shares::default(),
        }
    }

    /// Gives a place to the newest, and returns whom that cost theirs.
    pub fn take(&mut self, address: IpAddr, who: T) -> Option<T> {
        let evicted = if self.held.len() >= self.most {
            self.evict()
        } else {
            None
        };
        let address = source_prefix(address);
        self.last += 1;
        self.shares.insert(address, self.last);
        self.held.insert(self.last, (address, who));
        evicted
    }

    /// Takes the place of the oldest of the address that holds most.
    pub fn evict(&mut self) -> Option<T> {
        let id = self.shares.first_to_go(None)?;
        let (address, who) = self.held.remove(&id)?;
        self.shares.remove(address, id);
        Some(who)
    }

    /// Gives back the places of those whom `keeps` does not keep; they are
    /// asked oldest first.
    pub fn retain(&mut self, mut keeps: impl FnMut(&mut T) -> bool) {
        let shares = &mut self.shares;
        self.held.retain(|&id, (address, who)| {
            let stays = keeps(who);
            if !stays {
                shares.remove(*address, id);
            }
            stays
        });
    }

    /// Those who hold a place, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.held.values().map(|(_, who)| who)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn whoever_holds_most_pays_for_the_newest_with_its_oldest() {
        let mut places = Places::new(4);
        assert_eq!(places.take(host(1), "player"), None);
        for who in ["first", "second", "third"] {
            assert_eq!(places.take(host(66), who), None);
        }
        assert_eq!(places.take(host(66), "fourth"), Some("first"));
        assert_eq!(places.take(host(2), "another player"), Some("second"));
        // One more of the two who hold most equally: the oldest of all.
        let all: Vec<_> = places.iter().copied().collect();
        assert_eq!(all, ["player", "third", "fourth", "another player"]);
    }

    #[test]
    fn a_place_that_was_given_back_costs_nobody_theirs() {
        let mut places = Places::new(2);
        places.take(host(1), 1);
        places.take(host(2), 2);
        places.retain(|&mut who| who != 1);
        assert_eq!(places.take(host(3), 3), None);
        assert_eq!(places.iter().copied().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn all_addresses_of_an_ipv6_subscriber_have_one_share() {
        let mut places = Places::new(4);
        places.take("2001:db8:0:1::1".parse().unwrap(), 0);
        for n in 1..4_u8 {
            let address = format!("2001:db8::{n}").parse().unwrap();
            assert_eq!(places.take(address, n), None);
        }
        assert_eq!(places.take("2001:db8::9".parse().unwrap(), 4), Some(1));
        assert_eq!(places.take(host(1), 5), Some(2));
    }
}
