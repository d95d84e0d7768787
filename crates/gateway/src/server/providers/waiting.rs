//! Logins that wait until somebody can be asked about them.
//!
//! Addresses take turns, so that whoever sends thousands of logins from one
//! makes nobody wait but himself, and what waits is bounded: of all, and of one
//! address.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;

use crate::core::{AuthRequest, Ticket};

/// Logins that may wait; more of the address that has most fail.
const AT_MOST: usize = 4096;

/// Logins of one address that may wait; more fail.
const OF_ADDRESS_AT_MOST: usize = 1024;

/// Logins by address, those of one in the order they came. Servers and
/// connections without an address are one address.
#[derive(Debug, Default)]
pub(in crate::server) struct Waiting {
    by_address: BTreeMap<Option<IpAddr>, VecDeque<AuthRequest>>,
    len: usize,
    /// From where on the next turn is looked for.
    after: Turn,
}

/// Whose turn was last.
#[derive(Clone, Copy, Debug, Default)]
enum Turn {
    #[default]
    Nobody,
    Of(Option<IpAddr>),
}

impl Waiting {
    /// Takes a login in. Returns one that finds no place: it, or another.
    pub(in crate::server) fn push(&mut self, request: AuthRequest) -> Option<Ticket> {
        let own = self.by_address.entry(request.address).or_default();
        if own.len() >= OF_ADDRESS_AT_MOST {
            return Some(request.ticket);
        }
        own.push_back(request);
        self.len += 1;
        if self.len <= AT_MOST {
            return None;
        }
        let longest = self.by_address.values_mut().max_by_key(|queue| queue.len());
        let dropped = longest.and_then(VecDeque::pop_back)?;
        self.len -= 1;
        self.forget_if_empty(dropped.address);
        Some(dropped.ticket)
    }

    /// The next that is still `wanted`, of the next address.
    pub(in crate::server) fn pop(
        &mut self,
        wanted: impl Fn(Ticket) -> bool,
    ) -> Option<AuthRequest> {
        loop {
            let after = match self.after {
                Turn::Of(last) => Bound::Excluded(last),
                Turn::Nobody => Bound::Unbounded,
            };
            let next = self.by_address.range((after, Bound::Unbounded)).next();
            let next = next.or_else(|| self.by_address.first_key_value());
            let address = *next?.0;
            self.after = Turn::Of(address);
            let request = self.by_address.get_mut(&address)?.pop_front();
            self.len -= usize::from(request.is_some());
            self.forget_if_empty(address);
            if let Some(request) = request.filter(|request| wanted(request.ticket)) {
                return Some(request);
            }
        }
    }

    /// Forgets those that nobody wants any more.
    pub(in crate::server) fn retain(&mut self, wanted: impl Fn(Ticket) -> bool) {
        for queue in self.by_address.values_mut() {
            queue.retain(|request| wanted(request.ticket));
        }
        self.by_address.retain(|_, queue| !queue.is_empty());
        self.len = self.by_address.values().map(VecDeque::len).sum();
    }

    pub(in crate::server) fn len(&self) -> usize {
        self.len
    }

    fn forget_if_empty(&mut self, address: Option<IpAddr>) {
        if self
            .by_address
            .get(&address)
            .is_some_and(VecDeque::is_empty)
        {
            self.by_address.remove(&address);
        }
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
        assert_eq!(refused.count(), 2_000 - OF_ADDRESS_AT_MOST);
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
}
