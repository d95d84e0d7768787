//! What is longer than a message of NATS, cut into fragments and put together again.
//!
//! A fragment is a line of JSON, which says whose it is and which, and bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Room that the line before a fragment's bytes takes at most.
const HEADER_BYTES: usize = 1024;

/// The most fragments that are put together: those of the longest result in the shortest
/// messages that servers are set up for.
const MOST_FRAGMENTS: usize = 100_000;

/// Whose a fragment is, and which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentHeader {
    /// The attempt that it is of, by the worker's name and a number that it never gives
    /// twice, as in `w/1`: fragments of two attempts are never put together.
    pub attempt: String,
    /// The job's number.
    pub number: usize,
    /// The fragment's place among those of its attempt, from 0.
    pub index: usize,
    /// How many fragments the attempt has.
    pub of: usize,
}

/// A fragment that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Whose it is, and which.
    pub header: FragmentHeader,
    /// The fragment's share of the bytes that were cut.
    pub bytes: &'a [u8],
}

/// Cuts `bytes` into messages of at most `most` bytes each; one if there are none.
///
/// # Panics
///
/// Where `most` leaves no room for any bytes: servers permit no such messages.
#[must_use]
pub fn cut(attempt: &str, number: usize, bytes: &[u8], most: usize) -> Vec<Vec<u8>> {
    assert!(most > HEADER_BYTES, "messages of {most} bytes hold nothing");
    let pieces: Vec<&[u8]> = if bytes.is_empty() {
        vec![bytes]
    } else {
        bytes.chunks(most - HEADER_BYTES).collect()
    };
    let of = pieces.len();
    let messages = pieces.into_iter().enumerate().map(|(index, bytes)| {
        let header = FragmentHeader {
            attempt: attempt.to_owned(),
            number,
            index,
            of,
        };
        let mut message = serde_json::to_vec(&header)
            .unwrap_or_else(|_| unreachable!("text and numbers can be written"));
        message.push(b'\n');
        message.extend_from_slice(bytes);
        message
    });
    messages.collect()
}

/// Reads one message; `None` if it is no fragment.
#[must_use]
pub fn read(message: &[u8]) -> Option<Fragment<'_>> {
    let end = message.iter().position(|&byte| byte == b'\n')?;
    let header: FragmentHeader = serde_json::from_slice(&message[..end]).ok()?;
    let fits = header.index < header.of && header.of <= MOST_FRAGMENTS;
    fits.then_some(Fragment {
        header,
        bytes: &message[end + 1..],
    })
}

/// The fragments of one attempt, as far as they have come. They take as much room as they
/// are long, however many are said to come.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    of: usize,
    fragments: BTreeMap<usize, Vec<u8>>,
}

impl Reassembly {
    /// Takes a fragment, in any order and any number of times; returns everything once it
    /// is complete. A fragment of another number of fragments begins anew.
    pub fn add(&mut self, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
        if self.of != fragment.header.of {
            self.of = fragment.header.of;
            self.fragments.clear();
        }
        let place = self.fragments.entry(fragment.header.index);
        place.or_insert_with(|| fragment.bytes.to_vec());
        let is_complete = self.fragments.len() == self.of;
        is_complete.then(|| self.fragments.values().flatten().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fragments_in_any_order_and_some_twice_are_what_was_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..5_000),
            most in HEADER_BYTES + 1..HEADER_BYTES + 1_000,
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let messages = cut("w-1", 7, &bytes, most);
            prop_assert!(messages.iter().all(|message| message.len() <= most));
            let twice = picks.iter().map(|pick| pick.get(&messages));
            let mut reassembly = Reassembly::default();
            let mut whole = None;
            for message in twice.chain(messages.iter().rev()) {
                let fragment = read(message).unwrap();
                prop_assert_eq!(fragment.header.number, 7);
                whole = reassembly.add(&fragment).or(whole);
            }
            prop_assert_eq!(whole, Some(bytes));
        }

        #[test]
        fn anything_else_is_no_fragment(message in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(read(&message), None);
        }
    }

    #[test]
    fn what_is_said_to_come_takes_no_room() {
        let bytes = &b"a"[..];
        let header = FragmentHeader {
            attempt: "w/1".to_owned(),
            number: 0,
            index: MOST_FRAGMENTS - 1,
            of: MOST_FRAGMENTS,
        };
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.add(&Fragment { header, bytes }), None);
        assert_eq!(reassembly.fragments.len(), 1);
    }

    #[test]
    fn a_fragment_beyond_the_last_or_of_far_too_many_is_none() {
        let header = |index: usize, of: usize| {
            format!(r#"{{"attempt":"w","number":0,"index":{index},"of":{of}}}"#) + "\n"
        };
        assert!(read(header(0, 1).as_bytes()).is_some());
        assert_eq!(read(header(1, 1).as_bytes()), None);
        assert_eq!(read(header(0, MOST_FRAGMENTS + 1).as_bytes()), None);
    }
}
