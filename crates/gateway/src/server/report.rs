//! What a loop has counted, handed to whoever asks, and whether it is alive.
//!
//! The loops count in plain numbers of their own. Only when somebody asks are
//! they copied out, between two turns of the loop. A connection loop answers
//! only once a probe has gone from it to the channel loop and back, through the
//! queues that all messages go through: a loop that turns and gets nothing done
//! does not count as alive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::core::{ChannelCounters, ConnectionCounters};
use crate::nodes::RouteCounters;

use super::poller::Waker;

/// One loop's numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// Of its connections.
    pub(super) connections: Option<ConnectionCounters>,
    /// Of the channels, if it has them, and how long the last fan-out tick took in
    /// milliseconds.
    pub(super) channels: Option<(ChannelCounters, f64)>,
    /// Turns of the loop.
    pub(super) turns: u64,
    /// Time it did not wait, in nanoseconds.
    pub(super) busy_ns: u64,
    /// Messages that wait in the queue before it.
    pub(super) queued: u64,
    /// Bytes that wait to be written to its connections.
    pub(super) waiting_bytes: u64,
    /// Bytes of memory that its KCP conversations hold that are not proven.
    pub(super) kcp_unproven_bytes: u64,
    /// Of the routes between nodes, if it has some.
    pub(super) routes: Option<RouteNumbers>,
}

/// What a node among several knows of its routes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RouteNumbers {
    /// Routes that stand.
    pub(super) open: u64,
    /// Routes that were given up.
    pub(super) lost: u64,
    pub(super) counters: RouteCounters,
    /// The epoch of the channels; none where none is known.
    pub(super) epoch: Option<u64>,
    /// Shards of the channels, of all of which it knows.
    pub(super) shards: u64,
    /// Shards of the channels that it owns.
    pub(super) owned: u64,
    /// Nodes that stand by for what it owns: the fewest of any shard.
    pub(super) standbys: Option<u64>,
    /// Shards that another node has all of, and goes on with should this one die.
    pub(super) followed: u64,
    /// How often one that followed had something else.
    pub(super) resyncs: u64,
}

impl RouteNumbers {
    /// What two threads of a node know together: an edge has one, a node for channels one
    /// for each shard.
    pub(super) fn with(self, other: Self) -> Self {
        let mut counters = self.counters;
        counters.add(other.counters);
        Self {
            open: self.open + other.open,
            lost: self.lost + other.lost,
            counters,
            epoch: self.epoch.max(other.epoch),
            shards: self.shards + other.shards,
            owned: self.owned + other.owned,
            standbys: match (self.standbys, other.standbys) {
                (Some(one), Some(another)) => Some(one.min(another)),
                (one, another) => one.or(another),
            },
            followed: self.followed + other.followed,
            resyncs: self.resyncs + other.resyncs,
        }
    }
}

/// Where a loop leaves its numbers.
#[derive(Debug)]
pub(super) struct Report {
    asked: AtomicU64,
    answered: Mutex<(u64, Numbers)>,
    has_answered: Condvar,
    waker: Waker,
}

impl Report {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            asked: AtomicU64::new(0),
            answered: Mutex::default(),
            has_answered: Condvar::new(),
            waker,
        }
    }

    /// Asks the loop. The answer is [`wait`](Self::wait)ed for.
    pub(super) fn ask(&self) -> u64 {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.waker.wake();
        number
    }

    /// Waits for the answer to a question. `None` when there is none in time:
    /// the loop hangs, or has ended.
    pub(super) fn wait(&self, number: u64, give_up: Instant) -> Option<Numbers> {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        while answered.0 < number {
            let left = give_up.checked_duration_since(Instant::now())?;
            answered = self
                .has_answered
                .wait_timeout(answered, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Some(answered.1)
    }

    /// For the loop, every turn: the last question.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// For the loop, every turn: answers the questions up to `number`, unless
    /// that was done.
    pub(super) fn answer(
        &self,
        number: u64,
        answered: &mut u64,
        numbers: impl FnOnce() -> Numbers,
    ) {
        if number == *answered {
            return;
        }
        *answered = number;
        let numbers = numbers();
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = (number, numbers);
        self.has_answered.notify_all();
    }
}
