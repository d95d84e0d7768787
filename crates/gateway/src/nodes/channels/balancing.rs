//! How an owner finds that another node should have its shard, and stands by afterwards.

use std::time::Duration;

use lagometer_units::Time;

use super::super::bus::{NodeId, Note};
use super::super::lease::Standing;
use super::super::sides::Sides;
use super::ChannelsNode;

/// An owner keeps a shard for at least so long, and doubles that up to so often each time that
/// no other node takes it.
const KEEPS_FOR: Duration = Duration::from_secs(2);
const DOUBLES_AT_MOST: u32 = 8;

/// So long it is tried to hand one over: peers see nothing of it meanwhile.
const YIELDS_WITHIN: Duration = Duration::from_secs(1);

/// A process that owns so many shards fewer is to have one.
const DIFFERENCE: u16 = 2;

/// A node that stands by, as it said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standby {
    /// When it said so last.
    pub(super) at: Time,
    /// How many shards its process owns.
    pub(super) load: u16,
}

impl ChannelsNode {
    /// How many shards this node's process owns. It is said to owners that the node stands
    /// by for.
    pub fn set_load(&mut self, shards: u16) {
        self.load = shards;
    }

    /// The node that should have the channels: one that stands by and whose process owns at
    /// least two shards fewer. Not soon after the owner began.
    #[must_use]
    pub fn underloaded(&self, now: Time) -> Option<NodeId> {
        let is_settled = matches!(self.standing(now), Standing::Owns(_))
            && !self.is_ending
            && !self.reclaims
            && now.since(self.owns_since) >= KEEPS_FOR * (1 << self.refusals);
        if !is_settled {
            return None;
        }
        let standbys = self.in_touch(now).filter_map(|node| {
            let standby = self.standbys.get(&node)?;
            Some((standby.load, node))
        });
        let (load, node) = standbys.min()?;
        (load + DIFFERENCE <= self.load).then_some(node)
    }

    /// Hands the channels over to a node that stands by, as if this one
    /// [ended](Self::end). If that does not take them, this node keeps them. Once it
    /// [is over](Self::is_over), the node is to [stand by](Self::stand_by_again).
    pub fn yield_to(&mut self, now: Time, to: NodeId) {
        self.yields_to = Some(to);
        self.is_ending = true;
        self.leave(now);
    }

    /// Whether it is about to hand the channels over, and did not end.
    #[must_use]
    pub fn is_yielding(&self) -> bool {
        self.yields_to.is_some()
    }

    /// How long it is tried to hand the channels over.
    pub(super) fn handover_time(&self) -> Duration {
        match self.yields_to {
            Some(_) => YIELDS_WITHIN,
            None => self.times.handover,
        }
    }

    /// No other node has taken the channels, as far as this one knows. One may have without
    /// its knowledge, and go on with them should it come to own them: so this one does
    /// nothing before it has another epoch, which such a node's channels are not of.
    pub(super) fn keep(&mut self, now: Time, why: &'static str) {
        self.notes.push_back(Note::NotYielded(why));
        self.outgoing = None;
        self.yields_to = None;
        self.is_ending = false;
        self.reclaims = true;
        self.refusals = (self.refusals + 1).min(DOUBLES_AT_MOST);
        self.drive_reclaiming(now);
    }

    /// The channels are another's, handed over or not. A node that yielded and did not give
    /// up the lease itself stands by, as one that has lost it.
    pub(super) fn yield_no_more(&mut self, now: Time) {
        if std::mem::take(&mut self.reclaims) && self.is_ending {
            self.lease.end(now, None);
        }
        if self.outgoing.is_some() && self.yields_to.take().is_some() {
            self.is_ending = false;
        }
    }

    /// Asks for another epoch.
    pub(super) fn drive_reclaiming(&mut self, now: Time) {
        if let (true, Standing::Rests(epoch) | Standing::Owns(epoch)) =
            (self.reclaims, self.standing)
        {
            self.lease.raise_once_idle(now, epoch);
        }
    }

    /// This node goes on with its own channels in another epoch.
    pub(super) fn reclaim(&mut self, now: Time, epoch: u64) {
        let saved = self.sides.save(now);
        let Some(sides) = Sides::restore(now, self.times, saved) else {
            return;
        };
        self.sides.replace(sides);
        self.announce_at = now;
        self.owns_since = now;
        (self.follow_at, self.follow_pause) = (now, self.times.renew);
        self.notes.push_back(Note::Owner(epoch));
        self.notes.push_back(Note::GoesOn);
        self.announce_to_edges(epoch);
        if self.is_ending {
            self.leave(now);
        }
    }

    /// A node that has handed its channels over stands by from now on, as one does that has
    /// lost its lease.
    pub fn stand_by_again(&mut self, now: Time) {
        self.lease = self.lease.begin_anew(now);
        (self.is_ending, self.yields_to, self.heir) = (false, None, None);
    }
}
