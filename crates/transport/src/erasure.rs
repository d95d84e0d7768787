//! An erasure code: from some shards, parity shards from which as many lost ones
//! can be computed, whichever they are.
//!
//! One parity shard is the exclusive or of all. Several are those of the
//! Reed-Solomon code over GF(2^8) with the polynomial 0x11d whose matrix is
//! Vandermonde's, made systematic (Plank 1997 with the correction of Plank and
//! Ding 2005), as the crate `reed-solomon-erasure` has it and
//! klauspost/reedsolomon, which kcp-go uses.
//!
//! A group may have fewer shards than the code is for: those that are not there
//! count as zeros, of which nothing need be sent.

use reed_solomon_erasure::galois_8::ReedSolomon;

/// A code for up to so many shards.
#[derive(Debug)]
pub(crate) struct ErasureCode {
    data: usize,
    parity: usize,
    /// `None`: one parity shard, the exclusive or.
    reed_solomon: Option<ReedSolomon>,
}

impl ErasureCode {
    /// A code for up to `data` shards, with up to `parity` parity shards; both
    /// from 1, together 256 at most.
    pub(crate) fn new(data: usize, parity: usize) -> Self {
        Self {
            data,
            parity,
            reed_solomon: (parity > 1).then(|| matrix(data, parity)),
        }
    }

    /// The same, but Reed-Solomon's even with one parity shard.
    pub(crate) fn reed_solomon(data: usize, parity: usize) -> Self {
        Self {
            data,
            parity,
            reed_solomon: Some(matrix(data, parity)),
        }
    }

    /// The first `count` parity shards of the `shards`, as long as the longest
    /// of these; shorter ones count as filled up with zeros.
    pub(crate) fn encode(&self, shards: &[&[u8]], count: usize) -> Vec<Vec<u8>> {
        let longest = shards.iter().map(|shard| shard.len()).max().unwrap_or(0);
        let mut padded = Vec::with_capacity(longest);
        let mut parity = vec![vec![0; longest]; self.parity];
        for (index, shard) in shards.iter().enumerate().take(self.data) {
            padded.clear();
            padded.extend_from_slice(shard);
            padded.resize(longest, 0);
            if let Some(code) = &self.reed_solomon {
                code.encode_single_sep(index, &padded, &mut parity)
                    .expect("the shards have one length");
            } else {
                add(&mut parity[0], &padded);
            }
        }
        parity.truncate(count);
        parity
    }

    /// Fills the gaps in `shards` from the `parity` shards there are, each with
    /// its index. All have the length `bytes`: shorter `shards` are filled up
    /// with zeros, and so are the recovered ones. Returns whether there was
    /// enough to do it; otherwise the gaps stay.
    pub(crate) fn recover(
        &self,
        shards: &mut [Option<Vec<u8>>],
        parity: &[(u8, Vec<u8>)],
        bytes: usize,
    ) -> bool {
        let is_sound = |shard: &Vec<u8>| shard.len() <= bytes;
        let fits = shards.len() <= self.data
            && shards.iter().flatten().all(is_sound)
            && parity.iter().all(|(_, shard)| shard.len() == bytes);
        let missing = shards.iter().filter(|shard| shard.is_none()).count();
        if !fits || missing > parity.len() {
            return false;
        }
        for shard in shards.iter_mut().flatten() {
            shard.resize(bytes, 0);
        }
        if let Some(code) = &self.reed_solomon {
            self.solve(code, shards, parity, bytes)
        } else {
            fill_in(shards, parity)
        }
    }

    /// [`recover`](Self::recover) by Reed-Solomon.
    fn solve(
        &self,
        code: &ReedSolomon,
        shards: &mut [Option<Vec<u8>>],
        parity: &[(u8, Vec<u8>)],
        bytes: usize,
    ) -> bool {
        let mut all: Vec<Option<Vec<u8>>> = shards.iter_mut().map(Option::take).collect();
        let gaps: Vec<usize> = (0..all.len()).filter(|&at| all[at].is_none()).collect();
        all.resize(self.data, Some(vec![0; bytes]));
        all.resize(self.data + self.parity, None);
        for (index, shard) in parity {
            if let Some(place) = all.get_mut(self.data + usize::from(*index)) {
                *place = Some(shard.clone());
            }
        }
        let is_solved = bytes > 0 && code.reconstruct_data(&mut all).is_ok();
        for (at, shard) in shards.iter_mut().enumerate() {
            if is_solved || !gaps.contains(&at) {
                *shard = all[at].take();
            }
        }
        is_solved
    }
}

/// [`ErasureCode::recover`] where the only parity shard is the exclusive
/// or.
fn fill_in(shards: &mut [Option<Vec<u8>>], parity: &[(u8, Vec<u8>)]) -> bool {
    let gap = shards.iter().position(Option::is_none);
    let (Some(gap), Some((0, parity))) = (gap, parity.first()) else {
        return gap.is_none();
    };
    let mut recovered = parity.clone();
    for shard in shards.iter().flatten() {
        add(&mut recovered, shard);
    }
    shards[gap] = Some(recovered);
    true
}

fn matrix(data: usize, parity: usize) -> ReedSolomon {
    ReedSolomon::new(data, parity).expect("from 1 each and together 256 at most is a code")
}

/// Adds `other` to `sum` in GF(2^8), byte by byte.
fn add(sum: &mut [u8], other: &[u8]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Multiplication in GF(2^8) with the polynomial 0x11d, bit by bit.
    fn times(mut left: u8, mut right: u8) -> u8 {
        let mut product = 0;
        while right > 0 {
            if right & 1 == 1 {
                product ^= left;
            }
            left = (left << 1) ^ if left & 0x80 == 0 { 0 } else { 0x1d };
            right >>= 1;
        }
        product
    }

    fn power(base: u8, exponent: usize) -> u8 {
        (0..exponent).fold(1, |power, _| times(power, base))
    }

    /// The parity shards solve Vandermonde's equations: the shards are values at
    /// 0, 1, 2, … of a polynomial of a degree below their number, and the parity
    /// shards its values at the points that follow.
    #[test]
    fn parity_is_vandermondes_over_0x11d() {
        let code = ErasureCode::new(4, 3);
        let coefficients = [0x53_u8, 0xca, 0x01, 0xfe];
        let value = |point: u8| {
            let terms = coefficients.iter().enumerate();
            terms.fold(0, |sum, (degree, &c)| sum ^ times(c, power(point, degree)))
        };
        let shards: Vec<[u8; 1]> = (0..4).map(|point| [value(point)]).collect();
        let shards: Vec<&[u8]> = shards.iter().map(|shard| &shard[..]).collect();
        let expected: Vec<Vec<u8>> = (4..7).map(|point| vec![value(point)]).collect();
        assert_eq!(code.encode(&shards, 3), expected);
    }

    #[test]
    fn one_parity_shard_is_the_exclusive_or() {
        let code = ErasureCode::new(3, 1);
        let parity = code.encode(&[&[1, 2, 4], &[8], &[16, 32]], 1);
        assert_eq!(parity, [vec![1 ^ 8 ^ 16, 2 ^ 32, 4]]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for code in [ErasureCode::new(3, 1), ErasureCode::new(3, 2)] {
            let parity = vec![(0, vec![7, 7])];
            let mut two_gaps = [None, Some(vec![1]), None];
            assert!(!code.recover(&mut two_gaps, &parity, 2));
            let mut longer = [None, Some(vec![1, 2, 3])];
            assert!(!code.recover(&mut longer, &parity, 2));
            let mut more = [None, Some(vec![]), Some(vec![]), Some(vec![])];
            assert!(!code.recover(&mut more, &parity, 2));
            let mut one_gap = [None, Some(vec![1])];
            assert!(!code.recover(&mut one_gap, &[(9, vec![7, 7])], 2));
            assert_eq!(one_gap[0], None);
            assert!(!code.recover(&mut one_gap, &[(0, vec![7])], 2));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_lost_comes_back_while_there_is_parity_for_it(
            shards in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..9),
            parity in 1_usize..6,
            spare in 0_usize..4,
            lost in any::<u16>(),
        ) {
            let code = ErasureCode::new(shards.len() + spare, parity);
            let slices: Vec<&[u8]> = shards.iter().map(|shard| &shard[..]).collect();
            let encoded = code.encode(&slices, parity);
            let bytes = encoded[0].len();
            let is_lost = |index: usize| lost >> index & 1 == 1;
            let mut arrived: Vec<Option<Vec<u8>>> = shards.iter().enumerate()
                .map(|(index, shard)| (!is_lost(index)).then(|| shard.clone())).collect();
            let kept: Vec<(u8, Vec<u8>)> = encoded.into_iter().enumerate()
                .filter(|(index, _)| !is_lost(10 + index))
                .map(|(index, shard)| (index as u8, shard)).collect();
            let missing = arrived.iter().filter(|shard| shard.is_none()).count();
            let expected = missing <= kept.len();
            prop_assert_eq!(code.recover(&mut arrived, &kept, bytes), expected);
            for (index, (arrived, sent)) in arrived.iter().zip(&shards).enumerate() {
                match arrived {
                    Some(arrived) => prop_assert_eq!(&arrived[..sent.len()], &sent[..]),
                    None => prop_assert!(is_lost(index) && !expected),
                }
            }
        }
    }
}
