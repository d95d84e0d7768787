//! What several processes found of one world, as if one had found it.

use std::ops::Add;
use std::time::Duration;

use lagometer_stats::Distribution;

use crate::measure::outcome::{Moment, Outcome};
use crate::player::PlayerCounts;

impl Outcome {
    /// Adds what another process found of another part of the same world in
    /// the same time. Distributions are merged exactly; the timeline and who
    /// has which character stay this one's.
    pub fn absorb(&mut self, other: Self) {
        self.players += other.players;
        self.lost.extend(other.lost);
        self.servers_lost += other.servers_lost;
        self.returned.players += other.returned.players;
        self.returned.servers += other.returned.servers;
        for (mine, theirs) in self.age.iter_mut().zip(&other.age) {
            merge(mine, theirs);
        }
        self.states += other.states;
        self.missing += other.missing;
        self.stale += other.stale;
        merge(&mut self.first_state, &other.first_state);
        for (player, updates) in other.updates {
            *self.updates.entry(player).or_default() += updates;
        }
        self.worst_gap_p99 = self.worst_gap_p99.max(other.worst_gap_p99);
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.right_views.0 += other.right_views.0;
        self.right_views.1 += other.right_views.1;
        self.server += other.server;
        merge(&mut self.frame_work, &other.frame_work);
        merge(&mut self.frame_late, &other.frame_late);
        self.frames_missed += other.frames_missed;
        self.sum += other.sum;
        self.input_digest.extend(other.input_digest);
        self.generator_cpu = sum(self.generator_cpu, other.generator_cpu);
        self.processes.extend(other.processes);
        self.wire.0 += other.wire.0;
        self.wire.1 += other.wire.1;
        if let (Some(mine), Some(theirs)) = (&mut self.handovers, &other.handovers) {
            merge(&mut mine.gaps, &theirs.gaps);
        }
        self.partial |= other.partial;
    }
}

pub(crate) fn merge(mine: &mut Distribution, theirs: &Distribution) {
    // No run has 2^62 of anything.
    let _ = mine.merge(theirs);
}

/// Both together, as far as they are known.
pub(crate) fn sum<T: Add<Output = T>>(mine: Option<T>, theirs: Option<T>) -> Option<T> {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => Some(mine + theirs),
        (mine, theirs) => mine.or(theirs),
    }
}

impl std::ops::AddAssign for PlayerCounts {
    fn add_assign(&mut self, other: Self) {
        self.updates += other.updates;
        self.states += other.states;
        self.moves += other.moves;
        self.answers += other.answers;
        self.tier_changes += other.tier_changes;
        self.bad_updates += other.bad_updates;
        self.refused += other.refused;
    }
}

impl Moment {
    /// Says how old what players saw was.
    pub(crate) fn set_ages(&mut self, ages: &Distribution) {
        let [p50, p99] = ages.at_per_mille([500, 990]);
        let known = |age: Duration| (!ages.is_empty()).then_some(age.as_secs_f64() * 1e3);
        self.world.age_p50_ms = known(p50);
        self.world.age_p99_ms = known(p99);
    }
}
