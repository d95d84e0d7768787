//! `SplitMix64`: well-mixed numbers that follow from a seed, the same on every machine
//! (G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number Generators",
//! OOPSLA 2014; constants of the finaliser by D. Stafford, "Mix13").
//!
//! Two of its numbers give the seed away: it is for models, tests and payloads, not for
//! what a peer must not guess.

/// The odd number nearest to 2^64 divided by the golden ratio: what the generator adds to
/// its state for each number.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The generator's finaliser: a bijection in which every bit of the input flips every bit
/// of the output with a probability near one half. It leaves 0 as it is.
#[inline]
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The generator.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator of this seed.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The first number of the generator of this seed: a hash of the seed.
    #[inline]
    #[must_use]
    pub const fn first(seed: u64) -> u64 {
        mix(seed.wrapping_add(GOLDEN))
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // The first outputs of S. Vigna's `splitmix64.c` for this seed.
        let mut generator = SplitMix64::new(1_234_567);
        let numbers: [u64; 5] = std::array::from_fn(|_| generator.next_u64());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
        assert_eq!(SplitMix64::first(1_234_567), numbers[0]);
    }
}
