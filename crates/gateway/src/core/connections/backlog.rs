//! Who caused what waits for one server.
//!
//! Only a server for which much waits has one: it begins when the outbox passes a
//! mark, and ends when the outbox is empty. What waited before the mark was passed
//! counts as nobody's.
//!
//! Bytes are counted as they were queued. An outbox that compresses holds fewer
//! than that, so that the oldest count as written a little early; whoever sent
//! most still has most.
//!
//! Small messages of clients in turn are a run each, and each run takes memory.
//! Once there are many, the runs of a stretch are put together by client: what
//! each client has waiting stays exact, which of it is written first within a
//! stretch does not.
//!
//! Each client's part counts as its source prefix's, too, and goes on counting as that
//! when the client has hung up: whoever comes again finds there what it left.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use lagometer_units::Time;

use crate::core::ids::ConnId;

/// More runs than this are put together; they take a MiB. As many as twice the
/// clients that have something waiting are always left.
const RUNS: usize = 65_536;

/// The shortest stretch of runs that is put together.
const STRETCH: usize = 1024;

/// A client that causes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: ConnId,
    /// Where it comes from, if that has an address.
    pub(super) source_prefix: Option<IpAddr>,
}

/// What waits in one server's outbox, by who caused it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Runs of bytes in the order they were queued, with who caused each.
    runs: VecDeque<(Option<ConnId>, usize)>,
    /// The bytes of all runs.
    total: usize,
    shares: BTreeMap<ConnId, Share>,
    /// The bytes of all shares of each source prefix.
    source_prefixes: BTreeMap<IpAddr, usize>,
}

/// One client's part.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    bytes: usize,
    /// Where the client came from when its first byte was queued.
    source_prefix: Option<IpAddr>,
    /// Its side was asked to pause it until then.
    paused_until: Option<Time>,
}

impl Backlog {
    /// Bytes were queued: by a client's request, or not.
    pub(super) fn queued(&mut self, client: Option<Client>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        let cause = client.map(|client| client.id);
        match self.runs.back_mut() {
            Some((of, run)) if *of == cause => *run += bytes,
            _ => self.runs.push_back((cause, bytes)),
        }
        if let Some(Client { id, source_prefix }) = client {
            let share = self.shares.entry(id).or_insert_with(|| Share {
                source_prefix,
                ..Share::default()
            });
            share.bytes += bytes;
            if let Some(source_prefix) = share.source_prefix {
                *self.source_prefixes.entry(source_prefix).or_default() += bytes;
            }
        }
        if self.runs.len() > RUNS.max(2 * (self.shares.len() + 1)) {
            self.condense();
        }
    }

    /// Puts runs together, of stretches as long as it takes to halve their number
    /// or, with very many clients, of all.
    fn condense(&mut self) {
        let enough = self.runs.len() / 2;
        let mut stretch = STRETCH;
        while self.runs.len() > enough {
            let runs = Vec::from(std::mem::take(&mut self.runs));
            let is_all = stretch >= runs.len();
            for part in runs.chunks(stretch) {
                self.runs.extend(by_client(part));
            }
            if is_all {
                break;
            }
            stretch *= 4;
        }
    }

    /// No more than so many bytes wait now: the oldest were written.
    pub(super) fn settle(&mut self, waiting: usize) {
        while self.total > waiting
            && let Some((cause, run)) = self.runs.front_mut()
        {
            let written = (self.total - waiting).min(*run);
            *run -= written;
            self.total -= written;
            if let Some(cause) = *cause
                && let Some(share) = self.shares.get_mut(&cause)
            {
                share.bytes -= written;
                if let Some(source_prefix) = share.source_prefix
                    && let Some(sum) = self.source_prefixes.get_mut(&source_prefix)
                {
                    *sum -= written;
                    if *sum == 0 {
                        self.source_prefixes.remove(&source_prefix);
                    }
                }
                if share.bytes == 0 {
                    self.shares.remove(&cause);
                }
            }
            if self.runs.front().is_some_and(|(_, run)| *run == 0) {
                self.runs.pop_front();
            }
        }
    }

    /// Bytes that wait because of a client.
    pub(super) fn of(&self, client: ConnId) -> usize {
        self.shares.get(&client).map_or(0, |share| share.bytes)
    }

    /// Bytes that wait because of all clients of a source prefix, those that have
    /// hung up since included.
    pub(super) fn of_source_prefix(&self, source_prefix: IpAddr) -> usize {
        self.source_prefixes
            .get(&source_prefix)
            .copied()
            .unwrap_or(0)
    }

    /// Until when a client is paused for what it has here.
    pub(super) fn paused_until(&self, client: ConnId) -> Option<Time> {
        self.shares.get(&client)?.paused_until
    }

    /// A client is paused until then.
    pub(super) fn note_pause(&mut self, client: ConnId, until: Time) {
        if let Some(share) = self.shares.get_mut(&client) {
            share.paused_until = Some(until);
        }
    }
}

/// The runs of a stretch as one of each client, in the order in which each first
/// has one.
fn by_client(runs: &[(Option<ConnId>, usize)]) -> Vec<(Option<ConnId>, usize)> {
    let mut together: Vec<(Option<ConnId>, usize)> = Vec::new();
    let mut places: BTreeMap<Option<ConnId>, usize> = BTreeMap::new();
    for &(cause, bytes) in runs {
        let place = *places.entry(cause).or_insert_with(|| {
            together.push((cause, 0));
            together.len() - 1
        });
        together[place].1 += bytes;
    }
    together
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of one of two source prefixes.
    fn client(id: ConnId) -> Client {
        Client {
            id,
            source_prefix: Some(IpAddr::from([10, 0, 0, (id.0 % 2) as u8])),
        }
    }

    #[test]
    fn clients_that_send_in_turn_take_little_memory_and_have_what_they_sent() {
        for clients in [2, 1000, 50_000] {
            let mut backlog = Backlog::default();
            let most = RUNS.max(2 * (clients + 1));
            let messages = 300_000;
            for number in 0..messages {
                let id = ConnId((number % clients) as u32);
                backlog.queued(Some(client(id)), 10);
                assert!(backlog.runs.len() <= most, "{}", backlog.runs.len());
            }
            let of_one = messages / clients * 10;
            let shares = (0..clients).map(|client| backlog.of(ConnId(client as u32)));
            assert!(shares.into_iter().all(|share| share == of_one));
            // Half is written: what is left is what the shares add up to.
            backlog.settle(messages * 5);
            assert_eq!(backlog.total, messages * 5);
            let left: usize = backlog.shares.values().map(|share| share.bytes).sum();
            assert_eq!(left, messages * 5);
            // With few clients it is still about half of what each sent.
            if clients == 2 {
                let one = backlog.of(ConnId(0));
                assert!((of_one / 2).abs_diff(one) <= most * 10, "{one}");
            }
            backlog.settle(0);
            assert!(backlog.shares.is_empty() && backlog.runs.is_empty());
            assert!(backlog.source_prefixes.is_empty());
        }
    }

    proptest! {
        #[test]
        fn shares_are_what_is_left_of_each_clients_bytes_in_order(
            steps in proptest::collection::vec((0_u32..4, 0_usize..300, any::<bool>()), 1..80),
        ) {
            let mut backlog = Backlog::default();
            // Each byte by who caused it.
            let mut bytes: VecDeque<Option<ConnId>> = VecDeque::new();
            for (who, count, writes) in steps {
                if writes {
                    bytes.drain(..count.min(bytes.len()));
                    backlog.settle(bytes.len());
                } else {
                    let cause = (who > 0).then_some(ConnId(who));
                    bytes.extend(std::iter::repeat_n(cause, count));
                    backlog.queued(cause.map(client), count);
                }
                for rest in 0..2 {
                    let is_of = |id: &ConnId| id.0 % 2 == rest;
                    let left = bytes.iter().filter(|cause| cause.as_ref().is_some_and(is_of));
                    let source_prefix = client(ConnId(rest)).source_prefix.unwrap();
                    prop_assert_eq!(backlog.of_source_prefix(source_prefix), left.count());
                }
                for client in (1..4).map(ConnId) {
                    let left = bytes.iter().filter(|&&cause| cause == Some(client)).count();
                    prop_assert_eq!(backlog.of(client), left);
                    prop_assert_eq!(backlog.shares.contains_key(&client), left > 0);
                }
                prop_assert_eq!(backlog.total, bytes.len());
            }
        }
    }
}
