//! How far the figures of a run could have come out differently: a bootstrap
//! of independent units of play.
//!
//! Messages that are close in time share their network conditions, so they are no
//! independent samples. What is drawn anew is therefore
//!
//! - **whole seeds**, where at least [`FEWEST_SEEDS`] were played: their
//!   impairments have nothing to do with each other;
//! - otherwise **stretches** of ten seconds, which nearly are independent,
//!   where there are at least [`FEWEST_BLOCKS`] of them (H. R. Künsch, "The
//!   jackknife and the bootstrap for general stationary observations", 1989;
//!   blocks that do not overlap: E. Carlstein, 1986).
//!
//! As many units are drawn with replacement as there are, over and over, and
//! every figure is taken of each draw exactly as it is taken of the run: over
//! all messages drawn, lost ones being infinitely late.
//!
//! Which units are drawn depends on their number alone. All lanes of a run
//! therefore draw the same stretches of the same network conditions, and the differences
//! between two lanes, draw by draw, are paired.

use std::collections::{BTreeMap, BTreeSet};

use lagometer_stats::{SortedSamples, in_millis, nanos, position};
use lagometer_units::SplitMix64;

use crate::document::{ResampleUnit, Resamples, SeedCost};
use crate::flow::FlowRecords;
use crate::game::GameRecords;
use crate::lag::{SeedLag, per_minute};
use crate::metric::{Metric, Sampled, Statistic};
use crate::record::MessageRecord;
use crate::within::{limits_ms, share};
use asked::AskedFigure;
use game::{GameRun, GameUnits};

mod asked;
mod game;

/// With fewer seeds than this, seeds cannot be the units.
pub const FEWEST_SEEDS: usize = 5;

/// With fewer stretches than this nothing can be said.
pub const FEWEST_BLOCKS: u64 = 30;

/// How often units are drawn: enough for the standard error to be known to a
/// twentieth.
const DRAWS: usize = 200;

/// Length of a stretch in seconds: shorter ones would split what one outage does, and hold
/// too few late messages to vary as they do.
pub(crate) const BLOCK_S: f64 = 10.0;

/// The same in nanoseconds.
const BLOCK: u64 = (BLOCK_S * 1e9) as u64;

/// The quantiles that are worked out for every draw beside the shares.
const QUANTILES: [Statistic; 4] = [
    Statistic::P50,
    Statistic::P90,
    Statistic::P99,
    Statistic::P99_9,
];

/// What one seed brings to be drawn.
pub(crate) struct Drawn<'a> {
    /// Its messages, in order of their intended send.
    pub(crate) records: &'a [MessageRecord],
    /// When its lag episodes began, in seconds.
    pub(crate) episodes_s: Vec<f64>,
    /// When those above a fixed 500 ms began, in seconds.
    pub(crate) episodes_500ms_s: Vec<f64>,
    /// Its lag, where a threshold is known.
    pub(crate) lag: Option<SeedLag>,
    /// Its wire overhead, where it is known.
    pub(crate) overhead: Option<f64>,
    /// What a player's hour takes and costs, where it is known.
    pub(crate) cost: Option<SeedCost>,
    /// A game's streams, where it carried one.
    pub(crate) game: Option<&'a GameRecords>,
    /// Each direction's messages, where they were not echoed.
    pub(crate) flows: Option<&'a FlowRecords>,
}

/// The units that a run was cut into.
#[derive(Clone, Copy)]
struct Cut {
    /// The first of them.
    first: u64,
    count: u64,
    /// Length of each but the last, which has what is left over, in nanoseconds.
    length: u64,
}

impl Cut {
    /// The unit of an instant of play.
    fn unit_at(self, nanos: u64) -> usize {
        (self.first + (nanos / self.length).min(self.count - 1)) as usize
    }

    /// Where the unit of an instant of play that lasts until `end` is over.
    fn end_of_unit(self, nanos: u64, end: u64) -> u64 {
        let number = nanos / self.length;
        if number + 1 < self.count {
            end.min((number + 1) * self.length)
        } else {
            end
        }
    }

    /// What stretches of play have in each unit, in nanoseconds: the parts of one.
    fn parts(self, mut from: u64, until: u64) -> impl Iterator<Item = (usize, u64)> {
        std::iter::from_fn(move || {
            let end = (from < until).then(|| self.end_of_unit(from, until))?;
            let part = (self.unit_at(from), end - from);
            from = end;
            Some(part)
        })
    }
}

/// The figures of every draw; `None` when there are too few seeds and they are
/// too short to be cut into enough stretches.
pub(crate) fn resamples(runs: &[Drawn<'_>], asked: &[Metric]) -> Option<Resamples> {
    let units = Units::cut(runs, asked)?;
    let mut generator = SplitMix64::new(units.len() as u64);
    let mut values: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    for _ in 0..DRAWS {
        let mut drawn = vec![0_u64; units.len()];
        for _ in 0..units.len() {
            drawn[below(&mut generator, units.len() as u64) as usize] += 1;
        }
        for (metric, value) in units.figures(&drawn) {
            values
                .entry(metric.to_string())
                .or_default()
                .push(value.is_finite().then(|| rounded(metric, value)));
        }
    }
    let worst_unit = units
        .worst_unit()
        .into_iter()
        .map(|(metric, value)| (metric.to_string(), rounded(metric, value)))
        .collect();
    Some(Resamples {
        worst_unit,
        unit: units.unit,
        blocks: units.len() as u32,
        block_s: units.length as f64 / 1e9,
        values,
    })
}

/// What [`Lane::shares_within`](crate::Lane::shares_within) has of what was played.
pub(crate) fn shares_within(runs: &[Drawn<'_>], asked: &[Metric]) -> BTreeMap<String, f64> {
    let is_kept_here =
        |metric: &&Metric| matches!(metric, Metric::ShareWithin(of, _) if *of != Sampled::Event);
    let shares = asked.iter().filter(is_kept_here).filter_map(|&metric| {
        let share = AskedFigure::played(metric, runs)?;
        Some((metric.to_string(), share))
    });
    shares.collect()
}

/// Seeds or stretches that are drawn.
struct Units {
    unit: ResampleUnit,
    /// Length of a unit in nanoseconds; of several, the longest.
    length: u64,
    /// Messages intended in each.
    intended: Vec<u64>,
    /// Episodes that began in each.
    episodes: Vec<u64>,
    /// Nanoseconds of lag in each and freezes that began there, where they are
    /// known of all.
    lag: Option<Vec<(u64, u64)>>,
    /// Nanoseconds of play for each message.
    spacing: f64,
    /// Figures that are kept of whole seeds and known of all, for each seed.
    of_seeds: Vec<(Metric, Vec<f64>)>,
    rtts: SortedSamples,
    /// A game's view and events, where it is known of all.
    game: Option<GameUnits>,
    /// What budgets ask for beside all this.
    asked: Vec<AskedFigure>,
    /// Limits in milliseconds, and how many round trips of all are within.
    limits: Vec<(u32, usize)>,
}

impl Units {
    fn cut(runs: &[Drawn<'_>], asked: &[Metric]) -> Option<Self> {
        let whole: Vec<u64> = runs.iter().map(|run| length_of(run.records)).collect();
        let longest = whole.iter().copied().max().filter(|&longest| longest > 0)?;
        let (unit, length, counts) = if runs.len() >= FEWEST_SEEDS {
            (ResampleUnit::Seed, longest, vec![1; runs.len()])
        } else {
            // What is left over at the end goes to the stretch before it.
            let counts: Vec<u64> = whole.iter().map(|all| (all / BLOCK).max(1)).collect();
            (ResampleUnit::Stretch, BLOCK, counts)
        };
        let len = counts.iter().sum::<u64>();
        if (unit == ResampleUnit::Stretch && len < FEWEST_BLOCKS) || len > u64::from(u32::MAX) {
            return None;
        }
        let mut units = Self {
            unit,
            length,
            intended: vec![0; len as usize],
            episodes: vec![0; len as usize],
            lag: runs
                .iter()
                .all(|run| run.lag.is_some())
                .then(|| vec![(0, 0); len as usize]),
            spacing: 0.0,
            of_seeds: if unit == ResampleUnit::Seed {
                of_seeds(runs)
            } else {
                Vec::new()
            },
            rtts: SortedSamples::default(),
            game: None,
            asked: Vec::new(),
            limits: Vec::new(),
        };
        let mut rtts = Vec::new();
        let mut first = 0;
        let mut cuts = Vec::with_capacity(runs.len());
        for (run, count) in runs.iter().zip(counts) {
            let cut = Cut {
                first,
                count,
                length,
            };
            units.add(run, cut, &mut rtts);
            cuts.push((run, cut));
            first += count;
        }
        let games = cuts.iter().map(|&(run, cut)| {
            Some(GameRun {
                game: run.game?,
                inputs: run.records,
                cut,
            })
        });
        let games: Option<Vec<GameRun<'_>>> = games.collect();
        units.game = games.map(|games| GameUnits::new(&games, len as usize));
        units.rtts = SortedSamples::new(rtts);
        units.asked = asked
            .iter()
            .filter_map(|&metric| AskedFigure::of(metric, &cuts, len as usize))
            .collect();
        let limits_ms: BTreeSet<u32> = limits_ms(asked).collect();
        units.limits = limits_ms
            .into_iter()
            .map(|limit| (limit, units.rtts.at_most(limit_nanos(limit))))
            .collect();
        let intended: u64 = units.intended.iter().sum();
        units.spacing = whole.iter().map(|&all| all as f64).sum::<f64>() / intended as f64;
        Some(units)
    }

    /// Adds what a seed did in its units, and its round trips, each with its unit.
    fn add(&mut self, run: &Drawn<'_>, cut: Cut, rtts: &mut Vec<(u64, u32)>) {
        for record in run.records {
            let unit = cut.unit_at(record.intended.as_nanos());
            self.intended[unit] += 1;
            if let Some(rtt) = record.rtt() {
                rtts.push((nanos(rtt), unit as u32));
            }
        }
        for start_s in &run.episodes_s {
            self.episodes[cut.unit_at((start_s * 1e9) as u64)] += 1;
        }
        let (Some(units), Some(lag)) = (&mut self.lag, &run.lag) else {
            return;
        };
        for freeze in &lag.freezes {
            units[cut.unit_at((freeze.start_s * 1e9) as u64)].1 += 1;
        }
        for &(from, until) in &lag.lagging {
            for (unit, part) in cut.parts(from.as_nanos(), until.as_nanos()) {
                units[unit].0 += part;
            }
        }
    }

    fn len(&self) -> usize {
        self.intended.len()
    }

    /// The figures of a draw that took unit `i` `drawn[i]` times.
    fn figures(&self, drawn: &[u64]) -> Vec<(Metric, f64)> {
        let times = |counts: &[u64]| -> u64 {
            let each = counts.iter().zip(drawn);
            each.map(|(count, drawn)| count * drawn).sum()
        };
        let intended = times(&self.intended);
        let counted = self.rtts.counted(drawn);
        let delivered = counted.len();
        let lost = intended - delivered;
        let mut figures = vec![
            (Metric::Episodes, times(&self.episodes) as f64),
            (Metric::Lost, share(lost, intended)),
        ];
        figures.extend(self.lag_of(drawn, intended));
        figures.extend(self.of_seeds(drawn));
        figures.extend(self.limits.iter().map(|&(limit_ms, count)| {
            let within = counted.among_first(count);
            (Metric::Within(limit_ms), share(within, intended))
        }));
        figures.extend(QUANTILES.into_iter().filter_map(|statistic| {
            let position = position(statistic.per_mille()?, delivered, lost);
            let rtt_ms = position.value(|rank| in_millis(counted.at_rank(rank)));
            Some((Metric::Rtt(statistic), rtt_ms.unwrap_or(f64::INFINITY)))
        }));
        figures.extend(self.game.iter().flat_map(|game| game.figures(drawn)));
        figures.extend(self.asked.iter().filter_map(|asked| asked.drawn(drawn)));
        figures
    }

    /// Of each figure that adds up what is bad, how much of it the worst unit brought.
    fn worst_unit(&self) -> Vec<(Metric, f64)> {
        let intended: u64 = self.intended.iter().sum();
        // All but the first so many of the sorted round trips are late.
        let most_beyond = |count: usize| {
            let mut beyond = self.intended.clone();
            for &unit in self.rtts.units_of_first(count) {
                beyond[unit as usize] -= 1;
            }
            share(beyond.into_iter().max().unwrap_or(0), intended)
        };
        let mut worst = vec![
            (
                Metric::Episodes,
                self.episodes.iter().copied().max().unwrap_or(0) as f64,
            ),
            (Metric::Lost, most_beyond(self.rtts.len())),
        ];
        let within = self.limits.iter();
        worst.extend(within.map(|&(limit, count)| (Metric::Within(limit), most_beyond(count))));
        if let Some(lag) = &self.lag {
            let seconds = self.spacing * intended as f64 / 1e9;
            let most = |of: fn(&(u64, u64)) -> u64| lag.iter().map(of).max().unwrap_or(0) as f64;
            worst.extend([
                (Metric::Lag, per_minute(most(|unit| unit.0) / 1e9, seconds)),
                (Metric::Freezes, per_minute(most(|unit| unit.1), seconds)),
            ]);
        }
        worst.extend(self.game.iter().flat_map(GameUnits::worst_unit));
        worst.extend(self.asked.iter().filter_map(AskedFigure::worst_unit));
        worst
    }

    /// The lag of a draw of so many messages.
    fn lag_of(&self, drawn: &[u64], intended: u64) -> impl Iterator<Item = (Metric, f64)> {
        let seconds = self.spacing * intended as f64 / 1e9;
        let total = |lag: &Vec<(u64, u64)>| {
            let each = lag.iter().zip(drawn);
            each.fold((0, 0), |sum, (lag, drawn)| {
                (sum.0 + lag.0 * drawn, sum.1 + lag.1 * drawn)
            })
        };
        let total = self.lag.as_ref().map(total);
        total.into_iter().flat_map(move |(nanos, freezes)| {
            [
                (Metric::Lag, per_minute(nanos as f64 / 1e9, seconds)),
                (Metric::Freezes, per_minute(freezes as f64, seconds)),
            ]
        })
    }

    /// The means of a draw's seeds by their messages, of what is kept of whole seeds.
    fn of_seeds(&self, drawn: &[u64]) -> impl Iterator<Item = (Metric, f64)> {
        let messages = self.intended.iter().zip(drawn);
        let weights: Vec<f64> = messages
            .map(|(intended, drawn)| (intended * drawn) as f64)
            .collect();
        let whole: f64 = weights.iter().sum();
        self.of_seeds
            .iter()
            .filter(move |_| whole > 0.0)
            .map(move |(metric, values)| {
                let sum: f64 = values.iter().zip(&weights).map(|(a, b)| a * b).sum();
                (*metric, sum / whole)
            })
    }
}

/// The figures that are kept of whole seeds, of those that are known of all.
fn of_seeds(runs: &[Drawn<'_>]) -> Vec<(Metric, Vec<f64>)> {
    type Of = fn(&Drawn<'_>) -> Option<f64>;
    let figures: [(Metric, Of); 3] = [
        (Metric::Overhead, |run| run.overhead),
        (Metric::BytesPerHour, |run| Some(run.cost?.bytes_per_hour)),
        (Metric::MoneyPerHour, |run| run.cost?.money_per_hour),
    ];
    figures
        .into_iter()
        .filter_map(|(metric, of)| Some((metric, runs.iter().map(of).collect::<Option<_>>()?)))
        .collect()
}

/// How long a run is, in nanoseconds: its last message has as much time of its
/// own as the others have on average.
pub(crate) fn length_of(records: &[MessageRecord]) -> u64 {
    let Some(last) = records.last() else {
        return 0;
    };
    let (last, len) = (u128::from(last.intended.as_nanos()), records.len() as u128);
    u64::try_from(last * len / (len - 1).max(1)).unwrap_or(u64::MAX)
}

fn limit_nanos(limit_ms: u32) -> u64 {
    u64::from(limit_ms) * 1_000_000
}

/// Six decimals of a share, nanoseconds of a delay and whole bytes are more than a figure
/// of a draw can mean, and short to write; an hour may cost a millionth.
fn rounded(metric: Metric, value: f64) -> f64 {
    let steps = match metric {
        Metric::BytesPerHour => 1.0,
        Metric::MoneyPerHour => 1e12,
        _ => 1e6,
    };
    (value * steps).round() / steps
}

/// A number below `bound`; the bias, at most `bound` in 2⁶⁴, is nothing.
fn below(generator: &mut SplitMix64, bound: u64) -> u64 {
    ((u128::from(generator.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests;
