//! Logins that wait until somebody can be asked about them.
//!
//! Households take turns, so that whoever sends thousands of logins from one
//! makes nobody wait but himself, and what waits is bounded: of all, and of one
//! household. A [household] is one IPv4 address or one IPv6 /64, for the latter
//! gives whoever has it 2^64 addresses, and would give him as many turns.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;

use crate::core::{AuthRequest, Ticket, household};

/// Logins that may wait. One more, and one of the household that has most fails:
/// the one that has waited longest there, and where several households have as
/// many, the one that has waited longest of them all. What counts is never the
/// number that an address happens to be.
const AT_MOST: usize = 4096;

/// Logins of one household that may wait; more fail.
const OF_HOUSEHOLD_AT_MOST: usize = 1024;

/// Logins by household, those of one in the order they came. Servers and
/// connections without an address are one household.
#[derive(Debug, Default)]
pub(in crate::server) struct Waiting {
    by_household: BTreeMap<Household, VecDeque<Entry>>,
    len: usize,
    /// Logins that have ever been taken in.
    taken: u64,
    /// From where on the next turn is looked for.
    after: Turn,
}

/// Who takes turns with others.
type Household = Option<IpAddr>;

#[derive(Debug)]
struct Entry {
    /// Smaller than that of those that came later.
    number: u64,
    request: AuthRequest,
}

/// Whose turn was last.
#[derive(Clone, Copy, Debug, Default)]
enum Turn {
    #[default]
    Nobody,
    Of(Household),
}

impl Waiting {
    /// Takes a login in. Returns one that finds no place: it, or another.
    pub(in crate::server) fn push(&mut self, request: AuthRequest) -> Option<Ticket> {
        let of = request.address.map(household);
        let own = self.by_household.entry(of).or_default();
        if own.len() >= OF_HOUSEHOLD_AT_MOST {
            return Some(request.ticket);
        }
        self.taken += 1;
        own.push_back(Entry {
            number: self.taken,
            request,
        });
        self.len += 1;
        if self.len <= AT_MOST {
            return None;
        }
        self.drop_one()
    }

    /// The next that is still `wanted`, of the next household.
    pub(in crate::server) fn pop(
        &mut self,
        wanted: impl Fn(Ticket) -> bool,
    ) -> Option<AuthRequest> {
        loop {
            let after = match self.after {
                Turn::Of(last) => Bound::Excluded(last),
                Turn::Nobody => Bound::Unbounded,
            };
            let next = self.by_household.range((after, Bound::Unbounded)).next();
            let next = next.or_else(|| self.by_household.first_key_value());
            let of = *next?.0;
            self.after = Turn::Of(of);
            let request = self.take_oldest(of);
            if let Some(request) = request.filter(|request| wanted(request.ticket)) {
                return Some(request);
            }
        }
    }

    /// Forgets those that nobody wants any more.
    pub(in crate::server) fn retain(&mut self, wanted: impl Fn(Ticket) -> bool) {
        for queue in self.by_household.values_mut() {
            queue.retain(|entry| wanted(entry.request.ticket));
        }
        self.by_household.retain(|_, queue| !queue.is_empty());
        self.len = self.by_household.values().map(VecDeque::len).sum();
    }

    pub(in crate::server) fn len(&self) -> usize {
        self.len
    }

    /// Drops the oldest login of the household that has most.
    fn drop_one(&mut self) -> Option<Ticket> {
        let (&of, _) = self.by_household.iter().max_by_key(|(_, queue)| {
            let oldest = queue.front().map_or(u64::MAX, |entry| entry.number);
            (queue.len(), Reverse(oldest))
        })?;
        self.take_oldest(of).map(|request| request.ticket)
    }

    fn take_oldest(&mut self, of: Household) -> Option<AuthRequest> {
        let queue = self.by_household.get_mut(&of)?;
        let oldest = queue.pop_front();
        if queue.is_empty() {
            self.by_household.remove(&of);
        }
        self.len -= usize::from(oldest.is_some());
        oldest.map(|entry| entry.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::providers::signed_token::tests::requests;

    fn from(n: u8, request: &AuthRequest) -> AuthRequest {
        AuthRequest {
            address: Some(IpAddr::from([10, 0, 0, n])),
            ..request.clone()
        }
    }

    #[test]
    fn a_flood_of_logins_from_one_address_makes_no_other_wait() {
        let requests = requests(2_002);
        let mut waiting = Waiting::default();
        let refused = requests[..2_000]
            .iter()
            .filter_map(|request| waiting.push(from(1, request)));
        assert_eq!(refused.count(), 2_000 - OF_HOUSEHOLD_AT_MOST);
        assert_eq!(waiting.push(from(2, &requests[2_000])), None);
        assert_eq!(waiting.push(from(3, &requests[2_001])), None);
        let order: Vec<Ticket> = (0..3)
            .map(|_| waiting.pop(|_| true).unwrap().ticket)
            .collect();
        assert!(order.contains(&requests[2_000].ticket));
        assert!(order.contains(&requests[2_001].ticket));
    }

    #[test]
    fn logins_of_those_who_hung_up_are_passed_over() {
        let requests = requests(50);
        let mut waiting = Waiting::default();
        for request in &requests {
            waiting.push(from(1, request));
        }
        let last = requests[49].ticket;
        assert_eq!(waiting.pop(|ticket| ticket == last).unwrap().ticket, last);
        assert!(waiting.pop(|_| true).is_none());
        for request in &requests {
            waiting.push(from(1, request));
        }
        waiting.retain(|ticket| ticket == last);
        assert_eq!(waiting.len(), 1);
        waiting.retain(|_| false);
        assert!(waiting.pop(|_| true).is_none());
    }

    #[test]
    fn where_too_many_wait_the_address_with_most_makes_room() {
        let requests = requests(AT_MOST + 1);
        let mut waiting = Waiting::default();
        for (n, request) in requests[..AT_MOST].iter().enumerate() {
            assert_eq!(waiting.push(from((n % 5) as u8, request)), None);
        }
        let dropped = waiting.push(from(77, &requests[AT_MOST]));
        assert!(dropped.is_some_and(|ticket| ticket != requests[AT_MOST].ticket));
        assert_eq!(waiting.len(), AT_MOST);
    }

    #[test]
    fn an_ipv6_subscriber_has_one_turn_however_many_addresses_it_has() {
        let requests = requests(1_100);
        let mut waiting = Waiting::default();
        let at = |n: usize, address: &str| AuthRequest {
            address: Some(address.parse().unwrap()),
            ..requests[n].clone()
        };
        let mut refused = 0;
        for n in 0..1_098 {
            let address = format!("2001:db8::{n:x}");
            refused += usize::from(waiting.push(at(n, &address)).is_some());
        }
        assert_eq!(refused, 1_098 - OF_HOUSEHOLD_AT_MOST);
        assert_eq!(waiting.push(at(1_098, "2001:db8:0:1::1")), None);
        let order = [(); 2].map(|()| waiting.pop(|_| true).unwrap().ticket);
        assert_eq!(order, [requests[0].ticket, requests[1_098].ticket]);
    }

    #[test]
    fn where_all_have_as_many_the_longest_waiting_makes_room_whatever_its_address() {
        let requests = requests(AT_MOST + 2);
        let household = |n: usize| AuthRequest {
            // The newcomers' addresses are the greatest.
            address: Some(match n {
                0 => IpAddr::from([172, 0, 0, 1]),
                _ if n >= AT_MOST => IpAddr::from([192, 0, (n >> 8) as u8, n as u8]),
                _ => IpAddr::from([10, 0, (n >> 8) as u8, n as u8]),
            }),
            ..requests[n].clone()
        };
        let mut waiting = Waiting::default();
        for n in 0..AT_MOST {
            assert_eq!(waiting.push(household(n)), None);
        }
        for (n, oldest) in requests[..2].iter().enumerate() {
            let dropped = waiting.push(household(AT_MOST + n));
            assert_eq!(dropped, Some(oldest.ticket));
        }
    }
}
