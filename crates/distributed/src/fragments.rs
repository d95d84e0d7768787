//! What is longer than a message of NATS, cut into parts and put together again.
//!
//! A part is a line of JSON, which says whose it is and which, and bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Room that the line before a part's bytes takes at most.
const HEAD: usize = 1024;

/// The most parts that are put together: those of the longest result in the shortest
/// messages that servers are set up for.
const MOST_PARTS: usize = 100_000;

/// Whose a part is, and which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The attempt that it is of, by the worker's name and a number that it never gives
    /// twice: parts of two attempts are never put together.
    pub attempt: String,
    /// The job's number.
    pub number: usize,
    /// Which part, from 0.
    pub part: usize,
    /// How many there are.
    pub of: usize,
}

/// A part that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Whose it is, and which.
    pub head: Head,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Cuts `bytes` into messages of at most `most` bytes each; one if there are none.
///
/// # Panics
///
/// Where `most` leaves no room for any bytes: servers permit no such messages.
#[must_use]
pub fn cut(attempt: &str, number: usize, bytes: &[u8], most: usize) -> Vec<Vec<u8>> {
    assert!(most > HEAD, "messages of {most} bytes hold nothing");
    let pieces: Vec<&[u8]> = if bytes.is_empty() {
        vec![bytes]
    } else {
        bytes.chunks(most - HEAD).collect()
    };
    let of = pieces.len();
    let messages = pieces.into_iter().enumerate().map(|(part, bytes)| {
        let head = Head {
            attempt: attempt.to_owned(),
            number,
            part,
            of,
        };
        let mut message = serde_json::to_vec(&head)
            .unwrap_or_else(|_| unreachable!("text and numbers can be written"));
        message.push(b'\n');
        message.extend_from_slice(bytes);
        message
    });
    messages.collect()
}

/// Reads one message; `None` if it is no part.
#[must_use]
pub fn read(message: &[u8]) -> Option<Part<'_>> {
    let end = message.iter().position(|&byte| byte == b'\n')?;
    let head: Head = serde_json::from_slice(&message[..end]).ok()?;
    let fits = head.part < head.of && head.of <= MOST_PARTS;
    fits.then_some(Part {
        head,
        bytes: &message[end + 1..],
    })
}

/// The parts of one attempt, as far as they have come. They take as much room as they are
/// long, however many are said to come.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    of: usize,
    parts: BTreeMap<usize, Vec<u8>>,
}

impl Gathered {
    /// Takes a part, in any order and any number of times; returns everything once it is
    /// complete. A part that speaks of another number of parts begins anew.
    pub fn add(&mut self, part: &Part<'_>) -> Option<Vec<u8>> {
        if self.of != part.head.of {
            self.of = part.head.of;
            self.parts.clear();
        }
        let place = self.parts.entry(part.head.part);
        place.or_insert_with(|| part.bytes.to_vec());
        let is_complete = self.parts.len() == self.of;
        is_complete.then(|| self.parts.values().flatten().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_in_any_order_and_some_twice_are_what_was_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..5_000),
            most in HEAD + 1..HEAD + 1_000,
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let messages = cut("w-1", 7, &bytes, most);
            prop_assert!(messages.iter().all(|message| message.len() <= most));
            let twice = picks.iter().map(|pick| pick.get(&messages));
            let mut gathered = Gathered::default();
            let mut whole = None;
            for message in twice.chain(messages.iter().rev()) {
                let part = read(message).unwrap();
                prop_assert_eq!(part.head.number, 7);
                whole = gathered.add(&part).or(whole);
            }
            prop_assert_eq!(whole, Some(bytes));
        }

        #[test]
        fn anything_else_is_no_part(message in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(read(&message), None);
        }
    }

    #[test]
    fn what_is_said_to_come_takes_no_room() {
        let bytes = &b"a"[..];
        let head = Head {
            attempt: "w/1".to_owned(),
            number: 0,
            part: MOST_PARTS - 1,
            of: MOST_PARTS,
        };
        let mut gathered = Gathered::default();
        assert_eq!(gathered.add(&Part { head, bytes }), None);
        assert_eq!(gathered.parts.len(), 1);
    }

    #[test]
    fn a_part_beyond_the_last_or_of_far_too_many_is_none() {
        let head = |part: usize, of: usize| {
            format!(r#"{{"attempt":"w","number":0,"part":{part},"of":{of}}}"#) + "\n"
        };
        assert!(read(head(0, 1).as_bytes()).is_some());
        assert_eq!(read(head(1, 1).as_bytes()), None);
        assert_eq!(read(head(0, MOST_PARTS + 1).as_bytes()), None);
    }
}
