//! What a game's view and events did in each unit of play, to be drawn anew.

use lagometer_stats::{SortedSamples, in_millis, nanos, position};

use crate::game::{GameRecords, Tooth, behind, delay_needed, edges, freezes, frozen, rolled_back};
use crate::metric::{Metric, Statistic};
use crate::record::MessageRecord;
use crate::within::share;

use super::Cut;

/// Quantiles of the delay of events that are worked out for every draw.
const QUANTILES: [Statistic; 3] = [Statistic::P50, Statistic::P90, Statistic::P99];

/// What a game did in each unit.
#[derive(Default)]
pub(super) struct GameUnits {
    /// How long the units are, in nanoseconds.
    played: Vec<u64>,
    /// Freezes, and nanoseconds frozen, in each.
    frozen: Vec<(u64, u64)>,
    /// How the number of freezes changes with the delay, each with its unit; greatest
    /// age first.
    edges: Vec<(u64, i64, u32)>,
    events: SortedSamples,
    /// Events that never came, in each unit.
    lost: Vec<u64>,
    /// Inputs for which the game had to wait in each unit, and all of them, where it rolls
    /// back.
    stalled: Option<Vec<(u64, u64)>>,
}

/// What one run brings, and the units that it was cut into.
pub(super) struct GameRun<'a> {
    pub(super) game: &'a GameRecords,
    pub(super) inputs: &'a [MessageRecord],
    pub(super) cut: Cut,
}

impl GameUnits {
    /// Of runs that have so many `units` together.
    pub(super) fn new(runs: &[GameRun<'_>], units: usize) -> Self {
        let mut game = Self {
            played: vec![0; units],
            frozen: vec![(0, 0); units],
            lost: vec![0; units],
            ..Self::default()
        };
        let mut events = Vec::new();
        for GameRun {
            game: run,
            inputs,
            cut,
        } in runs
        {
            let delay = nanos(run.terms.interpolation);
            let (mut begun, played) = (0, nanos(run.played));
            for tooth in behind(run) {
                let unit = cut.unit_at(tooth.ends);
                game.add_tooth(tooth, delay, unit);
                game.played[unit] += tooth.ends - begun;
                begun = tooth.ends;
            }
            // All of a run is in its teeth; the last ends with it.
            debug_assert_eq!(begun, played);
            if let Some(rollback) = run.terms.rollback {
                let stalled = game.stalled.get_or_insert_with(|| vec![(0, 0); units]);
                for (at, frames) in rolled_back(run, inputs, rollback) {
                    let unit = &mut stalled[cut.unit_at(at.as_nanos())];
                    unit.0 += u64::from(rollback.stalls(frames));
                    unit.1 += 1;
                }
            }
            for event in &run.events {
                let unit = cut.unit_at(event.at.as_nanos());
                match event.arrived {
                    Some(at) => events.push((nanos(at.since(event.at)), unit as u32)),
                    None => game.lost[unit] += 1,
                }
            }
        }
        game.edges
            .sort_unstable_by_key(|&edge| std::cmp::Reverse(edge));
        game.events = SortedSamples::new(events);
        game
    }

    fn add_tooth(&mut self, tooth: Tooth, delay: u64, unit: usize) {
        let all = [tooth];
        self.frozen[unit].1 += frozen(&all, delay);
        // A tooth that begins above the delay goes on with the freeze before it, which
        // may be counted in another unit: there is one fewer then.
        self.frozen[unit].0 += freezes(&all, delay);
        for (age, change) in edges(&all) {
            self.edges.push((age, change, unit as u32));
        }
    }

    /// Of each figure that adds up what is bad, how much of it the worst unit brought.
    pub(super) fn worst_unit(&self) -> Vec<(Metric, f64)> {
        let minutes = self.played.iter().sum::<u64>() as f64 / 60e9;
        if minutes <= 0.0 {
            return Vec::new();
        }
        let most = |of: fn(&(u64, u64)) -> u64| self.frozen.iter().map(of).max().unwrap_or(0);
        let mut worst = vec![
            (Metric::ViewFreezes, most(|unit| unit.0) as f64 / minutes),
            (
                Metric::ViewFrozen,
                most(|unit| unit.1) as f64 / 1e9 / minutes,
            ),
        ];
        worst.extend(self.stalled.as_ref().map(|stalled| {
            let waited = stalled.iter().map(|unit| unit.0).max().unwrap_or(0);
            let all = stalled.iter().map(|unit| unit.1).sum();
            (Metric::RollbackStalled, share(waited, all))
        }));
        worst
    }

    /// The figures of a draw that took unit `i` `drawn[i]` times.
    pub(super) fn figures(&self, drawn: &[u64]) -> Vec<(Metric, f64)> {
        let times = |each: &dyn Fn(usize) -> u64| -> f64 {
            let units = drawn.iter().enumerate();
            units.map(|(unit, drawn)| each(unit) * drawn).sum::<u64>() as f64
        };
        let minutes = times(&|unit| self.played[unit]) / 60e9;
        if minutes <= 0.0 {
            return Vec::new();
        }
        let edges: Vec<(u64, i64)> = self
            .edges
            .iter()
            .map(|&(age, change, unit)| (age, change * drawn[unit as usize].cast_signed()))
            .collect();
        let mut figures = vec![
            (
                Metric::ViewFreezes,
                times(&|unit| self.frozen[unit].0) / minutes,
            ),
            (
                Metric::ViewFrozen,
                times(&|unit| self.frozen[unit].1) / 1e9 / minutes,
            ),
            (
                Metric::InterpolationNeeded,
                in_millis(delay_needed(&edges, minutes)),
            ),
        ];
        figures.extend(self.stalled.as_ref().map(|stalled| {
            let (waited, all) = (
                times(&|unit| stalled[unit].0),
                times(&|unit| stalled[unit].1),
            );
            (Metric::RollbackStalled, share(waited as u64, all as u64))
        }));
        let counted = self.events.counted(drawn);
        let lost = times(&|unit| self.lost[unit]) as u64;
        figures.extend(QUANTILES.into_iter().filter_map(|statistic| {
            let position = position(statistic.per_mille()?, counted.len(), lost);
            let delay = position.value(|rank| in_millis(counted.at_rank(rank)))?;
            Some((Metric::Event(statistic), delay))
        }));
        figures
    }
}
