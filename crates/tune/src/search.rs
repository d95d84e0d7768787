//! The search: successive halving over candidates that all play the same seeds.
//!
//! A round plays many candidates under few seeds, keeps the better third, plays those
//! under more, and so on until the last play them all (K. Jamieson and A. Talwalkar,
//! "Non-stochastic best arm identification and hyperparameter optimization", 2016).
//! All candidates meet the same seeds in the same order, so what the network did is
//! the same for each and differences show what settings do ("common random numbers").
//!
//! The first round holds every start and points that fill the space evenly (Latin
//! hypercube: M. D. `McKay`, R. J. Beckman and W. J. Conover, 1979). The rounds after
//! it hold children of the best so far: settings of two parents, some of them moved a
//! little, less in each round. The lane as it is always plays all seeds.
//!
//! What is best of many by the same play is better there than anywhere else. That is
//! not corrected here but shown: whoever asks plays what was found elsewhere.

mod proposals;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::aim::{Aim, Merit};
use crate::frontier::{frontier, thinned};
use crate::space::{Candidate, Space};
use crate::tuning::Stopped;

/// Of the field of a rung one in so many goes on.
const KEPT: usize = 3;

/// How far children's settings move in each round after the first, as a part of
/// their range.
const STEPS: [f64; 2] = [0.25, 0.1];

/// How many of the best may be parents.
const PARENTS: usize = 6;

/// Seeds fewer than which show nothing.
const FEWEST: usize = 2;

/// Plays candidates. What it says of one is a function of the candidate and the
/// seed alone.
pub trait Play {
    /// Plays each candidate under the seeds of these places; of each of them the
    /// figures by [`Aim::metrics`].
    ///
    /// # Errors
    ///
    /// [`Stopped`] where it was asked to stop.
    fn play(&mut self, asks: &[(&Candidate, Range<usize>)]) -> Result<Vec<Vec<Vec<f64>>>, Stopped>;

    /// Whether the candidate can be played and promises what the lane does.
    fn accepts(&self, candidate: &Candidate) -> bool;
}

/// How much is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Candidates, starts among them.
    pub candidates: usize,
    /// Seeds that the best play.
    pub seeds: usize,
    /// What is drawn follows from this.
    pub seed: u64,
}

/// A candidate and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The candidate.
    pub candidate: Candidate,
    /// Its figures under each seed that it played, from the first on.
    pub seeds: Vec<Vec<f64>>,
}

impl Trial {
    /// The mean of each figure over the first `seeds` seeds.
    #[must_use]
    pub fn mean(&self, seeds: usize) -> Vec<f64> {
        mean(&self.seeds[..seeds.min(self.seeds.len())])
    }

    /// The standard error of each of these means.
    #[must_use]
    pub fn error(&self) -> Vec<f64> {
        let means = mean(&self.seeds);
        let count = self.seeds.len() as f64;
        let mut errors = vec![0.0; means.len()];
        for seed in &self.seeds {
            for ((error, value), mean) in errors.iter_mut().zip(seed).zip(&means) {
                *error += (value - mean) * (value - mean);
            }
        }
        let whole = (count - 1.0).max(1.0) * count.max(1.0);
        errors.iter().map(|sum| (sum / whole).sqrt()).collect()
    }
}

/// Everything that was tried; the first is the lane as it is.
#[derive(Clone, Debug)]
pub struct Searched {
    /// All trials, in order.
    pub trials: Vec<Trial>,
    /// The place of the best.
    pub best: usize,
}

/// How many seeds each rung has, the last all of them.
#[must_use]
pub fn rungs(seeds: usize) -> Vec<usize> {
    let mut rungs: Vec<usize> = [seeds / (KEPT * KEPT), seeds / KEPT, seeds]
        .into_iter()
        .map(|rung| rung.max(FEWEST.min(seeds)))
        .collect();
    rungs.dedup();
    rungs
}

/// How many single plays of a seed a search makes at most.
#[must_use]
pub fn most_plays(extent: Extent) -> usize {
    let mut plays = extent.seeds;
    for share in shares(extent.candidates) {
        let (mut field, mut before) = (share, 0);
        for rung in rungs(extent.seeds) {
            plays += field * (rung - before);
            before = rung;
            field = field.div_ceil(KEPT);
        }
    }
    plays
}

/// Searches `space` for what is best by `aim`.
///
/// # Errors
///
/// [`Stopped`] as soon as `play` says so.
pub fn search<P: Play>(
    space: &Space,
    aim: &Aim,
    extent: Extent,
    play: &mut P,
) -> Result<Searched, Stopped> {
    let mut search = Search {
        space,
        aim,
        extent,
        random: fastrand::Rng::with_seed(extent.seed),
        known: BTreeSet::new(),
        trials: Vec::new(),
        play,
    };
    let shares = shares(extent.candidates);
    let first = search.first(shares[0]);
    search.round(first)?;
    for (share, step) in shares[1..].iter().zip(STEPS) {
        let children = search.children(*share, step);
        search.round(children)?;
    }
    let best = search.best();
    Ok(Searched {
        trials: search.trials,
        best,
    })
}

/// The candidates of each round: half of them in the first.
fn shares(candidates: usize) -> [usize; 1 + STEPS.len()] {
    let later = candidates / 4;
    [candidates - 2 * later, later, later]
}

struct Search<'a, P> {
    space: &'a Space,
    aim: &'a Aim,
    extent: Extent,
    random: fastrand::Rng,
    /// Every candidate that was proposed, by its key.
    known: BTreeSet<String>,
    trials: Vec<Trial>,
    play: &'a mut P,
}

impl<P: Play> Search<'_, P> {
    /// Plays newcomers, dropping all but the best of them on the way.
    fn round(&mut self, newcomers: Vec<Candidate>) -> Result<(), Stopped> {
        let first = self.trials.len();
        self.trials
            .extend(newcomers.into_iter().map(|candidate| Trial {
                candidate,
                seeds: Vec::new(),
            }));
        let mut field: Vec<usize> = (first..self.trials.len()).collect();
        let rungs = rungs(self.extent.seeds);
        for (nth, &rung) in rungs.iter().enumerate() {
            self.play_to(&field, rung)?;
            if nth + 1 < rungs.len() {
                field = self.survivors(&field, rung);
            }
        }
        Ok(())
    }

    /// Plays each of the field up to so many seeds.
    fn play_to(&mut self, field: &[usize], seeds: usize) -> Result<(), Stopped> {
        let asks: Vec<(&Candidate, Range<usize>)> = field
            .iter()
            .map(|&place| {
                let trial = &self.trials[place];
                (&trial.candidate, trial.seeds.len()..seeds)
            })
            .collect();
        let played = self.play.play(&asks)?;
        for (&place, seeds) in field.iter().zip(played) {
            self.trials[place].seeds.extend(seeds);
        }
        Ok(())
    }

    /// The better third by merit after so many seeds; a quarter of the places is for
    /// those on the frontier of delay against bytes. The lane as it is stays.
    fn survivors(&self, field: &[usize], seeds: usize) -> Vec<usize> {
        let places = field.len().div_ceil(KEPT);
        let mut order = field.to_vec();
        order.sort_by(|&a, &b| self.compare(a, b, seeds));
        let mut kept: Vec<usize> = order.iter().copied().take(places - places / 4).collect();
        let points: Vec<(f64, f64)> = field
            .iter()
            .map(|&place| {
                let mean = self.trials[place].mean(seeds);
                (mean[Aim::OVERHEAD], mean[Aim::DELAY])
            })
            .collect();
        let on_frontier = thinned(&frontier(&points), places / 4);
        let others = on_frontier.into_iter().map(|at| field[at]).chain(order);
        for place in others {
            if kept.len() >= places {
                break;
            }
            if !kept.contains(&place) {
                kept.push(place);
            }
        }
        if field.contains(&0) && !kept.contains(&0) {
            kept.push(0);
        }
        kept.sort_unstable();
        kept
    }

    fn compare(&self, a: usize, b: usize, seeds: usize) -> std::cmp::Ordering {
        let merit = |place: usize| self.aim.merit(&self.trials[place].mean(seeds));
        merit(a).compare(&merit(b)).then(a.cmp(&b))
    }

    /// The trials that played all seeds, the best first.
    fn ranked(&self) -> Vec<usize> {
        let mut whole: Vec<usize> = (0..self.trials.len())
            .filter(|&place| self.trials[place].seeds.len() >= self.extent.seeds)
            .collect();
        whole.sort_by(|&a, &b| {
            let merit = |place: usize| careful_merit(self.aim, &self.trials[place]);
            merit(a).compare(&merit(b)).then(a.cmp(&b))
        });
        whole
    }

    fn best(&self) -> usize {
        self.ranked().first().copied().unwrap_or(0)
    }
}

/// A trial's merit where limits are to be kept beyond chance: what is limited may be
/// worse by two standard errors.
#[must_use]
pub fn careful_merit(aim: &Aim, trial: &Trial) -> Merit {
    let margins: Vec<f64> = trial.error().iter().map(|error| 2.0 * error).collect();
    aim.merit_with(&trial.mean(trial.seeds.len()), &margins)
}

/// The mean of each figure over seeds.
fn mean(seeds: &[Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![0.0; seeds.first().map_or(0, Vec::len)];
    for seed in seeds {
        for (sum, value) in sums.iter_mut().zip(seed) {
            *sum += value;
        }
    }
    let count = seeds.len().max(1) as f64;
    sums.iter().map(|sum| sum / count).collect()
}
