//! How far the figures of a single run could have come out differently: a
//! block bootstrap.
//!
//! Messages that are close in time share their weather, so they are no
//! independent samples; blocks of several seconds nearly are. The run is cut
//! into blocks of equal length, and as many blocks are drawn with replacement
//! as there are, over and over; the figures of each draw show how they vary
//! with the luck of the weather (H. R. Künsch, "The jackknife and the
//! bootstrap for general stationary observations", 1989; blocks that do not
//! overlap: E. Carlstein, 1986).
//!
//! Which blocks are drawn depends on their number alone. All lanes of a run
//! therefore draw the same stretches of the same weather, and the differences
//! between two lanes, draw by draw, are paired.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Episode, Resamples, WITHIN_LIMITS_MS};
use crate::metric::{Metric, Statistic};
use crate::quantiles::{Place, in_millis, place};
use crate::record::{MessageRecord, nanos};
use crate::within::share;

/// How often blocks are drawn: enough for the outer 2.5 % on each side to be
/// five draws.
const DRAWS: usize = 200;

/// Length of a block where the run is long enough, in nanoseconds.
const BLOCK: u64 = 10_000_000_000;

/// The shortest block: shorter ones would split single outages.
const SHORTEST_BLOCK: u64 = 2_000_000_000;

/// With fewer blocks than this nothing can be said.
const FEWEST_BLOCKS: u64 = 10;

/// What is worked out for every draw beside the shares.
const QUANTILES: [(Statistic, u32); 4] = [
    (Statistic::P50, 500),
    (Statistic::P90, 900),
    (Statistic::P99, 990),
    (Statistic::P99_9, 999),
];

/// The figures of every draw; `None` when the run is too short to be cut into
/// enough blocks. `records` are in order of their intended send.
pub(crate) fn resamples(
    records: &[MessageRecord],
    episodes: &[Episode],
    extra_limits_ms: &[u32],
) -> Option<Resamples> {
    let blocks = Blocks::cut(records, episodes, extra_limits_ms)?;
    let mut generator = SplitMix64(blocks.len() as u64);
    let mut values: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    for _ in 0..DRAWS {
        let mut drawn = vec![0_u64; blocks.len()];
        for _ in 0..blocks.len() {
            drawn[generator.below(blocks.len() as u64) as usize] += 1;
        }
        for (metric, value) in blocks.figures(&drawn) {
            values
                .entry(metric.to_string())
                .or_default()
                .push(value.is_finite().then(|| rounded(value)));
        }
    }
    Some(Resamples {
        blocks: blocks.len() as u32,
        block_s: blocks.length as f64 / 1e9,
        values,
    })
}

/// A run cut into blocks.
struct Blocks {
    /// Length of a block in nanoseconds.
    length: u64,
    /// Messages intended in each block.
    intended: Vec<u64>,
    /// Episodes that began in each block.
    episodes: Vec<u64>,
    /// All round trips in ascending order, in nanoseconds, with their block.
    rtts: Vec<(u64, u32)>,
    limits_ms: BTreeSet<u32>,
}

impl Blocks {
    fn cut(
        records: &[MessageRecord],
        episodes: &[Episode],
        extra_limits_ms: &[u32],
    ) -> Option<Self> {
        let end = records.last()?.intended.as_nanos();
        let length = (end / FEWEST_BLOCKS).clamp(SHORTEST_BLOCK, BLOCK);
        // The run is as long as its messages reach; the last, partial block
        // goes to the one before it.
        let len = end.div_ceil(length).max(1);
        if len < FEWEST_BLOCKS || len > u64::from(u32::MAX) {
            return None;
        }
        let block_at = |nanos: u64| (nanos / length).min(len - 1);
        let mut blocks = Self {
            length,
            intended: vec![0; len as usize],
            episodes: vec![0; len as usize],
            rtts: Vec::with_capacity(records.len()),
            limits_ms: WITHIN_LIMITS_MS
                .iter()
                .chain(extra_limits_ms)
                .copied()
                .collect::<BTreeSet<u32>>(),
        };
        for record in records {
            let block = block_at(record.intended.as_nanos());
            blocks.intended[block as usize] += 1;
            if let Some(rtt) = record.rtt() {
                blocks.rtts.push((nanos(rtt), block as u32));
            }
        }
        for episode in episodes {
            blocks.episodes[block_at((episode.start_s * 1e9) as u64) as usize] += 1;
        }
        blocks.rtts.sort_unstable();
        Some(blocks)
    }

    fn len(&self) -> usize {
        self.intended.len()
    }

    /// The figures of a draw that took block `i` `drawn[i]` times.
    fn figures(&self, drawn: &[u64]) -> Vec<(Metric, f64)> {
        let times = |counts: &[u64]| -> u64 {
            counts
                .iter()
                .zip(drawn)
                .map(|(count, drawn)| count * drawn)
                .sum()
        };
        let intended = times(&self.intended);
        let mut figures = vec![(Metric::Episodes, times(&self.episodes) as f64)];
        let delivered: u64 = self
            .rtts
            .iter()
            .map(|&(_, block)| drawn[block as usize])
            .sum();
        let mut ranks = QUANTILES
            .map(|(statistic, per_mille)| {
                (statistic, place(per_mille, delivered, intended - delivered))
            })
            .into_iter()
            .peekable();
        let mut limits = self.limits_ms.iter().copied().peekable();
        let mut seen = 0;
        for &(rtt, block) in &self.rtts {
            while let Some(limit_ms) = limits.next_if(|&limit| rtt > limit_nanos(limit)) {
                figures.push((Metric::Within(limit_ms), share(seen, intended)));
            }
            let weight = drawn[block as usize];
            if weight == 0 {
                continue;
            }
            seen += weight;
            let is_reached = |place| matches!(place, Place::Rank(rank) if rank <= seen);
            while let Some((statistic, _)) = ranks.next_if(|&(_, place)| is_reached(place)) {
                figures.push((Metric::Rtt(statistic), in_millis(rtt)));
            }
        }
        figures.extend(limits.map(|limit_ms| (Metric::Within(limit_ms), share(seen, intended))));
        // What is left lies among the lost.
        figures.extend(ranks.map(|(statistic, _)| (Metric::Rtt(statistic), f64::INFINITY)));
        figures.push((Metric::Lost, share(intended - delivered, intended)));
        figures
    }
}

fn limit_nanos(limit_ms: u32) -> u64 {
    u64::from(limit_ms) * 1_000_000
}

/// Six decimals of a share and nanoseconds of a delay are more than a figure
/// of a draw can mean, and short to write.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A small generator of well-mixed numbers (G. L. Steele, D. Lea and C. H.
/// Flood, "Fast splittable pseudorandom number generators", 2014): the draws
/// are the same on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; the bias, at most `bound` in 2⁶⁴, is nothing.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::episodes;
    use lagometer_units::Time;
    use std::time::Duration;

    /// Messages every 50 ms, with round trips by their second.
    fn run(seconds: u64, rtt_ms: impl Fn(u64) -> u64) -> Vec<MessageRecord> {
        (0..seconds * 20)
            .map(|index| {
                let intended = Time::from_millis(index * 50);
                MessageRecord {
                    returned: Some(intended + Duration::from_millis(rtt_ms(index / 20))),
                    ..MessageRecord::due(intended)
                }
            })
            .collect()
    }

    fn drawn(records: &[MessageRecord]) -> Option<Resamples> {
        let episodes = episodes(records, Duration::from_millis(150), &[]);
        resamples(records, &episodes, &[50, 120])
    }

    fn finite(drawn: &Resamples, metric: &str) -> Vec<f64> {
        drawn.values[metric]
            .iter()
            .map(|value| value.unwrap())
            .collect()
    }

    #[test]
    fn a_short_run_says_nothing() {
        assert_eq!(drawn(&run(15, |_| 60)), None);
        assert_eq!(drawn(&[]), None);
    }

    #[test]
    fn a_run_that_never_varies_does_not_vary() {
        let drawn = drawn(&run(600, |_| 60)).unwrap();
        assert_eq!(drawn.blocks, 60);
        assert!((drawn.block_s - 10.0).abs() < 1e-12);
        for (metric, values) in &drawn.values {
            assert_eq!(values.len(), DRAWS, "{metric}");
            assert!(values.iter().all(|value| *value == values[0]), "{metric}");
        }
        assert_eq!(drawn.values["within_50ms"][0], Some(0.0));
        assert_eq!(drawn.values["within_120ms"][0], Some(1.0));
        assert_eq!(drawn.values["rtt_ms.p99"][0], Some(60.0));
    }

    #[test]
    fn draws_scatter_around_the_run_they_are_drawn_from() {
        // Every third block of ten seconds is late.
        let drawn = drawn(&run(600, |second| {
            if (second / 10).is_multiple_of(3) {
                400
            } else {
                60
            }
        }))
        .unwrap();
        let shares = finite(&drawn, "within_150ms");
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 2.0 / 3.0).abs() < 0.03, "{mean}");
        // The deviation of a share over 60 independent blocks.
        let variance = shares
            .iter()
            .map(|share| (share - mean).powi(2))
            .sum::<f64>()
            / shares.len() as f64;
        let expected = (2.0 / 9.0_f64 / 60.0).sqrt();
        assert!(
            (variance.sqrt() / expected - 1.0).abs() < 0.25,
            "{}",
            variance.sqrt()
        );
        let episodes = finite(&drawn, "episodes");
        let mean = episodes.iter().sum::<f64>() / episodes.len() as f64;
        assert!((mean - 20.0).abs() < 1.5, "{mean}");
    }

    #[test]
    fn lanes_of_one_run_draw_the_same_stretches() {
        let late = |second: u64| (second / 10).is_multiple_of(7);
        let one = drawn(&run(600, |second| if late(second) { 400 } else { 60 })).unwrap();
        let other = drawn(&run(600, |second| if late(second) { 900 } else { 70 })).unwrap();
        assert_eq!(one.values["within_150ms"], other.values["within_150ms"]);
    }

    #[test]
    fn a_quantile_is_infinite_in_draws_that_lose_more_than_it_allows_for() {
        // Only the first of ten stretches delivers anything.
        let mut records = run(100, |_| 60);
        for record in &mut records[200..] {
            record.returned = None;
        }
        let drawn = resamples(&records, &[], &[]).unwrap();
        let medians = &drawn.values["rtt_ms.p50"];
        assert_eq!(medians.len(), DRAWS);
        assert!(medians.iter().filter(|median| median.is_none()).count() > DRAWS / 2);
        let shares = finite(&drawn, "within_150ms");
        for (median, share) in medians.iter().zip(&shares) {
            // Half of what was intended, or more, arrived.
            assert_eq!(median.is_some(), *share >= 0.5);
        }
    }

    #[test]
    fn lost_messages_are_late_in_every_draw() {
        let mut records = run(100, |_| 60);
        for record in records.iter_mut().step_by(2) {
            record.returned = None;
        }
        let drawn = resamples(&records, &[], &[]).unwrap();
        assert!(
            drawn.values["within_2000ms"]
                .iter()
                .all(|share| share.is_some_and(|share| (share - 0.5).abs() < 1e-9))
        );
    }
}
