//! Samples that are sorted once and counted anew for every resample.

/// Samples in nanoseconds in ascending order, each with the unit that a resample draws
/// it with.
#[derive(Debug, Default)]
pub struct SortedSamples {
    nanos: Vec<u64>,
    units: Vec<u32>,
}

/// How many samples are counted together: a rank is looked for among the
/// counts, then within one of them.
const TOGETHER: usize = 256;

impl SortedSamples {
    /// Of samples in nanoseconds, each with its unit.
    #[must_use]
    pub fn new(mut samples: Vec<(u64, u32)>) -> Self {
        samples.sort_unstable();
        let (nanos, units) = samples.into_iter().unzip();
        Self { nanos, units }
    }

    /// How many samples are at most so long.
    #[must_use]
    pub fn at_most(&self, nanos: u64) -> usize {
        self.nanos.partition_point(|&rtt| rtt <= nanos)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The units of the shortest `count`.
    #[must_use]
    pub fn units_of_first(&self, count: usize) -> &[u32] {
        &self.units[..count]
    }

    /// Counts them in a draw that took unit `i` `drawn[i]` times.
    #[must_use]
    pub fn counted<'a>(&'a self, drawn: &'a [u64]) -> Counted<'a> {
        let mut counts = vec![0];
        let mut sum = 0;
        for units in self.units.chunks(TOGETHER) {
            sum += times(units, drawn);
            counts.push(sum);
        }
        Counted {
            sorted: self,
            drawn,
            counts,
        }
    }
}

/// The samples of one draw.
#[derive(Debug)]
pub struct Counted<'a> {
    sorted: &'a SortedSamples,
    drawn: &'a [u64],
    /// How many the draw took before each [`TOGETHER`] of them, and of all.
    counts: Vec<u64>,
}

impl Counted<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts.last().copied().unwrap_or(0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many the draw took of the run's first `count`.
    #[must_use]
    pub fn among_first(&self, count: usize) -> u64 {
        let whole = count / TOGETHER;
        let rest = &self.sorted.units[whole * TOGETHER..count];
        self.counts[whole] + times(rest, self.drawn)
    }

    /// The one of a rank from 1 to [`len`](Self::len), in nanoseconds.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> u64 {
        let within = self.counts.partition_point(|&count| count < rank).max(1) - 1;
        let mut seen = self.counts[within];
        let from = within * TOGETHER;
        let reaches = self.sorted.units[from..].iter().position(|&unit| {
            seen += self.drawn[unit as usize];
            seen >= rank
        });
        self.sorted.nanos[from + reaches.unwrap_or(0)]
    }
}

/// How many samples of these units a draw took.
fn times(units: &[u32], drawn: &[u64]) -> u64 {
    units.iter().map(|&unit| drawn[unit as usize]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The reference: every sample written out as often as it was drawn.
        #[test]
        fn counts_and_ranks_are_those_of_the_draw_written_out(
            rtts in prop::collection::vec((0_u64..500, 0_u32..6), 0..1_500),
            drawn in prop::collection::vec(0_u64..4, 6),
            limit in 0_u64..500,
        ) {
            let mut all: Vec<u64> = rtts
                .iter()
                .flat_map(|&(rtt, unit)| vec![rtt; drawn[unit as usize] as usize])
                .collect();
            all.sort_unstable();
            let sorted = SortedSamples::new(rtts);
            let counted = sorted.counted(&drawn);
            prop_assert_eq!(counted.len(), all.len() as u64);
            let within = all.iter().filter(|&&rtt| rtt <= limit).count();
            prop_assert_eq!(counted.among_first(sorted.at_most(limit)), within as u64);
            let first: u64 = sorted
                .units_of_first(sorted.at_most(limit))
                .iter()
                .map(|&unit| drawn[unit as usize])
                .sum();
            prop_assert_eq!(first, within as u64);
            for (index, &rtt) in all.iter().enumerate() {
                prop_assert_eq!(counted.at_rank(index as u64 + 1), rtt);
            }
        }
    }
}
