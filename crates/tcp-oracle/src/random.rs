//! Randomness that follows from a seed.

use lagometer_units::SplitMix64;

/// A source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    /// The numbers of `seed`, and of what is drawn for by `purpose`.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut random = Self(SplitMix64::new(
            seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93),
        ));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A number from `low` to `high`, whose logarithm is spread evenly.
    pub(crate) fn spread(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low as f64, high as f64);
        (low * (high / low).powf(self.share())) as u64
    }

    /// At least 0 and less than 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in so large a share of the calls.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.share() < share
    }

    /// One of them.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()]
    }
}
