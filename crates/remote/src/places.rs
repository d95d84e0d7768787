//! Places for those who have not proved themselves, shared out by address.
//!
//! There are only so many. When all are taken, the newest gets the place of the
//! oldest from the address that holds most: whoever fills the places has to do so
//! from many addresses and again and again, and whoever comes from another address
//! and speaks at once is heard.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

/// Places, each held by something of one address.
#[derive(Debug)]
pub(crate) struct Places<T> {
    most: usize,
    /// Oldest first.
    held: VecDeque<(IpAddr, T)>,
}

impl<T> Places<T> {
    /// So many places, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            held: VecDeque::new(),
        }
    }

    /// Gives a place to the newest, and returns whom that cost theirs.
    pub(crate) fn take(&mut self, address: IpAddr, who: T) -> Option<T> {
        let evicted = if self.held.len() >= self.most {
            self.evict()
        } else {
            None
        };
        self.held.push_back((network(address), who));
        evicted
    }

    /// Gives back the places of those whom `keeps` does not keep.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&mut T) -> bool) {
        self.held.retain_mut(|(_, who)| keeps(who));
    }

    /// Those who hold a place, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.held.iter().map(|(_, who)| who)
    }

    /// The oldest of the address that holds most.
    fn evict(&mut self) -> Option<T> {
        let mut shares: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (network, _) in &self.held {
            *shares.entry(*network).or_default() += 1;
        }
        let most = shares.values().copied().max()?;
        let oldest = self
            .held
            .iter()
            .position(|(network, _)| shares.get(network) == Some(&most))?;
        self.held.remove(oldest).map(|(_, who)| who)
    }
}

/// What counts as one address: of IPv6 the first 64 bits, for that many belong to
/// a single subscriber (RFC 6177, section 2).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
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
    fn a_subscriber_has_one_share_however_many_addresses_it_has() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), host(7));
    }
}
