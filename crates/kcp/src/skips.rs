//! Which segments an acknowledgement skips, found without a look at the rest.
//!
//! A tree of minima stands over a ring of the sequence numbers in flight. A
//! leaf holds the instant of the segment's last transmission while it matters
//! whether the segment is skipped again, and "never" otherwise: once it is
//! gone, may not be resent early any more, or has been skipped often enough.
//! So each visit to a leaf counts, and a segment is visited at most as often
//! as its threshold says for each of its transmissions.

/// Later than every transmission.
const NEVER: i64 = i64::MAX;

/// The instants of last transmission of the segments whose skips are counted.
#[derive(Debug, Default)]
pub(crate) struct SkipIndex {
    /// `2 * leaves` minima; the root is at 1, the leaves are the second half.
    /// Leaves outside what is in flight hold what was there before: queries
    /// never look at them, and nothing clears them.
    minima: Vec<i64>,
    leaves: usize,
}

impl SkipIndex {
    /// How many segments have room.
    pub(crate) const fn leaves(&self) -> usize {
        self.leaves
    }

    /// Makes room for at least `segments` and forgets everything.
    pub(crate) fn reset(&mut self, segments: usize) {
        self.leaves = segments.next_power_of_two();
        self.minima.clear();
        self.minima.resize(2 * self.leaves, NEVER);
    }

    /// The segment was last sent at `sent`, and its skips count.
    pub(crate) fn watch(&mut self, sequence: u32, sent: i64) {
        self.set(sequence, sent);
    }

    /// The skips of the segment do not count any more.
    pub(crate) fn ignore(&mut self, sequence: u32) {
        self.set(sequence, NEVER);
    }

    /// The `count` segments from `first` on were sent at `sent`, and their
    /// skips count.
    pub(crate) fn watch_run(&mut self, first: u32, count: usize, sent: i64) {
        let (one, two) = self.spans(first, count);
        for (from, to) in [one, two] {
            if from < to {
                self.fill(from, to, sent);
            }
        }
    }

    /// Appends to `out` those of the `count` segments from `first` on that
    /// were last sent at `limit` or before, with the instants.
    pub(crate) fn sent_by(&self, first: u32, count: usize, limit: i64, out: &mut Vec<(u32, i64)>) {
        let origin = first as usize & self.mask();
        let (one, two) = self.spans(first, count);
        for (from, to) in [one, two] {
            if from < to {
                let query = Query {
                    from,
                    to,
                    limit,
                    origin,
                    first,
                };
                self.gather(&query, 1, 0, self.leaves, out);
            }
        }
    }

    const fn mask(&self) -> usize {
        self.leaves - 1
    }

    /// The ring positions of `count` segments from `first` on: one stretch up
    /// to the ring's end, and one from its start.
    fn spans(&self, first: u32, count: usize) -> ((usize, usize), (usize, usize)) {
        let from = first as usize & self.mask();
        let to = from + count.min(self.leaves);
        (
            (from, to.min(self.leaves)),
            (0, to.saturating_sub(self.leaves)),
        )
    }

    fn set(&mut self, sequence: u32, value: i64) {
        let mut node = self.leaves + (sequence as usize & self.mask());
        self.minima[node] = value;
        while node > 1 {
            node /= 2;
            let least = self.minima[2 * node].min(self.minima[2 * node + 1]);
            if self.minima[node] == least {
                break;
            }
            self.minima[node] = least;
        }
    }

    /// Fills leaves `from..to`, then renews the nodes above, level by level.
    fn fill(&mut self, from: usize, to: usize, value: i64) {
        let (mut low, mut high) = (self.leaves + from, self.leaves + to - 1);
        self.minima[low..=high].fill(value);
        while low > 1 {
            low /= 2;
            high /= 2;
            for node in low..=high {
                self.minima[node] = self.minima[2 * node].min(self.minima[2 * node + 1]);
            }
        }
    }

    fn gather(
        &self,
        query: &Query,
        node: usize,
        low: usize,
        width: usize,
        out: &mut Vec<(u32, i64)>,
    ) {
        if self.minima[node] > query.limit || low >= query.to || low + width <= query.from {
            return;
        }
        if width == 1 {
            let offset = low.wrapping_sub(query.origin) & self.mask();
            out.push((query.first.wrapping_add(offset as u32), self.minima[node]));
            return;
        }
        let half = width / 2;
        self.gather(query, 2 * node, low, half, out);
        self.gather(query, 2 * node + 1, low + half, half, out);
    }
}

/// Leaves `from..to` at or below `limit`; `origin` is the leaf of segment
/// `first`.
struct Query {
    from: usize,
    to: usize,
    limit: i64,
    origin: usize,
    first: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain array, over the wrap of the sequence numbers and
        /// of the ring.
        #[test]
        fn it_finds_what_a_scan_finds(
            steps in prop::collection::vec((0_u8..4, 0_u32..16, 0_usize..17, 0_i64..30), 1..100),
        ) {
            let mut index = SkipIndex::default();
            index.reset(16);
            prop_assert_eq!(index.leaves(), 16);
            let mut first = u32::MAX - 8;
            let mut plain = [NEVER; 16];
            for (what, offset, count, instant) in steps {
                let sequence = first.wrapping_add(offset);
                let at = |sequence: u32| sequence as usize % 16;
                match what {
                    0 => {
                        index.watch(sequence, instant);
                        plain[at(sequence)] = instant;
                    }
                    1 => {
                        index.ignore(sequence);
                        plain[at(sequence)] = NEVER;
                    }
                    2 => {
                        index.watch_run(sequence, count, instant);
                        for step in 0..count.min(16) as u32 {
                            plain[at(sequence.wrapping_add(step))] = instant;
                        }
                        first = first.wrapping_add(1);
                    }
                    _ => {
                        let mut found = Vec::new();
                        index.sent_by(sequence, count, instant, &mut found);
                        let expected: Vec<(u32, i64)> = (0..count.min(16) as u32)
                            .map(|step| sequence.wrapping_add(step))
                            .map(|sequence| (sequence, plain[at(sequence)]))
                            .filter(|&(_, sent)| sent <= instant)
                            .collect();
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }
    }
}
