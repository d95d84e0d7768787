//! The statistics of a log by the conventions of its time: counted in
//! samples, since the log has no send times.

use std::time::Duration;

use lagometer_stats::at_rank;

use super::Log;
use crate::document::{ImportedStatistics, ShareOver};
use crate::record::millis;
use crate::within::share;

/// Limits for which the share of samples above them is given.
const OVER_LIMITS_MS: [u32; 5] = [100, 200, 500, 1000, 2000];

/// The fixed threshold, so that logs of unlike medians can be compared.
const FIXED_THRESHOLD_MS: u64 = 500;

/// Runs with fewer good samples than this between them are one episode.
const JOINING_GOOD_SAMPLES: usize = 5;

impl Log {
    /// The statistics, each sample standing for `spacing`, the interval at
    /// which the client meant to send: 50 ms for most of the logs.
    #[must_use]
    pub fn statistics(&self, spacing: Duration) -> ImportedStatistics {
        let rtts: Vec<u64> = self
            .echoes
            .iter()
            .map(|echo| u64::from(echo.rtt_ms))
            .collect();
        let mut sorted = rtts.clone();
        sorted.sort_unstable();
        let samples = rtts.len() as u64;
        let threshold_ms = 3 * at_rank(&sorted, 500);
        let episodes = runs_above(&rtts, threshold_ms);
        let fixed = runs_above(&rtts, FIXED_THRESHOLD_MS);
        let lengths: Vec<usize> = episodes.iter().map(Run::len).collect();
        let recoveries: Vec<usize> = episodes.iter().map(|run| run.recovery(&rtts)).collect();
        let lasting = |samples: usize| millis(spacing) * samples as f64;
        let from_1s = |&&length: &&usize| lasting(length) >= 1000.0;
        ImportedStatistics {
            samples,
            spacing_ms: millis(spacing),
            clock: self.clock.clone(),
            over: OVER_LIMITS_MS
                .iter()
                .map(|&limit_ms| {
                    let within = sorted.partition_point(|&rtt| rtt <= u64::from(limit_ms));
                    ShareOver {
                        limit_ms,
                        share: share(samples - within as u64, samples),
                    }
                })
                .collect(),
            threshold_ms,
            episodes: episodes.len() as u64,
            episodes_from_1s: lengths.iter().filter(from_1s).count() as u64,
            share_in_episodes: share(lengths.iter().sum::<usize>() as u64, samples),
            median_episode_ms: lasting(upper_median(&lengths)),
            worst_episode_ms: lasting(longest(&lengths)),
            median_recovery_ms: lasting(upper_median(&recoveries)),
            worst_recovery_ms: lasting(longest(&recoveries)),
            episodes_500ms: fixed.len() as u64,
            worst_episode_500ms_ms: lasting(fixed.iter().map(Run::len).max().unwrap_or(0)),
            stray_lines: self.stray_lines,
            damaged_lines: self.damaged_lines,
        }
    }
}

/// An episode: its first and last sample above the threshold, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: usize,
    last: usize,
}

impl Run {
    /// Samples in it, the good ones within included.
    const fn len(&self) -> usize {
        self.last - self.first + 1
    }

    /// Samples from its largest round trip, the first of equals, to its end.
    fn recovery(&self, rtts: &[u64]) -> usize {
        let run = &rtts[self.first..=self.last];
        let worst = run.iter().max().copied().unwrap_or(0);
        let at = run.iter().position(|&rtt| rtt == worst).unwrap_or(0);
        run.len() - at
    }
}

fn runs_above(rtts: &[u64], threshold_ms: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, _) in rtts
        .iter()
        .enumerate()
        .filter(|&(_, &rtt)| rtt > threshold_ms)
    {
        match runs.last_mut() {
            Some(run) if index - run.last <= JOINING_GOOD_SAMPLES => run.last = index,
            _ => runs.push(Run {
                first: index,
                last: index,
            }),
        }
    }
    runs
}

/// The middle value, or the larger of the two in the middle; zero of none.
fn upper_median(values: &[usize]) -> usize {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn longest(values: &[usize]) -> usize {
    values.iter().max().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_good_samples_join_and_five_part() {
        let run = |first, last| Run { first, last };
        assert_eq!(runs_above(&[9, 1, 1, 1, 1, 9], 5), [run(0, 5)]);
        assert_eq!(
            runs_above(&[9, 1, 1, 1, 1, 1, 9], 5),
            [run(0, 0), run(6, 6)]
        );
        assert!(
            runs_above(&[5, 5], 5).is_empty(),
            "the threshold itself is good"
        );
    }

    #[test]
    fn recovery_is_counted_from_the_largest() {
        let run = Run { first: 1, last: 4 };
        assert_eq!(run.recovery(&[0, 7, 9, 9, 8, 0]), 3);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_upper_one() {
        assert_eq!(upper_median(&[]), 0);
        assert_eq!(upper_median(&[4]), 4);
        assert_eq!(upper_median(&[1, 4]), 4);
        assert_eq!(upper_median(&[9, 1, 4]), 4);
    }

    proptest! {
        #[test]
        fn runs_cover_what_is_above_and_lie_apart(
            rtts in proptest::collection::vec(0_u64..10, 0..100),
        ) {
            let runs = runs_above(&rtts, 6);
            for (index, &rtt) in rtts.iter().enumerate() {
                let covered = runs.iter().any(|run| (run.first..=run.last).contains(&index));
                prop_assert!(covered || rtt <= 6);
            }
            for run in &runs {
                prop_assert!(rtts[run.first] > 6 && rtts[run.last] > 6);
            }
            for pair in runs.windows(2) {
                prop_assert!(pair[1].first - pair[0].last > JOINING_GOOD_SAMPLES);
            }
        }
    }
}
