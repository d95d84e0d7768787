//! A keyed checksum over a datagram, as games put over UDP.
//!
//! UDP's own checksum is 16 bits and knows nothing of connections. Games
//! commonly add a CRC-32 that starts from a protocol identifier both sides
//! know, so that damaged datagrams and those of other senders are dropped; so do we, where
//! a transport has no such check of its own. It is no protection against an
//! attacker.

use crc32fast::Hasher;

use crate::seed;

/// Bytes that [`Integrity::seal`] puts in front.
pub(crate) const CHECK_BYTES: usize = 4;

/// One direction of one connection, to which datagrams are bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integrity {
    key: u32,
}

impl Integrity {
    /// The keys of both directions, client to server first.
    pub(crate) fn both_directions(seed: u64) -> (Self, Self) {
        let key = seed::derive(seed, 0x1d_5ea1);
        (
            Self { key: key as u32 },
            Self {
                key: (key >> 32) as u32,
            },
        )
    }

    /// Fills in the first four bytes of `datagram`, which must have them,
    /// with the checksum of the rest.
    pub(crate) fn seal(self, datagram: &mut [u8]) {
        let (check, body) = datagram.split_at_mut(CHECK_BYTES);
        check.copy_from_slice(&self.checksum(body).to_le_bytes());
    }

    /// What follows the checksum, if the checksum fits.
    pub(crate) fn open(self, datagram: &[u8]) -> Option<&[u8]> {
        let (check, body) = datagram.split_first_chunk::<CHECK_BYTES>()?;
        (u32::from_le_bytes(*check) == self.checksum(body)).then_some(body)
    }

    fn checksum(self, body: &[u8]) -> u32 {
        let mut hasher = Hasher::new_with_initial(self.key);
        hasher.update(body);
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(seal: Integrity, body: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; CHECK_BYTES];
        datagram.extend_from_slice(body);
        seal.seal(&mut datagram);
        datagram
    }

    #[test]
    fn the_other_direction_and_other_connections_are_refused() {
        let (up, down) = Integrity::both_directions(1);
        let datagram = sealed(up, b"state");
        assert_eq!(up.open(&datagram), Some(&b"state"[..]));
        assert_eq!(down.open(&datagram), None);
        assert_eq!(Integrity::both_directions(2).0.open(&datagram), None);
    }

    proptest! {
        #[test]
        fn any_burst_of_damage_up_to_32_bits_is_noticed(
            body in prop::collection::vec(any::<u8>(), 0..100),
            place in any::<prop::sample::Index>(),
            burst in 1_u32..,
        ) {
            let (up, _) = Integrity::both_directions(7);
            let mut datagram = sealed(up, &body);
            let bit = place.index(datagram.len() * 8 - 31);
            for offset in (0..32).filter(|offset| burst >> offset & 1 == 1) {
                let at = bit + offset;
                datagram[at / 8] ^= 1 << (at % 8);
            }
            prop_assert_eq!(up.open(&datagram), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let _ = Integrity::both_directions(7).0.open(&bytes);
        }
    }
}
