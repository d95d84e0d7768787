//! How nodes end: in order, or not.

use lagometer_gateway::nodes::Standing;
use lagometer_units::Time;

use crate::bus::MS;
use crate::turns::work;

use super::{CONNECT_AFTER, NodeSlot, Part, Simulation};

/// A node that is asked to end is gone after this: the server's loop waits as long.
const ENDS_WITHIN: u64 = 4_000 * MS;

impl Simulation {
    pub(super) fn is_owner(&self, slot: &NodeSlot) -> bool {
        let local = self.local(slot);
        match &slot.part {
            Some(Part::Channels(channels)) => {
                matches!(channels.0.standing(local), Standing::Owns(_))
            }
            _ => false,
        }
    }

    /// The places of nodes that stand by and could take over.
    pub(super) fn standbys(&self) -> Vec<usize> {
        let stands_by = |slot: &NodeSlot| match &slot.part {
            Some(Part::Channels(channels)) => {
                let (node, local) = (&channels.0, self.local(slot));
                slot.ending.is_none()
                    && node.standing(local) == Standing::StandsBy
                    && node.is_ready(local)
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
            let owns = channels.0.standing(local) != Standing::StandsBy;
            channels.0.end(local);
            work(local, &mut channels.0, &mut channels.1);
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
                Some(Part::Channels(channels)) => channels.0.is_over(),
                _ => true,
            };
            if is_over || until <= self.now {
                self.kill(node, back_after);
            }
        }
    }

    /// The owner dies; only if another node follows it, where that is asked for.
    pub(super) fn kill_owner(&mut self, back_after: u64, only_followed: bool) {
        let Some(node) = self.slots.iter().position(|slot| self.is_owner(slot)) else {
            return;
        };
        let is_followed = match &self.slots[node].part {
            Some(Part::Channels(channels)) => channels.0.is_followed(),
            _ => false,
        };
        if is_followed {
            self.died_followed = true;
            self.outcome.followed_deaths += 1;
        } else if only_followed {
            return;
        } else {
            self.died_followed = false;
            self.outcome.deaths += 1;
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
                self.connects_at[peer] = self.now + CONNECT_AFTER;
            }
        }
    }
}
