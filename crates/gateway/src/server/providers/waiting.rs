//! Logins that wait until somebody can be asked about them.
//!
//! Source prefixes take turns, so that whoever sends thousands of logins from one
//! makes nobody wait but himself, and what waits is bounded: of all, and of one
//! source prefix. A source prefix is one IPv4 address or one IPv6 /64, for the latter
//! gives whoever has it 2^64 addresses, and would give him as many turns.
//!
//! Logins that came over KCP from peers who may not be where they say have one
//! turn, and one source prefix's room, between them: whoever forges addresses would
//! have a turn for each. Within that turn the addresses take turns, so that a
//! flood from one that is not forged does not hold up the others there either.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;

use crate::core::{AuthRequest, Ticket, source_prefix};

/// Logins that may wait. One more, and one of the source prefix that has most fails:
/// the one that has waited longest there, and where several source prefixes have as
/// many, the one that has waited longest of them all. What counts is never the
/// number that an address happens to be.
const AT_MOST: usize = 4096;

/// Logins of one source prefix that may wait, and of all that are unproven; more
/// fail.
const OF_SOURCE_PREFIX_AT_MOST: usize = 1024;

/// Logins that wait.
#[derive(Debug, Default)]
pub(in crate::server) struct Waiting {
    /// Of those who are where they say.
    proven: Queues,
    /// Of those who may not be: they share one turn in each round.
    unproven: Queues,
    /// Logins that have ever been taken in.
    taken: u64,
}

/// Logins by source prefix, those of one in the order they came. Servers and
/// connections without an address are one source prefix.
#[derive(Debug, Default)]
struct Queues {
    by_source_prefix: BTreeMap<SourcePrefix, VecDeque<Entry>>,
    len: usize,
    /// Whose turn was last in this round.
    after: Option<SourcePrefix>,
}

/// Who takes turns with others.
type SourcePrefix = Option<IpAddr>;

#[derive(Debug)]
struct Entry {
    /// Smaller than that of those that came later.
    number: u64,
    request: AuthRequest,
}

impl Waiting {
    /// Takes a login in. Returns one that finds no place: it, or another.
    pub(in crate::server) fn push(&mut self, request: AuthRequest) -> Option<Ticket> {
        let is_unproven = request.is_address_forgeable;
        let of = request.address.map(source_prefix);
        if !is_unproven && self.proven.of(of) >= OF_SOURCE_PREFIX_AT_MOST {
            return Some(request.ticket);
        }
        self.taken += 1;
        let entry = Entry {
            number: self.taken,
            request,
        };
        if is_unproven {
            self.unproven.push(of, entry);
        } else {
            self.proven.push(of, entry);
        }
        if self.unproven.len > OF_SOURCE_PREFIX_AT_MOST {
            return self.unproven.drop_one();
        }
        if self.len() <= AT_MOST {
            return None;
        }
        self.drop_one()
    }

    /// The next that is still `wanted`, of the next source prefix.
    pub(in crate::server) fn pop(
        &mut self,
        wanted: impl Fn(Ticket) -> bool,
    ) -> Option<AuthRequest> {
        while self.len() > 0 {
            if let Some(request) = self.next_in_turn()
                && wanted(request.ticket)
            {
                return Some(request);
            }
        }
        None
    }

    /// Forgets those that nobody wants any more.
    pub(in crate::server) fn retain(&mut self, wanted: impl Fn(Ticket) -> bool) {
        self.proven.retain(&wanted);
        self.unproven.retain(&wanted);
    }

    pub(in crate::server) fn len(&self) -> usize {
        self.proven.len + self.unproven.len
    }

    /// One of the next source prefix; at the end of each round one of the unproven.
    fn next_in_turn(&mut self) -> Option<AuthRequest> {
        if let Some(request) = self.proven.next_of_round() {
            return Some(request);
        }
        self.proven.after = None;
        let next = self.unproven.next_of_round().or_else(|| {
            self.unproven.after = None;
            self.unproven.next_of_round()
        });
        next.or_else(|| self.proven.next_of_round())
    }

    /// Drops the oldest login of the source prefix that has most, as which the
    /// unproven count together.
    fn drop_one(&mut self) -> Option<Ticket> {
        if (self.unproven.len, Reverse(self.unproven.oldest())) > self.proven.most() {
            return self.unproven.drop_one();
        }
        self.proven.drop_one()
    }
}

impl Queues {
    /// How many logins of a source prefix wait.
    fn of(&self, source_prefix: SourcePrefix) -> usize {
        self.by_source_prefix
            .get(&source_prefix)
            .map_or(0, VecDeque::len)
    }

    fn push(&mut self, source_prefix: SourcePrefix, entry: Entry) {
        let own = self.by_source_prefix.entry(source_prefix).or_default();
        own.push_back(entry);
        self.len += 1;
    }

    /// The oldest of the next source prefix that has had no turn in this round;
    /// none when all have.
    fn next_of_round(&mut self) -> Option<AuthRequest> {
        let after = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self
            .by_source_prefix
            .range((after, Bound::Unbounded))
            .next();
        let of = *next?.0;
        self.after = Some(of);
        self.take_oldest(of)
    }

    fn retain(&mut self, wanted: impl Fn(Ticket) -> bool) {
        for queue in self.by_source_prefix.values_mut() {
            queue.retain(|entry| wanted(entry.request.ticket));
        }
        self.by_source_prefix.retain(|_, queue| !queue.is_empty());
        self.len = self.by_source_prefix.values().map(VecDeque::len).sum();
    }

    /// How many the source prefix has that has most, and its oldest: of several
    /// with as many the one whose oldest is the oldest of all is greatest.
    fn most(&self) -> (usize, Reverse<u64>) {
        let all = self.by_source_prefix.values().map(share);
        all.max().unwrap_or((0, Reverse(u64::MAX)))
    }

    /// The number of the oldest of all.
    fn oldest(&self) -> u64 {
        let all = self.by_source_prefix.values().map(|queue| share(queue).1.0);
        all.min().unwrap_or(u64::MAX)
    }

    /// Drops the oldest login of the source prefix that has most.
    fn drop_one(&mut self) -> Option<Ticket> {
        let all = self.by_source_prefix.iter();
        let (&of, _) = all.max_by_key(|(_, queue)| share(queue))?;
        self.take_oldest(of).map(|request| request.ticket)
    }

    fn take_oldest(&mut self, of: SourcePrefix) -> Option<AuthRequest> {
        let queue = self.by_source_prefix.get_mut(&of)?;
        let oldest = queue.pop_front();
        if queue.is_empty() {
            self.by_source_prefix.remove(&of);
        }
        self.len -= usize::from(oldest.is_some());
        oldest.map(|entry| entry.request)
    }
}

/// How many wait in a queue, and the number of the oldest.
fn share(queue: &VecDeque<Entry>) -> (usize, Reverse<u64>) {
    let oldest = queue.front().map_or(u64::MAX, |entry| entry.number);
    (queue.len(), Reverse(oldest))
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
        assert_eq!(refused.count(), 2_000 - OF_SOURCE_PREFIX_AT_MOST);
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
        assert_eq!(refused, 1_098 - OF_SOURCE_PREFIX_AT_MOST);
        assert_eq!(waiting.push(at(1_098, "2001:db8:0:1::1")), None);
        let order = [(); 2].map(|()| waiting.pop(|_| true).unwrap().ticket);
        assert_eq!(order, [requests[0].ticket, requests[1_098].ticket]);
    }

    #[test]
    fn where_all_have_as_many_the_longest_waiting_makes_room_whatever_its_address() {
        let requests = requests(AT_MOST + 2);
        let source_prefix = |n: usize| AuthRequest {
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
            assert_eq!(waiting.push(source_prefix(n)), None);
        }
        for (n, oldest) in requests[..2].iter().enumerate() {
            let dropped = waiting.push(source_prefix(AT_MOST + n));
            assert_eq!(dropped, Some(oldest.ticket));
        }
    }

    /// A login over KCP from a peer that may not be there.
    fn unproven(address: IpAddr, request: &AuthRequest) -> AuthRequest {
        AuthRequest {
            address: Some(address),
            is_address_forgeable: true,
            ..request.clone()
        }
    }

    #[test]
    fn logins_from_forged_addresses_have_one_turn_between_them() {
        let requests = requests(504);
        let mut waiting = Waiting::default();
        for (n, request) in requests[..500].iter().enumerate() {
            let forged = IpAddr::from([10, 1, (n >> 8) as u8, n as u8]);
            assert_eq!(waiting.push(unproven(forged, request)), None);
        }
        for (n, request) in requests[500..].iter().enumerate() {
            waiting.push(from(n as u8 % 2, request));
        }
        let order: Vec<bool> = (0..8)
            .map(|_| waiting.pop(|_| true).unwrap().is_address_forgeable)
            .collect();
        // Two source prefixes and the forgers in turn; then the forgers are alone.
        assert_eq!(order, [false, false, true, false, false, true, true, true]);
    }

    #[test]
    fn forged_addresses_have_the_room_of_one_source_prefix_between_them() {
        let requests = requests(AT_MOST);
        let mut waiting = Waiting::default();
        let mut failed = 0;
        for (n, request) in requests[..2_000].iter().enumerate() {
            let forged = IpAddr::from([10, 1, (n >> 8) as u8, n as u8]);
            failed += usize::from(waiting.push(unproven(forged, request)).is_some());
        }
        assert_eq!(failed, 2_000 - OF_SOURCE_PREFIX_AT_MOST);
        for request in &requests[2_000..2_000 + OF_SOURCE_PREFIX_AT_MOST] {
            assert_eq!(waiting.push(from(1, request)), None);
        }
    }

    #[test]
    fn an_unproven_login_waits_for_no_flood_from_another_unproven_address() {
        let requests = requests(1_101);
        let mut waiting = Waiting::default();
        let flood = IpAddr::from([10, 0, 0, 1]);
        for request in &requests[..1_100] {
            waiting.push(unproven(flood, request));
        }
        let honest = &requests[1_100];
        let address = IpAddr::from([10, 0, 0, 2]);
        let dropped = waiting.push(unproven(address, honest));
        assert!(dropped.is_some_and(|ticket| ticket != honest.ticket));
        let first = [(); 2].map(|()| waiting.pop(|_| true).unwrap().ticket);
        assert!(first.contains(&honest.ticket));
    }
}
