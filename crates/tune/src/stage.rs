//! Plays candidates in the lab, on several threads, and remembers what it played.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lagometer_lab::{Resolved, RunOptions, RunnableLane, play, seed_figures};

use crate::aim::Aim;
use crate::lane::TunableLane;
use crate::memory::Memory;
use crate::search::Play;
use crate::space::Candidate;
use crate::tuning::Stopped;

/// So many plays for each thread until what was found is offered for keeping.
const CHUNK: usize = 16;

/// A network and its share of the players.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Its share, above zero.
    pub weight: f64,
    /// The experiment on it; its lanes are not looked at.
    pub resolved: Resolved,
}

/// Plays candidates.
pub struct Stage<'a> {
    /// The networks there are.
    pub networks: &'a [Network],
    /// Which figures are kept of a play.
    pub aim: &'a Aim,
    /// Threads that play; at least one. They change nothing of what is found.
    pub threads: usize,
    /// What was played so far.
    pub memory: Memory,
    /// When it becomes true, play ends as soon as the plays under way do.
    pub stop: &'a AtomicBool,
    /// Is called, from any thread, with virtual time that has been played.
    pub progress: &'a (dyn Fn(Duration) + Sync),
    /// Is shown what was played, every now and then, to keep it.
    pub keep: &'a mut dyn FnMut(&Memory),
}

/// One lane, one network, one seed.
struct Job {
    key: String,
    resolved: usize,
    seed: u64,
}

/// One thing that is asked of a stage.
pub(crate) struct Asked<'a> {
    pub(crate) lane: &'a TunableLane,
    pub(crate) candidate: &'a Candidate,
    pub(crate) network: usize,
    pub(crate) seed: u64,
}

impl Stage<'_> {
    /// The figures of everything that is asked, in order.
    pub(crate) fn play(&mut self, asked: &[Asked<'_>]) -> Result<Vec<Vec<f64>>, Stopped> {
        let wanted = self.aim.metrics().count();
        let keys: Vec<String> = asked.iter().map(|ask| self.key(ask)).collect();
        for (asked, keys) in asked
            .chunks(CHUNK * self.threads.max(1))
            .zip(keys.chunks(CHUNK * self.threads.max(1)))
        {
            self.play_chunk(asked, keys, wanted)?;
        }
        let found = keys.iter().map(|key| self.memory.figures(key, wanted));
        Ok(found
            .map(|found| found.cloned().unwrap_or_default())
            .collect())
    }

    fn key(&self, ask: &Asked<'_>) -> String {
        let network = &self.networks[ask.network].name;
        let key = ask.lane.space().key(ask.candidate);
        format!("{} {network} {} {key}", ask.seed, ask.lane.name())
    }

    fn play_chunk(
        &mut self,
        asked: &[Asked<'_>],
        keys: &[String],
        wanted: usize,
    ) -> Result<(), Stopped> {
        let mut resolved: Vec<Resolved> = Vec::new();
        let mut places: BTreeMap<(usize, String), usize> = BTreeMap::new();
        let mut jobs: Vec<Job> = Vec::new();
        for (ask, key) in asked.iter().zip(keys) {
            let is_asked = jobs.iter().any(|job| job.key == *key);
            if is_asked || self.memory.figures(key, wanted).is_some() {
                continue;
            }
            let Some(lane) = runnable(self.networks, ask) else {
                self.memory.remember(key.clone(), self.aim.worst());
                continue;
            };
            let who = (
                ask.network,
                format!(
                    "{} {}",
                    ask.lane.name(),
                    ask.lane.space().key(ask.candidate)
                ),
            );
            let place = *places.entry(who).or_insert_with(|| {
                let mut of_network = self.networks[ask.network].resolved.clone();
                of_network.lanes = vec![lane];
                of_network.unrunnable = Vec::new();
                resolved.push(of_network);
                resolved.len() - 1
            });
            jobs.push(Job {
                key: key.clone(),
                resolved: place,
                seed: ask.seed,
            });
        }
        let known = asked.len() - jobs.len();
        if let (Some(ask), true) = (asked.first(), known > 0) {
            let each = self.networks[ask.network].resolved.plan.duration;
            (self.progress)(each.saturating_mul(known as u32));
        }
        if jobs.is_empty() {
            return Ok(());
        }
        for (key, figures) in self.play_jobs(&resolved, &jobs) {
            self.memory.remember(key, figures);
        }
        (self.keep)(&self.memory);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        Ok(())
    }

    /// Plays jobs on all threads, each taking the next, until all are played or play
    /// is to stop.
    fn play_jobs(&self, resolved: &[Resolved], jobs: &[Job]) -> Vec<(String, Vec<f64>)> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let work = || {
            while !self.stop.load(Ordering::Relaxed) {
                let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                let resolved = &resolved[job.resolved];
                let figures = figures_of(self.aim, resolved, job.seed);
                (self.progress)(resolved.plan.duration);
                found
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((job.key.clone(), figures));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plays the one lane under a seed.
fn figures_of(aim: &Aim, resolved: &Resolved, seed: u64) -> Vec<f64> {
    let options = RunOptions {
        seeds: vec![seed],
        threads: 1,
    };
    let runs = play(resolved, &options, &|_| {}, &AtomicBool::new(false));
    let run = runs.first().and_then(|run| run.lanes.first());
    let figures = run.and_then(|run| seed_figures(resolved, seed, run));
    figures.map_or_else(|| aim.worst(), |figures| aim.figures(&figures))
}

/// The candidate as a lane of the lab.
fn runnable(networks: &[Network], ask: &Asked<'_>) -> Option<RunnableLane> {
    let resolved = &networks[ask.network].resolved;
    runnable_lane(resolved, ask.lane, ask.candidate, ask.lane.name())
}

/// The candidate as a lane called `name`.
pub(crate) fn runnable_lane(
    resolved: &Resolved,
    lane: &TunableLane,
    candidate: &Candidate,
    name: &str,
) -> Option<RunnableLane> {
    let workload = &resolved.plan.workload;
    let sized = lane.size().map(|size| workload.of_size(size));
    Some(RunnableLane {
        name: name.to_owned(),
        transport: lane.spec(candidate)?.into(),
        workload: sized.unwrap_or_else(|| workload.clone()),
        presets: None,
    })
}

/// One lane on a stage, on some of its networks and under some seeds: what a search
/// plays.
pub(crate) struct LanePlay<'s, 'a> {
    pub(crate) stage: &'s mut Stage<'a>,
    pub(crate) lane: &'s TunableLane,
    /// The places of the networks.
    pub(crate) networks: Vec<usize>,
    pub(crate) seeds: &'s [u64],
}

impl Play for LanePlay<'_, '_> {
    fn play(&mut self, asks: &[(&Candidate, Range<usize>)]) -> Result<Vec<Vec<Vec<f64>>>, Stopped> {
        let mut asked = Vec::new();
        for (candidate, seeds) in asks {
            for &seed in &self.seeds[seeds.clone()] {
                for &network in &self.networks {
                    asked.push(Asked {
                        lane: self.lane,
                        candidate,
                        network,
                        seed,
                    });
                }
            }
        }
        let found = self.stage.play(&asked)?;
        let weights: Vec<f64> = self
            .networks
            .iter()
            .map(|&network| self.stage.networks[network].weight)
            .collect();
        let mut by_seed = found.chunks(weights.len()).map(|each| mix(each, &weights));
        let taken = asks
            .iter()
            .map(|(_, seeds)| by_seed.by_ref().take(seeds.len()).collect());
        Ok(taken.collect())
    }

    fn accepts(&self, candidate: &Candidate) -> bool {
        self.lane.spec(candidate).is_some()
    }
}

/// The mean of each figure over networks, weighted.
fn mix(figures: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let whole: f64 = weights.iter().sum();
    let mut sums = vec![0.0; figures.first().map_or(0, Vec::len)];
    for (of_network, weight) in figures.iter().zip(weights) {
        for (sum, figure) in sums.iter_mut().zip(of_network) {
            *sum += weight / whole * figure;
        }
    }
    sums
}
