//! Fair queueing: a queue for each flow, served in turn by bytes, each with
//! `CoDel` (RFC 8290). Flows that had nothing waiting come first.
//!
//! [`Isolation::Flows`] is `fq_codel`: flows are told apart by a hash into so many
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
    /// Flows of each host that are in one of the lists.
    listed_of_host: BTreeMap<u32, u64>,
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
            listed_of_host: BTreeMap::new(),
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
        let quantum = self.quantum;
        let flow = self.flows.entry(bucket).or_default();
        flow.fifo.push(waiting);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = signed(quantum);
            self.new.push_back(bucket);
            *self.listed_of_host.entry(bucket.0).or_default() += 1;
        }
    }

    /// RFC 8290, section 4.2. A flow's turn is a quantum, by hosts a quantum
    /// shared by the host's flows.
    pub(super) fn pop(&mut self, now: u64, drop: &mut dyn FnMut(Packet)) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let bucket = *self.new.front().or_else(|| self.old.front())?;
            let turn = self.turn(bucket);
            let flow = self.flows.get_mut(&bucket)?;
            if flow.deficit <= 0 {
                flow.deficit += turn;
                self.unlist_head(is_new);
                self.old.push_back(bucket);
                continue;
            }
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

    /// Bytes a flow may send in its turn, at least one.
    fn turn(&self, bucket: Bucket) -> i64 {
        let sharing = match self.isolation {
            Isolation::Flows(_) => 1,
            Isolation::Hosts => self.listed_of_host.get(&bucket.0).copied().unwrap_or(1),
        };
        signed((self.quantum / sharing.max(1)).max(1))
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
        if let Some(listed) = self.listed_of_host.get_mut(&bucket.0) {
            *listed = listed.saturating_sub(1);
        }
    }
}

/// Bytes as a deficit counts them.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
