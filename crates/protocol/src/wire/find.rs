//! Looking one field up in an encoded message.

use super::{Reader, Value, WireError};

/// The value of the field at the end of `path`, a list of field numbers that
/// leads through messages which are neither in lists nor in maps. Of several
/// occurrences the last counts, as everywhere in protobuf.
///
/// An update's location is found at once this way, without decoding it.
///
/// # Errors
///
/// [`WireError`] when the message, or one on the path, is malformed.
///
/// ```
/// use lagometer_protocol::wire::{Value, find};
///
/// // A message whose field 2 is a message whose field 1 is 300.
/// let encoded = [0x12, 3, 0x08, 0xac, 0x02];
/// assert_eq!(find(&encoded, &[2, 1]), Ok(Some(Value::Varint(300))));
/// assert_eq!(find(&encoded, &[1]), Ok(None));
/// ```
pub fn find<'a>(message: &'a [u8], path: &[u32]) -> Result<Option<Value<'a>>, WireError> {
    let Some((&number, rest)) = path.split_first() else {
        return Ok(None);
    };
    let mut found = None;
    let mut reader = Reader::new(message);
    while let Some(field) = reader.next_field()? {
        if field.number != number {
            continue;
        }
        if rest.is_empty() {
            found = Some(field.value);
        } else if let Some(inner) = find(field.bytes()?, rest)? {
            found = Some(inner);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_occurrence_counts_even_in_a_message_given_in_parts() {
        let encoded = [0x12, 2, 0x08, 1, 0x12, 2, 0x08, 2, 0x12, 2, 0x10, 9];
        assert_eq!(find(&encoded, &[2, 1]), Ok(Some(Value::Varint(2))));
        assert_eq!(find(&encoded, &[2, 2]), Ok(Some(Value::Varint(9))));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let encoded = [0x12, 2, 0x08, 1];
        assert_eq!(find(&encoded, &[]), Ok(None));
        assert_eq!(find(&encoded, &[3, 1]), Ok(None));
        assert_eq!(find(&encoded, &[2, 2]), Ok(None));
        assert_eq!(
            find(&encoded, &[2, 1, 1]),
            Err(WireError::UnexpectedWireType(1)),
            "a number is no message"
        );
        assert_eq!(find(&[0x12, 9], &[2, 1]), Err(WireError::Truncated));
    }
}
