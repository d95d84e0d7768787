//! Randomness that follows from a seed: initial sequence numbers, ports,
//! time-stamp offsets and BBR's phase.
//!
//! What goes out on the wire and would help a forger is a keyed function of the seed
//! (RFC 6528, RFC 9293 section 3.4.1): [`Random`] gives itself away by two numbers.

/// `SplitMix64` (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next 32 bits.
    pub(crate) const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number below `limit` (Linux 6.1 `prandom_u32_max`); 0 if that is 0.
    pub(crate) const fn below(&mut self, limit: u32) -> u32 {
        ((self.next_u32() as u64 * limit as u64) >> 32) as u32
    }
}

/// `SipHash`-2-4 of words (Aumasson, Bernstein, "`SipHash`: a fast short-input PRF", 2012;
/// Linux 6.1 `secure_tcp_seq` has it, too): who sees many of its values learns neither the
/// key nor another.
pub(crate) fn keyed(key: (u64, u64), words: &[u64]) -> u64 {
    let mut state = [
        key.0 ^ 0x736f_6d65_7073_6575,
        key.1 ^ 0x646f_7261_6e64_6f6d,
        key.0 ^ 0x6c79_6765_6e65_7261,
        key.1 ^ 0x7465_6462_7974_6573,
    ];
    let length = (words.len() as u64 * 8) << 56;
    for word in words.iter().chain(&[length]) {
        state[3] ^= word;
        round(&mut state);
        round(&mut state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

const fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::keyed;

    #[test]
    fn the_keyed_function_is_siphash_2_4() {
        // The paper's key, and the first vectors of its reference whose length is a
        // multiple of eight bytes.
        let key = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(keyed(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(keyed(key, &[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
    }
}
