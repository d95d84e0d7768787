//! Fair queueing: a queue for each flow, served in turn by bytes, each with
//! `CoDel` (RFC 8290). Flows that had nothing waiting come first.
//!
//! [`Isolation::Flows`] is `fq_codel`: flows are distinguished by a hash into so many
//! queues, so two may share one. [`Isolation::Hosts`] is what CAKE adds (Linux
//! `sch_cake`, `dual-srchost` and `dual-dsthost`): every host has its share, however
//! many flows it has, and no two flows share a queue.

use std::collections::{BTreeMap, VecDeque};

use super::codel::{CoDel, Control};
use super::fifo::Fifo;
use super::{Flow, Packet, Waiting};
use crate::keyed::{Purpose, Scope, Stream};

/// What flows are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A hash into so many queues, at least one.
    Flows(u32),
    /// Each flow by itself, and hosts before flows.
    Hosts,
}

/// A queue for each flow.
#[derive(Clone, Debug)]
pub(super) struct FairQueue {
    codel: CoDel,
    isolation: Isolation,
    quantum: u64,
    hash: Stream,
    flows: BTreeMap<Bucket, FlowQueue>,
    /// Flows that had nothing waiting, in the order they came.
    new: VecDeque<Bucket>,
    /// Flows that have had their first turn.
    old: VecDeque<Bucket>,
    hosts: BTreeMap<u32, Host>,
    bytes: u64,
    packets: usize,
}

/// Flows whose control is remembered while nothing of theirs waits: as many as
/// `fq_codel` and CAKE have queues.
const REMEMBERED: usize = 1024;

/// Packets that `fq_codel` drops at once where there is no room (Linux
/// `drop_batch_size`).
const BATCH: u32 = 64;

/// Which queue a flow has: the host's number (0 where hosts are not told apart)
/// and the flow's or its hash.
type Bucket = (u32, u32);

#[derive(Clone, Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
    /// Bytes it may still send in this turn.
    deficit: i64,
    is_listed: bool,
}

/// What the flows of a host share.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    /// Its flows that are in one of the lists.
    listed: u64,
    /// Parts of bytes that its turns were too short by.
    owed: u64,
}

impl FairQueue {
    pub(super) fn new(codel: CoDel, isolation: Isolation, quantum: u64, seed: u64) -> Self {
        Self {
            codel,
            isolation,
            quantum: quantum.max(1),
            hash: Stream::new(seed, Scope::Both, Purpose::FlowHash),
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            hosts: BTreeMap::new(),
            bytes: 0,
            packets: 0,
        }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn len(&self) -> usize {
        self.packets
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.packet.bytes;
        self.packets += 1;
        let bucket = self.bucket(waiting.packet.flow);
        let flow = self.flows.entry(bucket).or_default();
        flow.fifo.push(waiting);
        if !flow.is_listed {
            flow.is_listed = true;
            self.new.push_back(bucket);
            self.hosts.entry(bucket.0).or_default().listed += 1;
            // The first turn too is shared, as in Linux's `cake_enqueue`: flows that
            // run dry and come back would else have a whole one each time.
            let turn = self.turn(bucket);
            if let Some(flow) = self.flows.get_mut(&bucket) {
                flow.deficit = turn;
            }
        }
    }

    /// RFC 8290, section 4.2. A flow's turn is a quantum, by hosts a quantum
    /// shared by the host's flows.
    pub(super) fn pop(&mut self, now: u64, drop: &mut dyn FnMut(Packet)) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let bucket = *self.new.front().or_else(|| self.old.front())?;
            if self.flows.get(&bucket)?.deficit <= 0 {
                let turn = self.turn(bucket);
                self.flows.get_mut(&bucket)?.deficit += turn;
                self.unlist_head(is_new);
                self.old.push_back(bucket);
                continue;
            }
            let flow = self.flows.get_mut(&bucket)?;
            let others = self.bytes - flow.fifo.bytes();
            let (mut lost_bytes, mut lost_packets) = (0, 0);
            let mut count = |packet: Packet| {
                lost_bytes += packet.bytes;
                lost_packets += 1;
                drop(packet);
            };
            let next = flow
                .control
                .pop(&self.codel, now, (&mut flow.fifo, others), &mut count);
            self.bytes -= lost_bytes;
            self.packets -= lost_packets;
            let Some(waiting) = next else {
                self.unlist_head(is_new);
                // A flow that was new must wait for its turn before it may be new
                // again, or it would starve the old ones.
                if is_new && !self.old.is_empty() {
                    self.old.push_back(bucket);
                } else {
                    self.forget(bucket);
                }
                continue;
            };
            flow.deficit -= signed(waiting.packet.bytes);
            self.bytes -= waiting.packet.bytes;
            self.packets -= 1;
            return Some(waiting);
        }
    }

    /// Makes room at the expense of the queue that holds most bytes (RFC 8290,
    /// section 4.1): of `fq_codel`'s up to [`BATCH`] packets until half of its bytes
    /// are gone (Linux `fq_codel_drop`), of CAKE's its oldest packet. Says whether
    /// there was any.
    pub(super) fn drop_from_longest(&mut self, drop: &mut dyn FnMut(Packet)) -> bool {
        let mut longest: Option<&mut FlowQueue> = None;
        for flow in self.flows.values_mut() {
            let most = longest.as_ref().map_or(0, |it| it.fifo.bytes());
            if flow.fifo.bytes() > most {
                longest = Some(flow);
            }
        }
        let Some(longest) = longest else {
            return false;
        };
        let (batch, enough) = match self.isolation {
            Isolation::Flows(_) => (BATCH, longest.fifo.bytes() / 2),
            Isolation::Hosts => (1, 0),
        };
        let (mut packets, mut bytes) = (0, 0);
        while packets < batch
            && (packets == 0 || bytes < enough)
            && let Some(waiting) = longest.fifo.pop()
        {
            packets += 1;
            bytes += waiting.packet.bytes;
            drop(waiting.packet);
        }
        longest.control.lost(packets);
        self.bytes -= bytes;
        self.packets -= packets as usize;
        true
    }

    fn bucket(&self, flow: Flow) -> Bucket {
        match self.isolation {
            Isolation::Hosts => (flow.host, flow.flow),
            Isolation::Flows(queues) => {
                let hash = self.hash.draw(flow.host.into(), flow.flow.into());
                (0, (hash % u64::from(queues.max(1))) as u32)
            }
        }
    }

    /// Bytes a flow may send in its turn: by hosts its part of the quantum, where
    /// what is left of the division is kept for the host's next (Linux rounds at
    /// random).
    fn turn(&mut self, bucket: Bucket) -> i64 {
        let host = match self.isolation {
            Isolation::Flows(_) => None,
            Isolation::Hosts => self.hosts.get_mut(&bucket.0),
        };
        let Some(host) = host else {
            return signed(self.quantum);
        };
        let sharing = host.listed.max(1);
        let parts = self.quantum + host.owed;
        host.owed = parts % sharing;
        signed(parts / sharing)
    }

    /// Takes the flow whose turn it is from its list.
    fn unlist_head(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front();
        } else {
            self.old.pop_front();
        }
    }

    /// Notes that a flow is in no list. Its control keeps its state, unless there
    /// are more flows than [`REMEMBERED`].
    fn forget(&mut self, bucket: Bucket) {
        if self.flows.len() > REMEMBERED {
            self.flows.remove(&bucket);
        } else if let Some(flow) = self.flows.get_mut(&bucket) {
            flow.is_listed = false;
        }
        if let Some(host) = self.hosts.get_mut(&bucket.0) {
            host.listed = host.listed.saturating_sub(1);
        }
    }
}

/// Bytes as a deficit counts them.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1500;

    /// The share of what is sent that the first host gets with one flow that never
    /// lacks packets, beside one with `flows` flows that each have `window` packets
    /// waiting or on their way; one that was sent comes back after `away` more.
    fn share_beside(flows: u32, window: usize, away: usize) -> f64 {
        // Without CoDel's drops: turns alone are looked at.
        let patient = CoDel {
            target: u64::MAX / 4,
            interval: u64::MAX / 4,
            ecn: false,
        };
        let mut queue = FairQueue::new(patient, Isolation::Hosts, 1514, 1);
        let push = |queue: &mut FairQueue, host, flow| {
            queue.push(Waiting {
                packet: Packet {
                    tag: 0,
                    flow: Flow { host, flow },
                    bytes: PACKET,
                    is_ecn_capable: false,
                },
                since: 0,
                is_marked: false,
            });
        };
        for _ in 0..50 {
            push(&mut queue, 1, 0);
        }
        for flow in 1..=flows {
            for _ in 0..window {
                push(&mut queue, 2, flow);
            }
        }
        let rounds = 20_000;
        let mut on_their_way = VecDeque::new();
        let mut first = 0;
        for _ in 0..rounds {
            let sent = queue.pop(0, &mut |_| panic!("dropped"));
            let flow = sent.map(|waiting| waiting.packet.flow);
            let is_first = flow.is_some_and(|flow| flow.host == 1);
            if is_first {
                first += 1;
                push(&mut queue, 1, 0);
            }
            on_their_way.push_back(flow.filter(|_| !is_first));
            if on_their_way.len() > away
                && let Some(back) = on_their_way.pop_front().flatten()
            {
                push(&mut queue, 2, back.flow);
            }
        }
        f64::from(first) / f64::from(rounds)
    }

    #[test]
    fn two_hosts_have_equal_shares_however_many_flows_one_has_and_how_often_they_run_dry() {
        for flows in [1, 2, 7, 64, 400] {
            // A flow that always has something, and ones that are out of the list
            // again and again.
            for (window, away) in [(60, 20), (2, 20), (1, 0), (1, 20), (1, 40), (3, 100)] {
                // Enough of them must be there for half of what is sent.
                if (flows as usize) * window <= away {
                    continue;
                }
                let share = share_beside(flows, window, away);
                assert!(
                    (share - 0.5).abs() < 0.02,
                    "{flows} flows of {window}, {away} away: {share}"
                );
            }
        }
    }
}
