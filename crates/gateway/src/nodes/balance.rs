//! How the shards are shared out among the nodes for channels: a node that owns more than
//! another which stands by hands one over, as if it ended.
//!
//! Each shard has a lease of its own, so nothing is decided in common. A node says to the
//! owners that it stands by for how many shards its process owns; an owner whose process has
//! two more than that hands over, one shard at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use lagometer_units::Time;

use super::channels::ChannelsNode;
use super::lease::Standing;

/// A process hands no shard over within so long of the last: loads that others said before
/// that are of the past.
const PAUSE: Duration = Duration::from_millis(1500);

/// What the shards of one process know of each other.
#[derive(Debug, Default)]
pub struct ShardLoad {
    owned: AtomicU16,
    is_yielding: AtomicBool,
    /// When the last was handed over, on the process's clock.
    yielded_at_ns: AtomicU64,
}

impl ShardLoad {
    /// How many shards the process owns.
    #[must_use]
    pub fn owned(&self) -> u16 {
        self.owned.load(Ordering::Relaxed)
    }

    /// Whether a shard may be handed over now. If so, no other may until that is over.
    fn try_yield(&self, now: Time) -> bool {
        let last = Time::from_nanos(self.yielded_at_ns.load(Ordering::Relaxed));
        now.since(last) >= PAUSE && !self.is_yielding.swap(true, Ordering::Relaxed)
    }

    fn yielded(&self, now: Time) {
        self.yielded_at_ns.store(now.as_nanos(), Ordering::Relaxed);
        self.is_yielding.store(false, Ordering::Relaxed);
    }
}

/// One shard's part in that.
#[derive(Debug)]
pub struct ShardShare {
    load: Arc<ShardLoad>,
    /// It counts as one that is owned.
    is_counted: bool,
    is_yielding: bool,
}

impl ShardShare {
    /// Of a shard that the process does not own.
    #[must_use]
    pub fn new(load: Arc<ShardLoad>) -> Self {
        Self {
            load,
            is_counted: false,
            is_yielding: false,
        }
    }

    /// For the shard's node, every turn: hands the shard over where another process that
    /// stands by has fewer, and has the node stand by afterwards. Returns whether it begins
    /// to hand it over.
    pub fn balance(&mut self, now: Time, node: &mut ChannelsNode) -> bool {
        let owns = node.standing(now) != Standing::StandsBy;
        if owns != self.is_counted {
            self.is_counted = owns;
            let owned = &self.load.owned;
            if owns {
                owned.fetch_add(1, Ordering::Relaxed);
            } else {
                owned.fetch_sub(1, Ordering::Relaxed);
            }
        }
        node.set_load(self.load.owned());
        if self.is_yielding {
            if node.is_yielding() {
                if !node.is_over() {
                    return false;
                }
                node.stand_by_again(now);
            }
            self.load.yielded(now);
            self.is_yielding = false;
            return false;
        }
        let Some(to) = node.underloaded(now).filter(|_| self.load.try_yield(now)) else {
            return false;
        };
        self.is_yielding = true;
        node.yield_to(now, to);
        true
    }
}
