//! How nodes end: in order, or not.

use lagometer_gateway::core::ShardId;
use lagometer_gateway::nodes::Standing;
use lagometer_units::Time;

use crate::bus::MS;

use super::{NodeSlot, Part, Simulation, connects_after};

/// A node that is asked to end is gone after this: the server's loop waits as long.
const ENDS_WITHIN: u64 = 4_000 * MS;

impl Simulation {
    /// How many shards a node owns.
    pub(super) fn owned_by(&self, slot: &NodeSlot) -> u64 {
        let local = self.local(slot);
        match &slot.part {
            Some(Part::Channels(channels)) => {
                let nodes = channels.shards.iter().map(|shard| &shard.node);
                nodes
                    .filter(|node| matches!(node.standing(local), Standing::Owns(_)))
                    .count() as u64
            }
            _ => 0,
        }
    }

    /// The places of nodes that stand by and could take over.
    pub(super) fn standbys(&self) -> Vec<usize> {
        let stands_by = |slot: &NodeSlot| match &slot.part {
            Some(Part::Channels(channels)) => {
                let local = self.local(slot);
                let mut nodes = channels.shards.iter().map(|shard| &shard.node);
                slot.ending.is_none()
                    && nodes.all(|node| {
                        node.standing(local) == Standing::StandsBy && node.is_ready(local)
                    })
            }
            _ => false,
        };
        (0..self.slots.len())
            .filter(|&node| stands_by(&self.slots[node]))
            .collect()
    }

    /// A node for channels is asked to end, as by SIGTERM.
    pub(super) fn end(&mut self, node: usize, back_after: u64) {
        let slot = &mut self.slots[node];
        let local = Time::from_nanos(self.now + slot.ahead);
        if let Some(Part::Channels(channels)) = &mut slot.part
            && slot.ending.is_none()
        {
            let mut owns = false;
            for shard in &mut channels.shards {
                owns |= shard.node.standing(local) != Standing::StandsBy;
                shard.node.end(local);
                shard.work(local);
            }
            let most = if owns { ENDS_WITHIN } else { 0 };
            slot.ending = Some((self.now + most, back_after));
            let id = slot.id;
            self.send(node, id);
        }
        self.end_ended();
    }

    /// Nodes that have ended are no more, and others are to start in their places.
    pub(super) fn end_ended(&mut self) {
        for node in 0..self.slots.len() {
            let slot = &self.slots[node];
            let Some((until, back_after)) = slot.ending else {
                continue;
            };
            let is_over = match &slot.part {
                Some(Part::Channels(channels)) => {
                    channels.shards.iter().all(|shard| shard.node.is_over())
                }
                _ => true,
            };
            if is_over || until <= self.now {
                self.kill(node, back_after);
            }
        }
    }

    /// An owner dies; only if others follow all that it owns, where that is asked for.
    pub(super) fn kill_owner(&mut self, back_after: u64, only_followed: bool) {
        let owner = self.slots.iter().position(|slot| self.owned_by(slot) > 0);
        let Some(node) = owner else {
            return;
        };
        let slot = &self.slots[node];
        let local = self.local(slot);
        let Some(Part::Channels(channels)) = &slot.part else {
            return;
        };
        let nodes = self.shards.all().zip(&channels.shards);
        let died = nodes.filter_map(|(id, shard)| {
            let owns = matches!(shard.node.standing(local), Standing::Owns(_));
            owns.then(|| (id, shard.node.is_followed()))
        });
        let died: Vec<(ShardId, bool)> = died.collect();
        if only_followed && died.iter().any(|(_, is_followed)| !is_followed) {
            return;
        }
        // What follows a shard that waits for it may be this one, as the owner of others: then
        // both have died at once.
        self.outcome.followed_deaths -= self.died_followed.len() as u64;
        self.died_followed.clear();
        for (shard, is_followed) in died {
            if is_followed {
                self.died_followed.insert(shard);
                self.outcome.followed_deaths += 1;
            } else {
                self.died_followed.remove(&shard);
                self.outcome.deaths += 1;
            }
        }
        self.kill(node, back_after);
    }

    pub(super) fn kill(&mut self, node: usize, back_after: u64) {
        let slot = &mut self.slots[node];
        slot.ending = None;
        if slot.part.is_none() {
            return;
        }
        Self::count(&mut self.outcome, slot.part.take());
        self.bus.remove(slot.id);
        slot.inbox.clear();
        slot.paused_until = 0;
        slot.starts_at = Some(self.now + back_after);
        for peer in 0..self.peers.len() {
            if self.peers[peer].at.is_some_and(|(edge, _)| edge == node) {
                self.peers[peer].hang_up();
                self.connects_at[peer] = self.now + connects_after(&self.peers[peer]);
            }
        }
    }
}
