//! All of it: lanes are searched one after the other, and what was found plays what
//! the search never saw.

use lagometer_lab::{Resolved, RunContext, SeedRun, assemble};
use lagometer_results::{Document, TunePoint};
use serde_json::Value;
use thiserror::Error;

use crate::aim::{Aim, ENDLESS_MS};
use crate::evaluator::{Evaluator, LanePlay, setup};
use crate::findings;
use crate::frontier::{frontier, thinned};
use crate::lane::TunableLane;
use crate::search::{Extent, Play as _, Searched, Trial, careful_merit, most_plays, rungs, search};
use crate::sensitivity::{LEVELS, Sensitivity, sensitivity, simplified};
use crate::space::Candidate;

/// Play was asked to stop before the search was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the search was stopped")]
pub struct Stopped;

/// Points of a lane's frontier that are shown.
const POINTS: usize = 8;

/// Which networks are kept from the search, to see what its findings are worth on
/// networks that it never played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeldOut {
    /// None: only seeds are.
    #[default]
    None,
    /// Those at these places.
    Networks(Vec<usize>),
    /// One after the other, each by a search of its own on all others; what is
    /// recommended comes from a search on all.
    Each,
}

/// What is searched, and how much.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The lanes.
    pub lanes: &'a [TunableLane],
    /// Candidates of each lane, seeds that the search plays (as many as are in
    /// `search_seeds`), and what is drawn.
    pub extent: Extent,
    /// Seeds that the search plays.
    pub search_seeds: Vec<u64>,
    /// Seeds that judge; none of the others.
    pub held_out_seeds: Vec<u64>,
    /// Networks that are kept from the search.
    pub held_out: HeldOut,
}

/// What was found of one lane.
pub(crate) struct FoundLane {
    pub(crate) before: Trial,
    pub(crate) best: Trial,
    pub(crate) candidates: usize,
    pub(crate) sensitivity: Vec<Sensitivity>,
    pub(crate) frontier: Vec<TunePoint>,
    /// Networks that a search never played, and what that search found.
    pub(crate) transfer: Vec<(usize, Candidate)>,
}

impl Ask<'_> {
    /// The places of the networks that the search for what is recommended plays.
    pub(crate) fn searched(&self, networks: usize) -> Vec<usize> {
        (0..networks)
            .filter(|place| match &self.held_out {
                HeldOut::Networks(held_out) => !held_out.contains(place),
                HeldOut::None | HeldOut::Each => true,
            })
            .collect()
    }
}

/// How many single plays of a seed all of it makes at most, and about.
#[must_use]
pub fn planned_plays(ask: &Ask<'_>, networks: usize) -> usize {
    let searched = ask.searched(networks).len();
    let (seeds, held_out) = (ask.extent.seeds, ask.held_out_seeds.len());
    let search = most_plays(ask.extent);
    let folds = if ask.held_out == HeldOut::Each {
        networks
    } else {
        0
    };
    ask.lanes
        .iter()
        .map(|lane| {
            let settings = lane.space().tunables().len();
            let around = settings * LEVELS * probing(seeds) + 3 * seeds;
            searched * (search + around + POINTS * held_out)
                + folds * searched.saturating_sub(1) * search
                + networks * 2 * held_out
        })
        .sum()
}

/// Seeds under which the values of single settings are tried.
fn probing(seeds: usize) -> usize {
    let rungs = rungs(seeds);
    rungs[rungs.len().saturating_sub(2)]
}

/// Searches every lane and judges what was found.
///
/// # Errors
///
/// [`Stopped`] where play was to stop before all was done.
pub fn tune(
    evaluator: &mut Evaluator<'_>,
    ask: &Ask<'_>,
    context: &dyn Fn() -> RunContext,
) -> Result<Document, Stopped> {
    let mut found = Vec::new();
    for lane in ask.lanes {
        found.push(tune_lane(evaluator, ask, lane)?);
    }
    let mut documents = Vec::new();
    for network in 0..evaluator.networks.len() {
        documents.push(judge(evaluator, ask, &found, network, context)?);
    }
    Ok(findings::document(evaluator, ask, &found, documents))
}

fn tune_lane(
    evaluator: &mut Evaluator<'_>,
    ask: &Ask<'_>,
    lane: &TunableLane,
) -> Result<FoundLane, Stopped> {
    let (aim, space) = (evaluator.aim, lane.space());
    let networks = ask.searched(evaluator.networks.len());
    let mut play = LanePlay {
        evaluator,
        lane,
        networks: networks.clone(),
        seeds: &ask.search_seeds,
    };
    let searched = search(space, aim, ask.extent, &mut play)?;
    let first = &searched.trials[searched.best];
    let around = sensitivity(space, aim, first, probing(ask.extent.seeds), &mut play)?;
    let mut best = simplified(aim, first, &around, &mut play)?;
    let before = searched.trials[0].clone();
    if careful_merit(aim, &best)
        .compare(&careful_merit(aim, &before))
        .is_ge()
    {
        best = before.clone();
    }
    let frontier = frontier_of(play.evaluator, ask, lane, &networks, &searched)?;
    let transfer = transfer(play.evaluator, ask, lane, &best.candidate)?;
    Ok(FoundLane {
        before,
        best,
        candidates: searched.trials.len(),
        sensitivity: around,
        frontier,
        transfer,
    })
}

/// What searches found that did not play a network, for each such network.
fn transfer(
    evaluator: &mut Evaluator<'_>,
    ask: &Ask<'_>,
    lane: &TunableLane,
    best: &Candidate,
) -> Result<Vec<(usize, Candidate)>, Stopped> {
    if let HeldOut::Networks(places) = &ask.held_out {
        return Ok(places.iter().map(|&place| (place, best.clone())).collect());
    }
    let mut found = Vec::new();
    if ask.held_out == HeldOut::Each {
        let (aim, count) = (evaluator.aim, evaluator.networks.len());
        for held_out in 0..count {
            let mut play = LanePlay {
                evaluator: &mut *evaluator,
                lane,
                networks: (0..count).filter(|&it| it != held_out).collect(),
                seeds: &ask.search_seeds,
            };
            let searched = search(lane.space(), aim, ask.extent, &mut play)?;
            let best = searched.trials[searched.best].candidate.clone();
            found.push((held_out, best));
        }
    }
    Ok(found)
}

/// Candidates of which none is better both by delay and by bytes: chosen by what the
/// search played, shown as held-out seeds have them.
fn frontier_of(
    evaluator: &mut Evaluator<'_>,
    ask: &Ask<'_>,
    lane: &TunableLane,
    networks: &[usize],
    searched: &Searched,
) -> Result<Vec<TunePoint>, Stopped> {
    let enough = probing(ask.extent.seeds);
    let known: Vec<&Trial> = searched
        .trials
        .iter()
        .filter(|trial| trial.seeds.len() >= enough)
        .collect();
    let point = |figures: &[f64]| (figures[Aim::OVERHEAD], figures[Aim::DELAY]);
    let points: Vec<(f64, f64)> = known.iter().map(|it| point(&it.mean(enough))).collect();
    let chosen = thinned(&frontier(&points), POINTS);
    let mut play = LanePlay {
        evaluator,
        lane,
        networks: networks.to_vec(),
        seeds: &ask.held_out_seeds,
    };
    let asks: Vec<_> = chosen
        .iter()
        .map(|&place| (&known[place].candidate, 0..ask.held_out_seeds.len()))
        .collect();
    let played = play.play(&asks)?;
    let means: Vec<Vec<f64>> = asks
        .iter()
        .zip(played)
        .map(|((candidate, _), seeds)| {
            let candidate = Candidate::clone(candidate);
            let count = seeds.len();
            Trial { candidate, seeds }.mean(count)
        })
        .collect();
    let points: Vec<(f64, f64)> = means.iter().map(|mean| point(mean)).collect();
    Ok(frontier(&points)
        .into_iter()
        .map(|at| TunePoint {
            preset: lane.preset(asks[at].0).to_owned(),
            settings: Value::Object(lane.settings(asks[at].0)),
            overhead: means[at][Aim::OVERHEAD],
            p99_ms: Some(means[at][Aim::DELAY]).filter(|it| *it < ENDLESS_MS),
            goal: means[at][Aim::GOAL],
        })
        .collect())
}

/// Plays every lane as it was and as it was found on one network, under the seeds
/// that judge.
fn judge(
    evaluator: &mut Evaluator<'_>,
    ask: &Ask<'_>,
    found: &[FoundLane],
    network: usize,
    context: &dyn Fn() -> RunContext,
) -> Result<Document, Stopped> {
    let mut setups = Vec::new();
    for (lane, found) in ask.lanes.iter().zip(found) {
        let [tuned, transferred] = lane.found_names();
        let mut named = vec![(lane.name().to_owned(), &found.before.candidate)];
        if found.best.candidate != found.before.candidate {
            named.push((tuned, &found.best.candidate));
        }
        let other = found.transfer.iter().find(|(place, _)| *place == network);
        if let (Some((_, candidate)), HeldOut::Each) = (other, &ask.held_out) {
            named.push((transferred, candidate));
        }
        for (name, candidate) in named {
            setups.extend(setup(evaluator.networks, network, lane, candidate, &name));
        }
    }
    let seeds = &ask.held_out_seeds;
    let mut runs: Vec<SeedRun> = seeds
        .iter()
        .map(|&seed| SeedRun {
            seed,
            lanes: Vec::new(),
        })
        .collect();
    for of_lane in evaluator.play_each(&setups, seeds)? {
        for (run, lane) in runs.iter_mut().zip(of_lane) {
            run.lanes.push(lane);
        }
    }
    let resolved = Resolved {
        lanes: setups.into_iter().map(|setup| setup.lane).collect(),
        unrunnable: Vec::new(),
        ..evaluator.networks[network].resolved.clone()
    };
    Ok(assemble(&resolved, seeds, runs, context()))
}
