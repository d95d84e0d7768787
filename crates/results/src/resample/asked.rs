//! Figures that are drawn anew only where a budget asks for them: each is a mean over
//! units of play, a quantile of samples of which some never end, or an age over time.

use std::time::Duration;

use lagometer_stats::{SortedSamples, in_millis, nanos, position};

use crate::game::{
    EventRecord, GameRecords, at_per_mille, behind, edges, freezes, input_ages, rolled_back, teeth,
};
use crate::metric::{Metric, Sampled, Statistic};
use crate::record::MessageRecord;

use super::{Cut, Drawn};

/// One figure, in each unit.
pub(super) struct AskedFigure {
    metric: Metric,
    kept: Kept,
}

enum Kept {
    /// What is added up, over what.
    Mean(Mean),
    /// Delays, or frames, and in each unit how many never ended.
    Samples(SortedSamples, Vec<u64>),
    /// Where an age over time begins and ends, each with its unit; least age first.
    Age(Vec<(u64, i64, u32)>),
}

#[derive(Default)]
struct Mean {
    amounts: Vec<f64>,
    over: Vec<f64>,
    /// Samples of which the mean is infinite.
    never: Vec<u64>,
}

const NANOS_OF_A_MILLISECOND: u64 = 1_000_000;

/// A sample: when it was made, in nanoseconds of play, and its value; none if it never
/// ended.
type Sample = (u64, Option<u64>);

impl AskedFigure {
    /// The figure of runs that were cut into so many `units` together; `None` for those
    /// that every run draws anew, that are facts, and that the runs do not have.
    pub(super) fn of(metric: Metric, runs: &[(&Drawn<'_>, Cut)], units: usize) -> Option<Self> {
        let kept = match metric {
            Metric::ViewAge(statistic) => age(statistic, runs, units)?,
            Metric::ShareWithin(Sampled::ViewAge, limit_ms) => age_within(limit_ms, runs, units)?,
            Metric::ViewFreezesAt(delay_ms) => freezes_at(delay_ms, runs, units)?,
            Metric::ThroughputUp => throughput(0, runs, units)?,
            Metric::ThroughputDown => throughput(1, runs, units)?,
            Metric::Episodes500ms => {
                let mut mean = Mean::new(units);
                for (run, cut) in runs {
                    for start_s in &run.episodes_500ms_s {
                        mean.add(cut.unit_at((start_s * 1e9) as u64), 1.0, 0.0);
                    }
                }
                Kept::Mean(mean)
            }
            _ => of_samples(metric, runs, units)?,
        };
        Some(Self { metric, kept })
    }

    /// Its value in a draw that took unit `i` `drawn[i]` times; `None` where there is
    /// nothing to take it of.
    pub(super) fn drawn(&self, drawn: &[u64]) -> Option<(Metric, f64)> {
        let value = match &self.kept {
            Kept::Mean(mean) => mean.drawn(drawn)? * self.in_its_unit(),
            Kept::Samples(samples, lost) => {
                let counted = samples.counted(drawn);
                let lost = lost.iter().zip(drawn).map(|(lost, times)| lost * times);
                let per_mille = self.metric.statistic()?.per_mille()?;
                let position = position(per_mille, counted.len(), lost.sum());
                position.value(|rank| counted.at_rank(rank) as f64 * self.in_its_unit())?
            }
            Kept::Age(edges) => {
                let per_mille = self.metric.statistic()?.per_mille()?;
                let drawn = |&(age, change, unit): &(u64, i64, u32)| {
                    (age, change * drawn[unit as usize].cast_signed())
                };
                let edges: Vec<(u64, i64)> = edges.iter().map(drawn).collect();
                in_millis(at_per_mille(&edges, per_mille))
            }
        };
        Some((self.metric, value))
    }

    /// Its value in what was played.
    pub(super) fn played(metric: Metric, runs: &[Drawn<'_>]) -> Option<f64> {
        let whole = Cut {
            first: 0,
            count: 1,
            length: u64::MAX,
        };
        let runs: Vec<(&Drawn<'_>, Cut)> = runs.iter().map(|run| (run, whole)).collect();
        Some(Self::of(metric, &runs, 1)?.drawn(&[1])?.1)
    }

    /// How much of what is bad the worst unit brought; `None` where that does not add up.
    pub(super) fn worst_unit(&self) -> Option<(Metric, f64)> {
        let Kept::Mean(mean) = &self.kept else {
            return None;
        };
        let is_counted = matches!(
            self.metric,
            Metric::VoiceLate
                | Metric::ShareWithin(..)
                | Metric::ViewFreezesAt(_)
                | Metric::Episodes500ms
        );
        is_counted.then(|| (self.metric, mean.worst(self.metric.more_is_better())))
    }

    /// Delays are kept in nanoseconds and said in milliseconds.
    fn in_its_unit(&self) -> f64 {
        if self.metric.statistic().is_some() && !matches!(self.metric, Metric::Rollback(_)) {
            1e-6
        } else {
            1.0
        }
    }
}

/// A share of samples, their mean, or one of their quantiles.
fn of_samples(metric: Metric, runs: &[(&Drawn<'_>, Cut)], units: usize) -> Option<Kept> {
    let mut mean = Mean::new(units);
    let mut ended = Vec::new();
    for (run, cut) in runs {
        for (at, value) in samples(metric, run)? {
            let unit = cut.unit_at(at);
            match value {
                Some(value) => {
                    mean.add(unit, value as f64, 1.0);
                    ended.push((value, unit as u32));
                }
                None => mean.never[unit] += 1,
            }
        }
    }
    match metric.statistic() {
        None | Some(Statistic::Mean) => Some(Kept::Mean(mean)),
        Some(_) => Some(Kept::Samples(SortedSamples::new(ended), mean.never)),
    }
}

/// The samples of a run that a figure is made of; `None` where it has none of them. Of a
/// share each is one if it is within, and nothing if it is not or never ended.
fn samples(metric: Metric, run: &Drawn<'_>) -> Option<Vec<Sample>> {
    Some(match metric {
        Metric::Rtt(Statistic::Mean) => of_messages(run, MessageRecord::rtt),
        Metric::ShareWithin(of, limit) => {
            let limit = match of {
                Sampled::Rollback => u64::from(limit),
                _ => u64::from(limit) * NANOS_OF_A_MILLISECOND,
            };
            let within = |value: Option<u64>| u64::from(value.is_some_and(|it| it <= limit));
            let all = of_sampled(of, run)?.into_iter();
            all.map(|(at, value)| (at, Some(within(value)))).collect()
        }
        Metric::VoiceLate => {
            let game = run.game?;
            let within = game.terms.voice_within;
            let late = |frame: &EventRecord| u64::from(!frame.is_within(within));
            let voice = game.voice.iter();
            voice
                .map(|frame| (frame.at.as_nanos(), Some(late(frame))))
                .collect()
        }
        // Each draw of a game has these already.
        Metric::Event(Statistic::P50 | Statistic::P90 | Statistic::P99) => return None,
        _ => of_sampled(metric.sampled()?, run)?,
    })
}

/// The delay of each message, with its intended send.
fn of_messages(run: &Drawn<'_>, delay: fn(&MessageRecord) -> Option<Duration>) -> Vec<Sample> {
    let each = run.records.iter();
    each.map(|record| (record.intended.as_nanos(), delay(record).map(nanos)))
        .collect()
}

/// All samples of a distribution; `None` where the run has none, or where it has a value
/// all the time.
fn of_sampled(of: Sampled, run: &Drawn<'_>) -> Option<Vec<Sample>> {
    Some(match of {
        Sampled::Up => of_messages(run, MessageRecord::up),
        Sampled::Down => {
            let arrived = run.records.iter().filter(|record| record.arrived.is_some());
            let down =
                |record: &MessageRecord| (record.intended.as_nanos(), record.down().map(nanos));
            arrived.map(down).collect()
        }
        Sampled::Event => {
            let delay = |event: &EventRecord| event.arrived.map(|at| nanos(at.since(event.at)));
            let events = run.game?.events.iter();
            events
                .map(|event| (event.at.as_nanos(), delay(event)))
                .collect()
        }
        Sampled::InputAge => {
            let game: &GameRecords = run.game?;
            let steps = game.states.iter().map(|state| state.at.as_nanos());
            let ages = input_ages(game, run.records).into_iter().map(Some);
            steps.zip(ages).collect()
        }
        Sampled::Rollback => {
            let game = run.game?;
            let each = rolled_back(game, run.records, game.terms.rollback?);
            each.map(|(at, frames)| (at.as_nanos(), frames)).collect()
        }
        Sampled::ViewAge => return None,
    })
}

/// An age over all the time that was played.
fn age(statistic: Statistic, runs: &[(&Drawn<'_>, Cut)], units: usize) -> Option<Kept> {
    let mut mean = Mean::new(units);
    let mut all = Vec::new();
    for (run, cut) in runs {
        for tooth in teeth(run.game?) {
            let unit = cut.unit_at(tooth.ends);
            let long = (tooth.to - tooth.from) as f64;
            mean.add(unit, long * (tooth.to + tooth.from) as f64 / 2.0, long);
            // Upwards a tooth opens where it begins.
            let edges = edges(&[tooth]).into_iter();
            all.extend(edges.map(|(age, change)| (age, -change, unit as u32)));
        }
    }
    if statistic == Statistic::Mean {
        return Some(Kept::Mean(mean));
    }
    all.sort_unstable();
    Some(Kept::Age(all))
}

/// The share of all the time that was played in which the view is no older than a limit.
fn age_within(limit_ms: u32, runs: &[(&Drawn<'_>, Cut)], units: usize) -> Option<Kept> {
    let limit = u64::from(limit_ms) * NANOS_OF_A_MILLISECOND;
    let mut mean = Mean::new(units);
    for (run, cut) in runs {
        for tooth in teeth(run.game?) {
            let within = limit.clamp(tooth.from, tooth.to) - tooth.from;
            let long = tooth.to - tooth.from;
            mean.add(cut.unit_at(tooth.ends), within as f64, long as f64);
        }
    }
    Some(Kept::Mean(mean))
}

/// Freezes for each minute of play, at an interpolation delay.
fn freezes_at(delay_ms: u32, runs: &[(&Drawn<'_>, Cut)], units: usize) -> Option<Kept> {
    let delay = u64::from(delay_ms) * NANOS_OF_A_MILLISECOND;
    let mut mean = Mean::new(units);
    for (run, cut) in runs {
        let mut begun = 0;
        for tooth in behind(run.game?) {
            let minutes = (tooth.ends - begun) as f64 / 60e9;
            let unit = cut.unit_at(tooth.ends);
            mean.add(unit, freezes(&[tooth], delay) as f64, minutes);
            begun = tooth.ends;
        }
    }
    Some(Kept::Mean(mean))
}

/// Kilobits that came in a direction for each second of play.
fn throughput(way: usize, runs: &[(&Drawn<'_>, Cut)], units: usize) -> Option<Kept> {
    let mut mean = Mean::new(units);
    for (run, cut) in runs {
        let flows = run.flows?;
        for (at, bytes) in flows.received(way) {
            mean.add(
                cut.unit_at(at.as_nanos()),
                f64::from(bytes) * 8.0 / 1e3,
                0.0,
            );
        }
        for (unit, long) in cut.parts(0, nanos(flows.played)) {
            mean.add(unit, 0.0, long as f64 / 1e9);
        }
    }
    Some(Kept::Mean(mean))
}

impl Mean {
    fn new(units: usize) -> Self {
        Self {
            amounts: vec![0.0; units],
            over: vec![0.0; units],
            never: vec![0; units],
        }
    }

    fn add(&mut self, unit: usize, amount: f64, over: f64) {
        self.amounts[unit] += amount;
        self.over[unit] += over;
    }

    /// Over nothing, as a number is, it is the sum.
    fn drawn(&self, drawn: &[u64]) -> Option<f64> {
        let times = |each: &[f64]| -> f64 {
            let each = each.iter().zip(drawn);
            each.map(|(each, &times)| each * times as f64).sum()
        };
        let never = self.never.iter().zip(drawn);
        if never.into_iter().any(|(&never, &times)| never * times > 0) {
            return Some(f64::INFINITY);
        }
        let (amount, over) = (times(&self.amounts), times(&self.over));
        if self.over.iter().all(|&over| over <= 0.0) {
            return Some(amount);
        }
        (over > 0.0).then(|| amount / over)
    }

    fn worst(&self, more_is_better: bool) -> f64 {
        let each = self.amounts.iter().zip(&self.over);
        let bad = each.map(|(amount, over)| {
            if more_is_better {
                over - amount
            } else {
                *amount
            }
        });
        let whole: f64 = self.over.iter().sum();
        bad.fold(0.0, f64::max) / if whole > 0.0 { whole } else { 1.0 }
    }
}

#[cfg(test)]
mod tests;
