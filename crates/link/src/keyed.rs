//! Counter-based randomness: a draw is a hash of what it is for, never the next
//! number of a generator, so that one lane's traffic cannot change another's draws.

use lagometer_units::{GOLDEN, mix};

/// What a draw decides. The numbers are part of the model: changing one
/// changes every fate of every seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Loss = 1,
    BurstLoss = 2,
    BurstSpans = 3,
    Jitter = 4,
    JitterWander = 5,
    Outages = 6,
    Stalls = 7,
    Handover = 8,
    Duplication = 9,
    Reordering = 10,
    Corruption = 11,
    CorruptionOfCopy = 12,
    EarlyDetection = 13,
    FlowHash = 14,
    CrossTraffic = 15,
}

/// Whom a draw concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Both directions, at the same instant.
    Both = 0,
    /// The direction up alone.
    Up = 1,
    /// The direction down alone.
    Down = 2,
}

/// All draws of one seed for one purpose and scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    pub(crate) const fn new(seed: u64, scope: Scope, purpose: Purpose) -> Self {
        let named = mix(seed.wrapping_add(GOLDEN)) ^ ((scope as u64) << 32 | purpose as u64);
        Self(mix(named.wrapping_add(GOLDEN)))
    }

    /// The stream of the `position`-th of several things with one purpose.
    pub(crate) const fn nth(self, position: u64) -> Self {
        Self(self.draw(u64::MAX, position))
    }

    /// 64 even bits for the packet or event `index` of `slot`.
    #[inline]
    pub(crate) const fn draw(self, slot: u64, index: u64) -> u64 {
        let slotted = mix(self.0 ^ slot.wrapping_mul(GOLDEN));
        mix(slotted.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// An even draw strictly between 0 and 1.
    #[inline]
    pub(crate) fn unit(self, slot: u64, index: u64) -> f64 {
        // 52 bits and a half: the largest such number is still below one.
        ((self.draw(slot, index) >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// Whether a coin that shows heads with `probability` does.
    #[inline]
    pub(crate) fn heads(self, slot: u64, index: u64, probability: f64) -> bool {
        probability > 0.0 && self.unit(slot, index) < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn correlation(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
        let (mut n, mut xy) = (0.0, 0.0);
        for (x, y) in pairs {
            n += 1.0;
            xy += (x - 0.5) * (y - 0.5);
        }
        // The variance of an even draw is 1/12.
        xy / n * 12.0
    }

    #[test]
    fn draws_are_even() {
        let stream = Stream::new(1, Scope::Up, Purpose::Loss);
        let mut bins = [0_u32; 100];
        for slot in 0..100_000 {
            bins[(stream.unit(slot, 0) * 100.0) as usize] += 1;
        }
        let chi2: f64 = bins
            .iter()
            .map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0)
            .sum();
        // 99 degrees of freedom: 99.99 % lie below 160.
        assert!(chi2 < 160.0, "{chi2}");
    }

    #[test]
    fn neighbours_know_nothing_of_each_other() {
        let at =
            |seed, scope, purpose, slot, index| Stream::new(seed, scope, purpose).unit(slot, index);
        let base = |n| at(7, Scope::Up, Purpose::Loss, n, 0);
        let n = 50_000;
        // One deviation of the estimate is 1/sqrt(50 000) = 0.0045.
        for other in [
            correlation((0..n).map(|i| (base(i), base(i + 1)))),
            correlation((0..n).map(|i| (base(i), at(7, Scope::Up, Purpose::Loss, i, 1)))),
            correlation((0..n).map(|i| (base(i), at(8, Scope::Up, Purpose::Loss, i, 0)))),
            correlation((0..n).map(|i| (base(i), at(7, Scope::Down, Purpose::Loss, i, 0)))),
            correlation((0..n).map(|i| (base(i), at(7, Scope::Up, Purpose::BurstLoss, i, 0)))),
            correlation((0..n).map(|i| {
                (
                    at(i, Scope::Up, Purpose::Loss, 3, 0),
                    at(i + 1, Scope::Up, Purpose::Loss, 3, 0),
                )
            })),
        ] {
            assert!(other.abs() < 0.02, "{other}");
        }
    }

    #[test]
    fn one_in_a_hundred_is_one_in_a_hundred() {
        let stream = Stream::new(3, Scope::Down, Purpose::Corruption);
        let heads = (0..200_000).filter(|&n| stream.heads(n, 0, 0.01)).count();
        assert!((1_800..2_200).contains(&heads), "{heads}");
        assert!(!stream.heads(0, 0, 0.0));
        assert!((0..1000).all(|n| stream.heads(n, 0, 1.0)));
    }
}
