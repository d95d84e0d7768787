//! What a datagram is, before it is handed to the library.

/// What a datagram can be where ICE and DTLS share one pair of addresses; the
/// first byte shows (RFC 7983).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message of STUN.
    Ice,
    /// One or more records of DTLS 1.2, whole and with nothing behind them.
    /// The library throws away a sound record that garbage trails, yet takes
    /// it for a repetition when it comes again without.
    Data,
    /// Neither.
    Garbage,
}

/// Content type, version, epoch and number, length (RFC 6347, section 4.1).
const RECORD_HEADER_BYTES: usize = 13;

impl Kind {
    pub(super) fn of(datagram: &[u8]) -> Self {
        match datagram.first() {
            Some(0..=3) => Self::Ice,
            Some(20..=63) if is_whole_records(datagram) => Self::Data,
            _ => Self::Garbage,
        }
    }
}

fn is_whole_records(mut rest: &[u8]) -> bool {
    while let Some((header, body)) = rest.split_first_chunk::<RECORD_HEADER_BYTES>() {
        let [kind, major, _, .., high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if !(20..=63).contains(&kind) || major != 0xfe || body.len() < length {
            return false;
        }
        rest = &body[length..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RECORD: [u8; 15] = [23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, 0, 2, 0xaa, 0xbb];

    #[test]
    fn records_are_data_if_they_are_whole_and_alone() {
        assert_eq!(Kind::of(&RECORD), Kind::Data);
        assert_eq!(Kind::of(&RECORD.repeat(3)), Kind::Data);
        assert_eq!(Kind::of(&RECORD[..14]), Kind::Garbage);
        assert_eq!(
            Kind::of(&[&RECORD[..], &[0, 1, 0, 0]].concat()),
            Kind::Garbage
        );
        let trailed = [&RECORD[..], &[0; 20]].concat();
        assert_eq!(Kind::of(&trailed), Kind::Garbage);
    }

    #[test]
    fn the_first_byte_distinguishes_ice_from_the_rest() {
        assert_eq!(Kind::of(&[0, 1, 0, 0]), Kind::Ice);
        assert_eq!(Kind::of(&[128, 1, 0, 0]), Kind::Garbage);
        assert_eq!(Kind::of(&[]), Kind::Garbage);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Kind::of(&bytes);
            let _ = Kind::of(&[&RECORD[..], &bytes].concat());
        }
    }
}
