//! What schedules come to, and whether all is as it should be.

use std::collections::BTreeSet;

use lagometer_gateway::core::{Peer, ShardId};
use lagometer_gateway::nodes::Standing;

use crate::faults;
use crate::peers::ROOMS;
use crate::simulation::{Part, QUIET, RECOVERY, Simulation};

/// What a schedule came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) updates: u64,
    pub(crate) takeovers: u64,
    /// How often a node handed a shard over to another that had fewer.
    pub(crate) yielded: u64,
    /// … and kept it, for the other did not take it.
    pub(crate) kept: u64,
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
    /// How often the server came back and was given what it had.
    pub(crate) recoveries: u64,
    /// How often a player was not sent something, and got a whole state for it.
    pub(crate) missed: u64,
    /// How often a player saw an entity handed over from one cell to another, and how often
    /// not from where it had been handed to.
    pub(crate) handovers: u64,
    pub(crate) torn: u64,
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
        self.yielded += other.yielded;
        self.kept += other.kept;
        self.rests += other.rests;
        self.planned_ends += other.planned_ends;
        self.followed_deaths += other.followed_deaths;
        self.followed_resumed += other.followed_resumed;
        self.deaths += other.deaths;
        self.resyncs += other.resyncs;
        self.resumed += other.resumed;
        self.recoveries += other.recoveries;
        self.missed += other.missed;
        self.handovers += other.handovers;
        self.torn += other.torn;
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
        for shard in self.shards.all() {
            if let Some(wrong) = self.what_is_wrong_with(shard) {
                return Some(format!("{shard}: {wrong}"));
            }
        }
        for slot in &self.slots {
            if let Some(Part::Edge(edge)) = &slot.part
                && !edge.0.is_joined()
            {
                return Some(format!("edge {} is not joined", slot.id));
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
            // GLOBAL, and the rooms that the server knows.
            let channels = [0].into_iter().chain(self.peers[0].rooms.keys().copied());
            for channel in channels.filter(|_| peer.kind == Peer::Client) {
                let view = peer.views.get(&channel);
                let seen = view.and_then(|view| view.seen.last().copied());
                let (of, seen) = (view.map_or(0, |view| view.seen.len()), seen.unwrap_or(0));
                let misses = view.is_none_or(|view| view.misses);
                if seen < wanted || misses || of as u32 <= seen {
                    return Some(format!(
                        "peer {number} saw {of} to {seen} of channel {channel}, not {wanted}"
                    ));
                }
            }
        }
        if let Some(there) = self.peers[0].world.unfinished(!is_quiet) {
            return Some(format!("there are {there}"));
        }
        for (number, player) in self.peers.iter().enumerate().skip(1) {
            // While they walk no two are at one place.
            let wrong = player.sees_wrongly(&self.peers[0]).filter(|_| is_quiet);
            if let Some(wrong) = wrong {
                return Some(format!("player {number} sees {wrong}"));
            }
        }
        if !self.is_balanced() {
            return Some("the shards are not shared out".to_owned());
        }
        let rooms: BTreeSet<&String> = self.peers[0].rooms.values().collect();
        (rooms.len() < ROOMS).then(|| format!("there are these rooms: {rooms:?}"))
    }

    /// Likewise, of who owns a shard, and which edges know.
    fn what_is_wrong_with(&self, shard: ShardId) -> Option<String> {
        let mut owners = Vec::new();
        for slot in &self.slots {
            if let Some(Part::Channels(channels)) = &slot.part
                && let node = &channels.shards[shard.index()].node
                && let Standing::Owns(epoch) = node.standing(self.local(slot))
            {
                owners.push((epoch, slot.id));
            }
        }
        let &[(epoch, owner)] = &owners[..] else {
            return Some(format!("the channels have these owners: {owners:?}"));
        };
        if self.owners.get(&(shard, epoch)) != Some(&owner) {
            return Some(format!("epoch {epoch} was another node's"));
        }
        if shard != ShardId::HOME {
            return None;
        }
        for slot in &self.slots {
            if let Some(Part::Edge(edge)) = &slot.part
                && edge.0.epoch() != Some(epoch)
            {
                let of = edge.0.epoch();
                return Some(format!("edge {} is of epoch {of:?}, not {epoch}", slot.id));
            }
        }
        None
    }

    /// Whether the shards are shared out: no node that lives has two more than another.
    fn is_balanced(&self) -> bool {
        let loads = self.slots.iter().filter_map(|slot| match &slot.part {
            Some(Part::Channels(channels)) => Some(channels.load.owned()),
            _ => None,
        });
        let loads: Vec<u16> = loads.collect();
        let (least, most) = (loads.iter().min(), loads.iter().max());
        least.zip(most).is_none_or(|(least, most)| most - least < 2)
    }
}
