//! Looking one field up in an encoded message.

use super::{Reader, Value, WireError, WireType};

/// The value of the field at the end of `path`, a list of field numbers that
/// leads through messages which are neither in lists nor in maps. Of several
/// occurrences the last counts, as everywhere in protobuf, and one whose wire type
/// is not `wire_type` is not this field.
///
/// An update's location is found at once this way, without decoding it.
///
/// # Errors
///
/// [`WireError`] when the message, or one on the path, is malformed.
///
/// ```
/// use lagometer_protocol::wire::{Value, WireType, find};
///
/// // A message whose field 2 is a message whose field 1 is 300.
/// let encoded = [0x12, 3, 0x08, 0xac, 0x02];
/// assert_eq!(find(&encoded, &[2, 1], WireType::Varint), Ok(Some(Value::Varint(300))));
/// assert_eq!(find(&encoded, &[2, 1], WireType::Fixed32), Ok(None));
/// assert_eq!(find(&encoded, &[1], WireType::Varint), Ok(None));
/// ```
pub fn find<'a>(
    message: &'a [u8],
    path: &[u32],
    wire_type: WireType,
) -> Result<Option<Value<'a>>, WireError> {
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
            if field.value.wire_type() == wire_type {
                found = Some(field.value);
            }
        } else if let Value::Bytes(message) = field.value
            && let Some(inner) = find(message, rest, wire_type)?
        {
            found = Some(inner);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint<'a>(encoded: &'a [u8], path: &[u32]) -> Result<Option<Value<'a>>, WireError> {
        find(encoded, path, WireType::Varint)
    }

    #[test]
    fn the_last_occurrence_counts_even_in_a_message_given_in_parts() {
        let encoded = [0x12, 2, 0x08, 1, 0x12, 2, 0x08, 2, 0x12, 2, 0x10, 9];
        assert_eq!(varint(&encoded, &[2, 1]), Ok(Some(Value::Varint(2))));
        assert_eq!(varint(&encoded, &[2, 2]), Ok(Some(Value::Varint(9))));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let encoded = [0x12, 2, 0x08, 1];
        assert_eq!(varint(&encoded, &[]), Ok(None));
        assert_eq!(varint(&encoded, &[3, 1]), Ok(None));
        assert_eq!(varint(&encoded, &[2, 2]), Ok(None));
        assert_eq!(
            varint(&encoded, &[2, 1, 1]),
            Ok(None),
            "a number is no message"
        );
        assert_eq!(varint(&[0x12, 9], &[2, 1]), Err(WireError::Truncated));
    }

    #[test]
    fn an_occurrence_of_another_wire_type_hides_none_that_fits() {
        let encoded = [0x08, 1, 0x0a, 0, 0x0d, 1, 2, 3, 4];
        assert_eq!(varint(&encoded, &[1]), Ok(Some(Value::Varint(1))));
        let message = [0x12, 2, 0x08, 1, 0x10, 7];
        assert_eq!(varint(&message, &[2, 1]), Ok(Some(Value::Varint(1))));
    }
}
