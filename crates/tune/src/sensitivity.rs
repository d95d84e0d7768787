//! What each setting does, all others being as found: one at a time, over its whole
//! range, under the same seeds. And which settings may as well stay as they were.

use std::ops::Range;

use serde_json::Value;

use crate::aim::Aim;
use crate::search::{Play, Trial, careful_merit};
use crate::space::{Candidate, Space};
use crate::tuning::Stopped;

/// Values that are tried of a setting whose values have an order.
pub const LEVELS: usize = 5;

/// What one setting does.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The setting's index in the space, from 0.
    pub setting: usize,
    /// Values in order, with the goal's mean under each.
    pub levels: Vec<(Value, f64)>,
    /// The goal's largest mean over the levels less its smallest, in the goal's unit.
    pub swing: f64,
    /// By how much the goal is worse with the start's own value than as found; below
    /// zero where it is better. `None` where nothing was changed.
    pub put_back: Option<f64>,
}

/// Plays every value of every setting beside `best` under `seeds` seeds; the setting
/// that moves the goal most first.
///
/// # Errors
///
/// [`Stopped`] as soon as `play` says so.
pub fn sensitivity<P: Play>(
    space: &Space,
    aim: &Aim,
    best: &Trial,
    seeds: usize,
    play: &mut P,
) -> Result<Vec<Sensitivity>, Stopped> {
    let mut asked: Vec<(usize, Value, Candidate)> = Vec::new();
    for setting in 0..space.tunables().len() {
        for value in values(space, &best.candidate, setting) {
            let candidate = space.with(&best.candidate, setting, value.clone());
            if candidate != best.candidate && play.accepts(&candidate) {
                asked.push((setting, value, candidate));
            }
        }
    }
    let asks: Vec<(&Candidate, Range<usize>)> = asked
        .iter()
        .map(|(_, _, candidate)| (candidate, 0..seeds))
        .collect();
    let played = play.play(&asks)?;
    let as_found = best.mean(seeds)[Aim::GOAL];
    let mut found: Vec<Sensitivity> = (0..space.tunables().len())
        .map(|setting| {
            let own = space.starts()[best.candidate.start].own[setting].as_ref();
            let mut levels: Vec<(Value, f64)> = asked
                .iter()
                .zip(&played)
                .filter(|((of, ..), _)| *of == setting)
                .map(|((_, value, candidate), seeds)| {
                    let trial = Trial {
                        candidate: candidate.clone(),
                        seeds: seeds.clone(),
                    };
                    (value.clone(), trial.mean(seeds.len())[Aim::GOAL])
                })
                .collect();
            let put_back = levels
                .iter()
                .find(|(value, _)| Some(value) == own)
                .map(|(_, goal)| aim.cost(*goal) - aim.cost(as_found));
            if let Some(value) = space.value(&best.candidate, setting) {
                levels.push((value.clone(), as_found));
            }
            let range = space.tunables()[setting].range;
            levels.sort_by(|(a, _), (b, _)| {
                let position = |value: &Value| range.position(value).unwrap_or(0.0);
                position(a).total_cmp(&position(b))
            });
            let goals = levels.iter().map(|(_, goal)| *goal);
            let most = goals.clone().fold(f64::NEG_INFINITY, f64::max);
            let least = goals.fold(f64::INFINITY, f64::min);
            Sensitivity {
                setting,
                swing: if levels.is_empty() { 0.0 } else { most - least },
                put_back: put_back.filter(|_| best.candidate.values[setting].is_some()),
                levels,
            }
        })
        .collect();
    found.sort_by(|a, b| b.swing.total_cmp(&a.swing).then(a.setting.cmp(&b.setting)));
    Ok(found)
}

/// The values to try: spread over the range, and the start's own.
fn values(space: &Space, best: &Candidate, setting: usize) -> Vec<Value> {
    let mut values = space.tunables()[setting].range.levels(LEVELS);
    if let Some(own) = &space.starts()[best.start].own[setting]
        && !values.contains(own)
    {
        values.push(own.clone());
    }
    values
}

/// `best` with as many settings put back to the start's own as cost nothing: few
/// settings are easier to trust than many, and what does not matter here may
/// elsewhere. What is taken is no worse than `best` by more than one standard error
/// of their difference, seed by seed, and keeps the limits as well as it.
///
/// # Errors
///
/// [`Stopped`] as soon as `play` says so.
pub fn simplified<P: Play>(
    aim: &Aim,
    best: &Trial,
    found: &[Sensitivity],
    play: &mut P,
) -> Result<Trial, Stopped> {
    let mut changed: Vec<(usize, f64)> = found
        .iter()
        .filter(|each| best.candidate.values[each.setting].is_some())
        .map(|each| (each.setting, each.put_back.unwrap_or(f64::INFINITY)))
        .collect();
    changed.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let mut count = changed.len();
    while count > 0 {
        let mut candidate = best.candidate.clone();
        for (setting, _) in &changed[..count] {
            candidate.values[*setting] = None;
        }
        if play.accepts(&candidate) {
            let seeds = play
                .play(&[(&candidate, 0..best.seeds.len())])?
                .pop()
                .unwrap_or_default();
            let trial = Trial { candidate, seeds };
            if is_no_worse(aim, &trial, best) {
                return Ok(trial);
            }
        }
        // Fewer by a third, at least one.
        count -= count.div_ceil(3);
    }
    Ok(best.clone())
}

fn is_no_worse(aim: &Aim, trial: &Trial, best: &Trial) -> bool {
    let differences: Vec<Vec<f64>> = trial
        .seeds
        .iter()
        .zip(&best.seeds)
        .map(|(one, other)| vec![aim.cost(one[Aim::GOAL]) - aim.cost(other[Aim::GOAL])])
        .collect();
    let paired = Trial {
        candidate: trial.candidate.clone(),
        seeds: differences,
    };
    let count = paired.seeds.len();
    let (worse, error) = (paired.mean(count), paired.error());
    let (of_trial, of_best) = (careful_merit(aim, trial), careful_merit(aim, best));
    of_trial.violation <= of_best.violation
        && worse
            .first()
            .zip(error.first())
            .is_some_and(|(worse, error)| worse <= error)
}
