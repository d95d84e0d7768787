//! The tests' own randomness, from a seed.

use std::time::Duration;

use lagometer_units::SplitMix64;

/// A seeded stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(SplitMix64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 up to, not including, `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound.max(1) as u64) as usize
    }

    pub(crate) fn comes_up(&mut self, probability: f64) -> bool {
        let share = (self.roll() >> 11) as f64 / (1_u64 << 53) as f64;
        share < probability
    }

    pub(crate) fn up_to(&mut self, span: Duration) -> Duration {
        Duration::from_nanos(self.roll() % (span.as_nanos() as u64 + 1))
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.roll() as u8).collect()
    }

    /// Flips a burst of 1 to 15 bits, the first and last among them.
    pub(crate) fn flip_burst(&mut self, datagram: &mut [u8]) {
        let bits = datagram.len() * 8;
        if bits == 0 {
            return;
        }
        let length = 1 + self.below(15);
        let start = self.below(bits);
        let end = (start + length - 1).min(bits - 1);
        for bit in start..=end {
            if bit == start || bit == end || self.comes_up(0.5) {
                datagram[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
