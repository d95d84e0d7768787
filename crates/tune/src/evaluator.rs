//! Has candidates played, and remembers what they were found to do.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lagometer_lab::{LaneRun, Resolved, RunnableLane, seed_figures};

use crate::aim::Aim;
use crate::lane::TunableLane;
use crate::memory::Memory;
use crate::runner::{Runner, Setup, SinglePlay};
use crate::search::Play;
use crate::space::Candidate;
use crate::tuning::Stopped;

/// A network and its share of the players.
#[derive(Clone, Debug)]
pub struct Network {
    /// The network's name.
    pub name: String,
    /// The share of players on it, above 0; shares need not add up to 1.
    pub weight: f64,
    /// The experiment on it; its lanes are not looked at.
    pub resolved: Resolved,
}

/// Has candidates played.
pub struct Evaluator<'a> {
    /// The networks there are.
    pub networks: &'a [Network],
    /// Which figures are kept of a play.
    pub aim: &'a Aim,
    /// Plays candidates.
    pub runner: &'a mut dyn Runner,
    /// The figures of what was played before, so that nothing is played twice.
    pub memory: &'a mut Memory,
    /// Is called with virtual time that need not be played, for it is remembered.
    pub progress: &'a (dyn Fn(Duration) + Sync),
    /// Is shown what was played after every play, from any thread, to keep it.
    pub keep: &'a mut (dyn FnMut(&Memory) + Send),
}

/// One thing that is asked of an evaluator.
pub(crate) struct Asked<'a> {
    pub(crate) lane: &'a TunableLane,
    pub(crate) candidate: &'a Candidate,
    pub(crate) network: usize,
    pub(crate) seed: u64,
}

/// Plays that are not remembered, with the key of each.
#[derive(Default)]
struct Unknown {
    setups: Vec<Setup>,
    plays: Vec<SinglePlay>,
    keys: Vec<String>,
}

impl Evaluator<'_> {
    /// The figures of everything that is asked, in order.
    pub(crate) fn play(&mut self, asked: &[Asked<'_>]) -> Result<Vec<Vec<f64>>, Stopped> {
        let wanted = self.aim.metrics().count();
        let keys: Vec<String> = asked.iter().map(|ask| self.key(ask)).collect();
        let at_once = self.runner.at_once().max(1);
        for (asked, keys) in asked.chunks(at_once).zip(keys.chunks(at_once)) {
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
        let unknown = self.unknown(asked, keys, wanted);
        let known = asked.len() - unknown.plays.len();
        if let (Some(ask), true) = (asked.first(), known > 0) {
            let each = self.networks[ask.network].resolved.plan.duration;
            (self.progress)(each.saturating_mul(known as u32));
        }
        if unknown.plays.is_empty() {
            return Ok(());
        }
        let (networks, aim) = (self.networks, self.aim);
        let kept = Mutex::new((&mut *self.memory, &mut *self.keep));
        let Unknown {
            setups,
            plays,
            keys,
        } = &unknown;
        let found = |place: usize, run: LaneRun| {
            let play = plays[place];
            let resolved = &networks[setups[play.setup].network].resolved;
            let figures = seed_figures(resolved, play.seed, &run);
            let figures = figures.map_or_else(|| aim.worst(), |figures| aim.figures(&figures));
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let (memory, keep) = &mut *kept;
            memory.remember(keys[place].clone(), figures);
            keep(memory);
        };
        self.runner.play(networks, setups, plays, &found)
    }

    /// What of all that is asked is to be played, each once.
    fn unknown(&mut self, asked: &[Asked<'_>], keys: &[String], wanted: usize) -> Unknown {
        let mut unknown = Unknown::default();
        let mut places: BTreeMap<(usize, String), usize> = BTreeMap::new();
        for (ask, key) in asked.iter().zip(keys) {
            if unknown.keys.contains(key) || self.memory.figures(key, wanted).is_some() {
                continue;
            }
            let (lane, candidate) = (ask.lane, ask.candidate);
            let place = (
                ask.network,
                format!("{} {}", lane.name(), lane.space().key(candidate)),
            );
            let setup = if let Some(&setup) = places.get(&place) {
                setup
            } else {
                let Some(setup) = setup(self.networks, ask.network, lane, candidate, lane.name())
                else {
                    self.memory.remember(key.clone(), self.aim.worst());
                    continue;
                };
                unknown.setups.push(setup);
                places.insert(place, unknown.setups.len() - 1);
                unknown.setups.len() - 1
            };
            unknown.plays.push(SinglePlay {
                setup,
                seed: ask.seed,
            });
            unknown.keys.push(key.clone());
        }
        unknown
    }

    /// Has every setup played under every seed: of each setup what its lane did, in the
    /// order of the seeds. Nothing of it is remembered.
    pub(crate) fn play_each(
        &mut self,
        setups: &[Setup],
        seeds: &[u64],
    ) -> Result<Vec<Vec<LaneRun>>, Stopped> {
        let plays: Vec<SinglePlay> = (0..setups.len())
            .flat_map(|setup| seeds.iter().map(move |&seed| SinglePlay { setup, seed }))
            .collect();
        let runs = Mutex::new(BTreeMap::new());
        let at_once = self.runner.at_once().max(1);
        for (nth, chunk) in plays.chunks(at_once).enumerate() {
            let found = |place: usize, run: LaneRun| {
                let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
                runs.insert(nth * at_once + place, run);
            };
            self.runner.play(self.networks, setups, chunk, &found)?;
        }
        let runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut runs = runs.into_values();
        Ok(setups
            .iter()
            .map(|_| runs.by_ref().take(seeds.len()).collect())
            .collect())
    }
}

/// The candidate on a network, as a lane called `name`; `None` where it cannot be played.
pub(crate) fn setup(
    networks: &[Network],
    network: usize,
    lane: &TunableLane,
    candidate: &Candidate,
    name: &str,
) -> Option<Setup> {
    let workload = &networks[network].resolved.plan.workload;
    let sized = lane.size().map(|size| workload.of_size(size));
    let runnable = RunnableLane {
        name: name.to_owned(),
        transport: lane.spec(candidate)?,
        workload: sized.unwrap_or_else(|| workload.clone()),
        presets: None,
    };
    Some(Setup {
        network,
        lane: runnable,
        written: lane.written(candidate, name),
    })
}

/// One lane before an evaluator, on some of its networks and under some seeds: what a search
/// plays.
pub(crate) struct LanePlay<'s, 'a> {
    pub(crate) evaluator: &'s mut Evaluator<'a>,
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
        let found = self.evaluator.play(&asked)?;
        let weights: Vec<f64> = self
            .networks
            .iter()
            .map(|&network| self.evaluator.networks[network].weight)
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
