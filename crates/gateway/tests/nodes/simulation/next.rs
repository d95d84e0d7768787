//! When something happens next.

use lagometer_gateway::core::ConnectionManager;

use crate::bus::MS;
use crate::faults;

use super::{NodeSlot, Part, RECOVERY, Simulation};

impl Simulation {
    /// When anything happens next.
    pub(super) fn next(&self) -> u64 {
        let mut next = [
            self.bus.next(),
            self.schedule.front().map(|(at, _)| *at),
            (self.now < faults::UNTIL + RECOVERY).then_some(self.update_at),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(u64::MAX);
        for slot in &self.slots {
            next = next.min(slot.starts_at.unwrap_or(u64::MAX));
            next = next.min(slot.ending.map_or(u64::MAX, |(until, _)| until));
            next = next.min(slot.wakes_at(self.now));
        }
        for (peer, &at) in self.peers.iter().zip(&self.connects_at) {
            if peer.at.is_none() {
                next = next.min(at);
            }
            next = next.min(peer.next().unwrap_or(u64::MAX));
        }
        // Time passes, whatever somebody wants at once.
        next.max(self.now + MS / 10)
    }

    /// When a node has something to do, if nothing comes.
    pub(super) fn due(&self, slot: &NodeSlot) -> u64 {
        let local = self.local(slot);
        let due = match &slot.part {
            None => None,
            Some(Part::Edge(edge)) => {
                let sides = edge.1.iter().filter_map(ConnectionManager::next_deadline);
                sides.chain(edge.0.next_deadline(local)).min()
            }
            Some(Part::Channels(channels)) => {
                let shards = channels.shards.iter();
                shards.filter_map(|shard| shard.next_deadline(local)).min()
            }
        };
        due.map_or(u64::MAX, |due| due.as_nanos().saturating_sub(slot.ahead))
    }
}

impl NodeSlot {
    /// When it wakes: once something comes or is due, and it is not paused.
    pub(super) fn wakes_at(&self, now: u64) -> u64 {
        if self.part.is_none() {
            return u64::MAX;
        }
        let wanted = if self.inbox.is_empty() { self.due } else { now };
        wanted.max(self.paused_until)
    }
}
