//! Where the single plays of a search are played: on threads of this machine, or by
//! whoever else implements [`Runner`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lagometer_lab::{LaneRun, OwnLane, Resolved, RunOptions, RunnableLane, play};

use crate::evaluator::Network;
use crate::tuning::Stopped;

/// Plays for each thread until what was found is handed back.
const PLAYS_OF_A_THREAD: usize = 16;

/// A lane that is to be played on a network.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The network's place among those of the search.
    pub network: usize,
    /// The lane, as the lab plays it.
    pub lane: RunnableLane,
    /// The same lane as an experiment writes it, by which another machine knows it.
    pub written: OwnLane,
}

/// A setup under a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinglePlay {
    /// The setup's place among those that are played with it.
    pub setup: usize,
    /// The seed.
    pub seed: u64,
}

/// Plays lanes under seeds. What a play finds is a function of its network, lane and seed
/// alone, wherever it is played.
pub trait Runner {
    /// The most plays that are asked for at once. All of them are played before the next
    /// are asked for.
    fn at_once(&self) -> usize;

    /// Plays each of `plays` to its end and hands it to `found`, from any thread and in any
    /// order, by its place among them.
    ///
    /// # Errors
    ///
    /// [`Stopped`] where it was to stop, or cannot go on; what was played by then was
    /// handed over.
    fn play(
        &mut self,
        networks: &[Network],
        setups: &[Setup],
        plays: &[SinglePlay],
        found: &(dyn Fn(usize, LaneRun) + Sync),
    ) -> Result<(), Stopped>;
}

/// Threads of this machine.
pub struct Threads<'a> {
    /// How many; at least one. They change nothing of what is found.
    pub threads: usize,
    /// When it becomes true, play ends as soon as the plays under way do.
    pub stop: &'a AtomicBool,
    /// Is called, from any thread, with virtual time that has been played.
    pub progress: &'a (dyn Fn(Duration) + Sync),
}

impl Runner for Threads<'_> {
    fn at_once(&self) -> usize {
        PLAYS_OF_A_THREAD * self.threads.max(1)
    }

    /// Each thread takes the next play, until all are played or play is to stop.
    fn play(
        &mut self,
        networks: &[Network],
        setups: &[Setup],
        plays: &[SinglePlay],
        found: &(dyn Fn(usize, LaneRun) + Sync),
    ) -> Result<(), Stopped> {
        let resolved: Vec<Resolved> = setups.iter().map(|it| it.resolved(networks)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while !self.stop.load(Ordering::Relaxed) {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(&SinglePlay { setup, seed }) = plays.get(place) else {
                    return;
                };
                let resolved = &resolved[setup];
                let run = play_whole(resolved, seed);
                (self.progress)(resolved.plan.duration);
                found(place, run);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        Ok(())
    }
}

impl Setup {
    /// The experiment on its network, with this lane alone.
    fn resolved(&self, networks: &[Network]) -> Resolved {
        Resolved {
            lanes: vec![self.lane.clone()],
            unrunnable: Vec::new(),
            ..networks[self.network].resolved.clone()
        }
    }
}

/// Plays the one lane under a seed. It is not stopped on the way: what a part of it found
/// would be kept for what all of it does.
fn play_whole(resolved: &Resolved, seed: u64) -> LaneRun {
    let options = RunOptions {
        seeds: vec![seed],
        threads: 1,
    };
    let runs = play(resolved, &options, &|_| {}, &AtomicBool::new(false));
    let lanes = runs.into_iter().flat_map(|run| run.lanes);
    let nothing = || LaneRun::Panicked("nothing was played".to_owned());
    lanes.into_iter().next().unwrap_or_else(nothing)
}
