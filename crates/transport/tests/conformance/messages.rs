//! Messages that know who they are, so that an arrival can be checked.

use crate::dice::Dice;

/// The shortest message that carries its number.
pub(crate) const NUMBERED_BYTES: usize = 4;

/// Message `number` of a series: its number, then bytes that follow from it.
pub(crate) fn message(number: u32, len: usize) -> Vec<u8> {
    assert!(len >= NUMBERED_BYTES, "too short for a number");
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(Dice::new(u64::from(number) << 32 | len as u64).bytes(len - NUMBERED_BYTES));
    bytes
}

/// The number of a message that arrived. Fails on one that was never sent.
fn number_of(bytes: &[u8]) -> u32 {
    let number = bytes
        .first_chunk()
        .map(|number| u32::from_le_bytes(*number))
        .expect("a message of the series is at least four bytes long");
    assert!(
        bytes == message(number, bytes.len()),
        "message {number} arrived damaged"
    );
    number
}

/// The numbers of messages that arrived, each whole and none twice; in order
/// of arrival where that is promised, else sorted.
pub(crate) fn numbers_of(arrived: &[Vec<u8>], is_ordered: bool) -> Vec<u32> {
    let mut numbers: Vec<_> = arrived.iter().map(|bytes| number_of(bytes)).collect();
    if is_ordered {
        assert!(numbers.is_sorted(), "out of order: {numbers:?}");
    } else {
        numbers.sort_unstable();
    }
    let twice = numbers.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "delivered twice");
    numbers
}
