//! kcp-go's forward error correction: `fec.go` of its release 5.4.20, the same
//! bytes and the same habits.
//!
//! Every datagram of a session is a shard: behind its number (4 bytes), what it
//! is (2 bytes: `0xf1` data, `0xf2` parity) and, of data, its length (2 bytes, its
//! own two included), all little-endian. After so many of data as a group has come
//! its parity shards, computed from the lengths and what follows them, by the
//! Reed-Solomon code of klauspost/reedsolomon (the same as
//! [`erasure`](crate::erasure)'s). There is no time limit: a group waits for its
//! last datagram, however long it takes.

use std::time::Duration;

use lagometer_kcp::HEADER_BYTES;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::BadSetting;
use crate::erasure::ErasureCode;
use crate::transport::within;

/// Bytes in front of a datagram of KCP's.
pub(crate) const FEC_HEADER_BYTES: usize = SHARD_HEADER_BYTES + 2;

/// Bytes in front of what is coded.
const SHARD_HEADER_BYTES: usize = 6;

const DATA: u16 = 0xf1;
const PARITY: u16 = 0xf2;

/// So many groups of shards are kept (`rxFECMulti`).
const GROUPS_KEPT: usize = 3;

/// For so long (`fecExpire`).
const EXPIRES_AFTER: Duration = Duration::from_mins(1);

/// The longest datagram that is read (`mtuLimit`), unless ours are longer.
const LONGEST_READ_BYTES: usize = 1500;

/// How many datagrams make a group, and how many of parity follow it. Both ends
/// must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FecGroup {
    /// Datagrams of a group; 1 to 128.
    pub data: u8,
    /// Parity datagrams of a group: as many of its datagrams may be lost. 1 to
    /// 64.
    pub parity: u8,
}

impl FecGroup {
    /// Whether both are in their range.
    pub(crate) fn check(self) -> Result<(), BadSetting> {
        within("fec.data", self.data, 1..=128)?;
        within("fec.parity", self.parity, 1..=64)
    }
}

/// What makes groups of the datagrams of a session, and what reads them.
#[derive(Debug)]
pub(crate) struct Fec {
    data: usize,
    parity: usize,
    code: ErasureCode,
    encoder: Encoder,
    decoder: Decoder,
}

/// The group that is being sent.
#[derive(Debug, Default)]
struct Encoder {
    next: u32,
    shards: Vec<Vec<u8>>,
}

/// Shards that have come, in the order of their numbers.
#[derive(Debug)]
struct Decoder {
    shards: Vec<Shard>,
    longest_bytes: usize,
}

/// A shard that has come.
#[derive(Clone, Debug)]
struct Shard {
    number: u32,
    kind: u16,
    /// What is coded.
    bytes: Vec<u8>,
    arrived: Time,
}

/// What a datagram brings.
#[derive(Debug, Default)]
pub(crate) struct Decoded<'a> {
    /// The datagram of KCP's in it.
    pub(crate) regular: Option<&'a [u8]>,
    /// Those that were lost and are recovered.
    pub(crate) recovered: Vec<Vec<u8>>,
}

impl Fec {
    /// Groups of datagrams of up to `mtu` bytes.
    pub(crate) fn new(group: FecGroup, mtu: usize) -> Self {
        let (data, parity) = (usize::from(group.data), usize::from(group.parity));
        Self {
            data,
            parity,
            code: ErasureCode::reed_solomon(data, parity),
            encoder: Encoder::default(),
            decoder: Decoder {
                shards: Vec::new(),
                longest_bytes: mtu.max(LONGEST_READ_BYTES),
            },
        }
    }

    /// Sends a datagram of KCP's, and the parity of the group it completes.
    pub(crate) fn send(&mut self, datagram: &[u8], output: &mut dyn FnMut(&[u8])) {
        let length = (datagram.len() + 2) as u16;
        let mut shard = length.to_le_bytes().to_vec();
        shard.extend_from_slice(datagram);
        output(&self.encoder.marked(DATA, &shard));
        self.encoder.next = self.encoder.next.wrapping_add(1);
        self.encoder.shards.push(shard);
        if self.encoder.shards.len() < self.data {
            return;
        }
        let shards = std::mem::take(&mut self.encoder.shards);
        let slices: Vec<&[u8]> = shards.iter().map(Vec::as_slice).collect();
        for parity in self.code.encode(&slices, self.parity) {
            output(&self.encoder.marked(PARITY, &parity));
            self.encoder.next = (self.encoder.next + 1) % self.numbers();
        }
    }

    /// Takes in a datagram that came at `now`. What is none of kcp-go's brings
    /// nothing.
    pub(crate) fn receive<'a>(&mut self, now: Time, datagram: &'a [u8]) -> Decoded<'a> {
        let Some((number, rest)) = datagram.split_first_chunk() else {
            return Decoded::default();
        };
        let Some((kind, bytes)) = rest.split_first_chunk() else {
            return Decoded::default();
        };
        let (number, kind) = (u32::from_le_bytes(*number), u16::from_le_bytes(*kind));
        let is_known = kind == DATA || kind == PARITY;
        if !is_known || bytes.is_empty() || datagram.len() > self.decoder.longest_bytes {
            return Decoded::default();
        }
        let shard = Shard {
            number,
            kind,
            bytes: bytes.to_vec(),
            arrived: now,
        };
        Decoded {
            regular: bytes.get(2..).filter(|_| kind == DATA),
            recovered: self.decode(now, shard),
        }
    }

    /// Puts a shard among the others and recovers what its group then can.
    fn decode(&mut self, now: Time, shard: Shard) -> Vec<Vec<u8>> {
        let number = shard.number;
        let Some(at) = self.decoder.insert(shard) else {
            return Vec::new();
        };
        let group = self.group_of(number);
        let mut recovered = Vec::new();
        if let Some(range) = self.decoder.range_of(at, number, group, self.data) {
            let found = &self.decoder.shards[range.clone()];
            let data = found.iter().filter(|shard| shard.kind == DATA).count();
            if data != self.data && found.len() >= self.data {
                recovered = self.reconstruct(found);
            }
            if data == self.data || found.len() >= self.data {
                self.decoder.shards.drain(range);
            }
        }
        self.decoder.forget(now, GROUPS_KEPT * self.group_size());
        recovered
    }

    /// The datagrams of KCP's that a group misses, from shards of it that suffice.
    fn reconstruct(&self, found: &[Shard]) -> Vec<Vec<u8>> {
        let longest = found.iter().map(|shard| shard.bytes.len()).max();
        let longest = longest.unwrap_or(0);
        let size = self.group_size() as u32;
        let mut data: Vec<Option<Vec<u8>>> = vec![None; self.data];
        let mut parity = Vec::new();
        for shard in found {
            let index = (shard.number % size) as usize;
            let mut bytes = shard.bytes.clone();
            bytes.resize(longest, 0);
            match data.get_mut(index) {
                Some(place) => *place = Some(bytes),
                None => parity.push(((index - self.data) as u8, bytes)),
            }
        }
        let is_missing: Vec<bool> = data.iter().map(Option::is_none).collect();
        if !self.code.recover(&mut data, &parity, longest) {
            return Vec::new();
        }
        let recovered = data.into_iter().flatten().zip(is_missing);
        recovered
            .filter(|(_, is_missing)| *is_missing)
            .filter_map(|(shard, _)| {
                let (length, _) = shard.split_first_chunk()?;
                let length = usize::from(u16::from_le_bytes(*length));
                Some(shard.get(2..length)?.to_vec())
            })
            .collect()
    }

    const fn group_size(&self) -> usize {
        self.data + self.parity
    }

    /// The first and the last number of a shard's group.
    const fn group_of(&self, number: u32) -> (u32, u32) {
        let size = self.group_size() as u32;
        let first = number - number % size;
        (first, first.wrapping_add(size - 1))
    }

    /// Numbers begin anew after so many, which whole groups have (`paws`).
    const fn numbers(&self) -> u32 {
        let size = self.group_size() as u32;
        u32::MAX / size * size
    }
}

impl Encoder {
    /// A datagram under the next number.
    fn marked(&self, kind: u16, shard: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(HEADER_BYTES + shard.len());
        datagram.extend_from_slice(&self.next.to_le_bytes());
        datagram.extend_from_slice(&kind.to_le_bytes());
        datagram.extend_from_slice(shard);
        datagram
    }
}

impl Decoder {
    /// Puts a shard into its place, which is returned; `None` where one with its
    /// number is there.
    fn insert(&mut self, shard: Shard) -> Option<usize> {
        let mut place = 0;
        for (index, there) in self.shards.iter().enumerate().rev() {
            if shard.number == there.number {
                return None;
            }
            if is_after(shard.number, there.number) {
                place = index + 1;
                break;
            }
        }
        self.shards.insert(place, shard);
        Some(place)
    }

    /// Where the shards of a group are, if there can be enough of them: as kcp-go
    /// looks for them, around the one at `at`.
    fn range_of(
        &self,
        at: usize,
        number: u32,
        (first, last): (u32, u32),
        enough: usize,
    ) -> Option<std::ops::Range<usize>> {
        let size = last.wrapping_sub(first) as usize + 1;
        let begin = at.saturating_sub(number as usize % size);
        let end = (begin + size).min(self.shards.len());
        if end - begin < enough {
            return None;
        }
        let looked_at = self.shards[begin..end].iter().enumerate();
        let mut range = 0..0;
        for (offset, shard) in looked_at {
            if is_after(shard.number, last) {
                break;
            }
            if !is_after(first, shard.number) {
                if range.is_empty() {
                    range = begin + offset..begin + offset;
                }
                range.end += 1;
            }
        }
        Some(range)
    }

    /// Forgets the oldest where there are more than `most`, and those that came
    /// too long ago.
    fn forget(&mut self, now: Time, most: usize) {
        if self.shards.len() > most {
            self.shards.remove(0);
        }
        let is_old = |shard: &&Shard| now.since(shard.arrived) > EXPIRES_AFTER;
        let old = self.shards.iter().take_while(is_old).count();
        self.shards.drain(..old);
    }
}

/// Whether one number comes after another, over the wrap (`_itimediff`).
const fn is_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEN_AND_THREE: FecGroup = FecGroup {
        data: 10,
        parity: 3,
    };

    fn shards_of(fec: &mut Fec, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut shards = Vec::new();
        for datagram in datagrams {
            fec.send(datagram, &mut |shard| shards.push(shard.to_vec()));
        }
        shards
    }

    /// What `fec.go` of kcp-go 5.4.20 makes of the same ten datagrams.
    #[test]
    fn parity_is_what_kcp_go_sends() {
        let datagrams: Vec<Vec<u8>> = (0..10_u8)
            .map(|n| vec![7 * n + 1; usize::from(n)])
            .collect();
        let shards = shards_of(&mut Fec::new(TEN_AND_THREE, 1400), &datagrams);
        assert_eq!(shards.len(), 13);
        assert_eq!(shards[2], [2, 0, 0, 0, 0xf1, 0, 4, 0, 15, 15]);
        let expected = [KCP_GO_PARITY_0, KCP_GO_PARITY_1, KCP_GO_PARITY_2];
        for (index, (shard, parity)) in shards[10..].iter().zip(expected).enumerate() {
            assert_eq!(shard[..6], [10 + index as u8, 0, 0, 0, 0xf2, 0]);
            assert_eq!(shard[6..], parity);
        }
    }

    const KCP_GO_PARITY_0: [u8; 11] = [188, 0, 113, 181, 206, 54, 244, 102, 108, 203, 128];
    const KCP_GO_PARITY_1: [u8; 11] = [189, 0, 136, 244, 82, 181, 244, 196, 190, 178, 192];
    const KCP_GO_PARITY_2: [u8; 11] = [105, 0, 175, 81, 85, 201, 135, 71, 111, 192, 29];

    #[test]
    fn three_of_thirteen_may_be_lost() {
        let datagrams: Vec<Vec<u8>> = (0..10_u8).map(|n| vec![n; 30 + usize::from(n)]).collect();
        for lost in [[0, 1, 2], [0, 5, 9], [3, 10, 12], [9, 8, 11]] {
            let shards = shards_of(&mut Fec::new(TEN_AND_THREE, 1400), &datagrams);
            let mut peer = Fec::new(TEN_AND_THREE, 1400);
            let mut arrived = Vec::new();
            for (index, shard) in shards.iter().enumerate() {
                if !lost.contains(&index) {
                    let decoded = peer.receive(Time::ZERO, shard);
                    arrived.extend(decoded.regular.map(<[u8]>::to_vec));
                    arrived.extend(decoded.recovered);
                }
            }
            arrived.sort();
            assert_eq!(arrived, datagrams, "{lost:?}");
        }
    }

    #[test]
    fn a_datagram_beyond_the_mtu_brings_nothing() {
        let mut fec = Fec::new(TEN_AND_THREE, 100);
        let datagram = |bytes: usize| {
            let mut datagram = vec![0, 0, 0, 0, 0xf1, 0];
            datagram.resize(bytes, 7);
            datagram
        };
        let longest = fec.decoder.longest_bytes;
        for (bytes, is_taken) in [(longest, true), (longest + 1, false), (4_000, false)] {
            let datagram = datagram(bytes);
            let decoded = fec.receive(Time::ZERO, &datagram);
            assert_eq!(decoded.regular.is_some(), is_taken, "{bytes} bytes");
        }
    }

    #[test]
    fn numbers_begin_anew_with_a_whole_group() {
        let mut fec = Fec::new(TEN_AND_THREE, 1400);
        fec.encoder.next = fec.numbers() - 13;
        let shards = shards_of(&mut fec, &vec![vec![1; 30]; 11]);
        assert_eq!(shards[13][..4], [0; 4]);
    }

    #[test]
    fn what_came_a_minute_ago_is_forgotten() {
        let mut fec = Fec::new(TEN_AND_THREE, 1400);
        let shards = shards_of(&mut Fec::new(TEN_AND_THREE, 1400), &vec![vec![1; 30]; 10]);
        fec.receive(Time::ZERO, &shards[0]);
        fec.receive(Time::from_secs(60), &shards[1]);
        assert_eq!(fec.decoder.shards.len(), 2);
        fec.receive(Time::from_millis(60_001), &shards[2]);
        assert_eq!(fec.decoder.shards.len(), 2);
    }

    proptest! {
        #[test]
        fn no_shards_make_it_panic_or_hold_more_than_three_groups(
            shards in prop::collection::vec(
                (0_u32..60, any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 1..150),
            wraps in any::<bool>(),
        ) {
            let group = FecGroup { data: 4, parity: 2 };
            let mut fec = Fec::new(group, 1400);
            for (number, is_data, bytes) in shards {
                let number = if wraps { number.wrapping_sub(30) } else { number };
                let mut datagram = number.to_le_bytes().to_vec();
                let kind = if is_data { DATA } else { PARITY };
                datagram.extend_from_slice(&kind.to_le_bytes());
                datagram.extend_from_slice(&bytes);
                fec.receive(Time::ZERO, &datagram);
                prop_assert!(fec.decoder.shards.len() <= GROUPS_KEPT * 6);
            }
            prop_assert!(fec.receive(Time::ZERO, &[0; 2000]).regular.is_none());
        }
    }
}
