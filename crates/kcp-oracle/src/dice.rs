//! Seeded randomness, enough for tests.

use lagometer_units::SplitMix64;

/// A source of numbers that depends on its seed alone.
#[derive(Clone, Debug)]
pub struct Dice(SplitMix64);

impl Dice {
    /// The source for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.any() % limit
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of a hundred throws.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
