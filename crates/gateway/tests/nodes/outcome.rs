//! What schedules come to, and whether all is as it should be.

use lagometer_gateway::core::Peer;
use lagometer_gateway::nodes::Standing;

use crate::faults;
use crate::simulation::{Part, QUIET, RECOVERY, Simulation};

/// What a schedule came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) updates: u64,
    pub(crate) takeovers: u64,
    pub(crate) rests: u64,
    /// How often an owner was asked to end.
    pub(crate) planned_ends: u64,
    /// How often an owner died that another node followed, and that none did.
    pub(crate) followed_deaths: u64,
    /// … and the one that followed went on.
    pub(crate) followed_resumed: u64,
    pub(crate) deaths: u64,
    /// How often what followed had something else than the owner.
    pub(crate) resyncs: u64,
    /// How often a node went on with another's channels.
    pub(crate) resumed: u64,
    /// How often a player was not sent something, and got a whole state for it.
    pub(crate) missed: u64,
    /// The longest that a player who stayed saw nothing new, in milliseconds.
    pub(crate) longest_without_news_ms: u64,
    pub(crate) routes_lost: u64,
    pub(crate) reconnections: u64,
    pub(crate) resent: u64,
    pub(crate) gaps: u64,
    pub(crate) windows_left_out: u64,
    pub(crate) frames_lost: u64,
    /// The longest that it took after the last fault until all was right, in milliseconds.
    pub(crate) recovered_ms: u64,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.updates += other.updates;
        self.takeovers += other.takeovers;
        self.rests += other.rests;
        self.planned_ends += other.planned_ends;
        self.followed_deaths += other.followed_deaths;
        self.followed_resumed += other.followed_resumed;
        self.deaths += other.deaths;
        self.resyncs += other.resyncs;
        self.resumed += other.resumed;
        self.missed += other.missed;
        let longest = self.longest_without_news_ms;
        self.longest_without_news_ms = longest.max(other.longest_without_news_ms);
        self.routes_lost += other.routes_lost;
        self.reconnections += other.reconnections;
        self.resent += other.resent;
        self.gaps += other.gaps;
        self.windows_left_out += other.windows_left_out;
        self.frames_lost += other.frames_lost;
        self.recovered_ms = self.recovered_ms.max(other.recovered_ms);
    }
}

impl Simulation {
    /// What is not as it should be, if anything is not.
    pub(crate) fn what_is_wrong(&self) -> Option<String> {
        let mut owners = Vec::new();
        for slot in &self.slots {
            if let Some(Part::Channels(channels)) = &slot.part
                && let Standing::Owns(epoch) = channels.0.standing(self.local(slot))
            {
                owners.push((epoch, slot.id));
            }
        }
        let &[(epoch, owner)] = &owners[..] else {
            return Some(format!("the channels have these owners: {owners:?}"));
        };
        if self.owners.get(&epoch) != Some(&owner) {
            return Some(format!("epoch {epoch} was another node's"));
        }
        for slot in &self.slots {
            if let Some(Part::Edge(edge)) = &slot.part
                && (!edge.0.is_joined() || edge.0.epoch() != Some(epoch))
            {
                let of = edge.0.epoch();
                return Some(format!("edge {} is of epoch {of:?}, not {epoch}", slot.id));
            }
        }
        // A change is on its way for less than this.
        let old_enough = (self.truth + 1).saturating_sub(20);
        let is_quiet = self.now >= faults::UNTIL + RECOVERY + QUIET;
        let wanted = if is_quiet { self.truth } else { old_enough };
        for (number, peer) in self.peers.iter().enumerate() {
            if !peer.in_game {
                return Some(format!("peer {number} is not in the game"));
            }
            if peer.kind == Peer::Client {
                let seen = peer.seen.last().copied().unwrap_or(0);
                let has_all = peer.seen.len() as u32 > seen;
                if seen < wanted || peer.misses || !has_all {
                    let of = peer.seen.len();
                    return Some(format!("peer {number} saw {of} to {seen}, not {wanted}"));
                }
            }
        }
        None
    }
}
