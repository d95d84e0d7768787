//! A model of the bus and of the lease's entry, as NATS has them, or worse.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use bytes::Bytes;
use lagometer_gateway::core::{ShardCount, ShardId};
use lagometer_gateway::nodes::{Address, BusEvent, LeaseAnswer, LeaseRequest, LeaseTask, NodeId};

use crate::random::Random;

pub(crate) const MS: u64 = 1_000_000;

/// A node's inbox holds so many frames; more are lost, as a slow consumer's are.
const INBOX: usize = 64;

/// A task of a node that is cut off fails after this, as the client has it.
const TASK_TIMEOUT: u64 = 2_000 * MS;

/// What may become of frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Impairments {
    /// So many of a thousand are lost.
    pub(crate) lost: u64,
    /// So many come twice.
    pub(crate) repeated: u64,
    /// So many of a thousand take up to so long, and those behind them wait.
    pub(crate) slow: u64,
    pub(crate) slow_ms: u64,
}

/// Something on its way.
#[derive(Debug, PartialEq, Eq)]
enum Going {
    Event(NodeId, ShardId, BusEvent),
    /// A task that arrives at the store.
    Task(NodeId, ShardId, LeaseTask),
}

#[derive(Debug, PartialEq, Eq)]
struct Timed {
    at: u64,
    number: u64,
    going: Going,
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A lease's entry, and its revision.
#[derive(Clone, Debug, Default)]
struct Stored {
    entry: Option<Bytes>,
    revision: u64,
}

/// The bus, and the store of the leases beside it.
pub(crate) struct Bus {
    random: Random,
    pub(crate) impairments: Impairments,
    on_way: BinaryHeap<Reverse<Timed>>,
    number: u64,
    /// Until when a node is cut off.
    cut_off: BTreeMap<NodeId, u64>,
    nodes: BTreeSet<NodeId>,
    /// When the last frame of a sender to an address comes: those behind it come later.
    last: BTreeMap<(NodeId, Address), u64>,
    shards: ShardCount,
    /// Of each shard's lease.
    store: Vec<Stored>,
    pub(crate) frames_lost: u64,
}

impl Bus {
    pub(crate) fn new(random: Random, shards: ShardCount) -> Self {
        Self {
            random,
            impairments: Impairments::default(),
            on_way: BinaryHeap::new(),
            number: 0,
            cut_off: BTreeMap::new(),
            nodes: BTreeSet::new(),
            last: BTreeMap::new(),
            store: vec![Stored::default(); usize::from(shards.get())],
            shards,
            frames_lost: 0,
        }
    }

    pub(crate) fn add(&mut self, now: u64, node: NodeId) {
        self.nodes.insert(node);
        self.put_to_all(now + MS, node, &BusEvent::Up);
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// Nothing comes from or to a node until then.
    pub(crate) fn cut(&mut self, now: u64, node: NodeId, until: u64) {
        self.cut_off.insert(node, until);
        self.put_to_all(now, node, &BusEvent::Down);
        self.put_to_all(until, node, &BusEvent::Up);
    }

    /// The store forgets all entries, as one whose disk is lost.
    pub(crate) fn forget_entries(&mut self) {
        self.store.fill(Stored::default());
    }

    fn is_cut(&self, node: NodeId, now: u64) -> bool {
        self.cut_off.get(&node).is_some_and(|&until| now < until)
    }

    pub(crate) fn publish(
        &mut self,
        now: u64,
        from: NodeId,
        shard: ShardId,
        to: Address,
        frame: &Bytes,
    ) {
        if self.is_cut(from, now) {
            self.frames_lost += 1;
            return;
        }
        let mut at = now + self.random.within(MS / 5, 2 * MS);
        if self.random.happens(self.impairments.slow) {
            at += self.random.within(0, self.impairments.slow_ms.max(1)) * MS;
        }
        let last = self.last.entry((from, to)).or_insert(0);
        at = at.max(*last + 1);
        *last = at;
        let all: Vec<NodeId> = self.nodes.iter().copied().collect();
        for node in all {
            if node == from || (to != Address::All && to != Address::Node(node)) {
                continue;
            }
            let times = if self.random.happens(self.impairments.lost) {
                self.frames_lost += 1;
                0
            } else {
                1 + usize::from(self.random.happens(self.impairments.repeated))
            };
            for again in 0..times {
                // One that comes again comes at any time.
                let at = at
                    + if again > 0 {
                        self.random.within(0, 500 * MS)
                    } else {
                        0
                    };
                self.put(
                    at,
                    Going::Event(node, shard, BusEvent::Frame(frame.clone())),
                );
            }
        }
    }

    pub(crate) fn ask(&mut self, now: u64, from: NodeId, shard: ShardId, task: LeaseTask) {
        if self.is_cut(from, now) {
            let failed = LeaseAnswer::Failed("timed out".to_owned());
            let event = BusEvent::Lease(task.number, failed);
            self.put(now + TASK_TIMEOUT, Going::Event(from, shard, event));
            return;
        }
        let at = now + self.random.within(MS / 5, 20 * MS);
        self.put(at, Going::Task(from, shard, task));
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.on_way.peek().map(|Reverse(timed)| timed.at)
    }

    /// The next event that has come by now, and for whose shard.
    pub(crate) fn arrive(&mut self, now: u64) -> Option<(NodeId, ShardId, BusEvent)> {
        while self.next().is_some_and(|at| at <= now) {
            let Reverse(timed) = self.on_way.pop()?;
            match timed.going {
                Going::Task(node, shard, task) => self.on_task(timed.at, node, shard, task),
                Going::Event(node, shard, event) => {
                    let is_frame = matches!(event, BusEvent::Frame(_));
                    if is_frame && self.is_cut(node, timed.at) {
                        self.frames_lost += 1;
                        continue;
                    }
                    if self.nodes.contains(&node) {
                        return Some((node, shard, event));
                    }
                }
            }
        }
        None
    }

    /// Whether a node that does not take what comes has room for another frame.
    pub(crate) fn has_room(waiting: usize) -> bool {
        waiting < INBOX
    }

    fn on_task(&mut self, at: u64, node: NodeId, shard: ShardId, task: LeaseTask) {
        let answer = self.store[shard.index()].answer(task.request);
        let number = task.number;
        let lost = self.is_cut(node, at) || self.random.happens(self.impairments.lost);
        let (at, answer) = if lost {
            // It was done, and nobody knows.
            let failed = LeaseAnswer::Failed("timed out".to_owned());
            (at + TASK_TIMEOUT, failed)
        } else {
            (at + self.random.within(MS / 5, 20 * MS), answer)
        };
        self.put(
            at,
            Going::Event(node, shard, BusEvent::Lease(number, answer)),
        );
    }

    fn put_to_all(&mut self, at: u64, node: NodeId, event: &BusEvent) {
        for shard in self.shards.all() {
            self.put(at, Going::Event(node, shard, event.clone()));
        }
    }

    fn put(&mut self, at: u64, going: Going) {
        self.number += 1;
        let number = self.number;
        self.on_way.push(Reverse(Timed { at, number, going }));
    }
}

impl Stored {
    fn answer(&mut self, request: LeaseRequest) -> LeaseAnswer {
        let (value, is_fine) = match request {
            LeaseRequest::Read => {
                let entry = self.entry.clone().map(|value| (value, self.revision));
                return LeaseAnswer::Entry(entry);
            }
            LeaseRequest::Create(value) => (value, self.entry.is_none()),
            LeaseRequest::Update(value, revision) => {
                (value, self.entry.is_some() && revision == self.revision)
            }
        };
        if !is_fine {
            return LeaseAnswer::Conflict;
        }
        self.entry = Some(value);
        self.revision += 1;
        LeaseAnswer::Written(self.revision)
    }
}
