//! Cutting encoded data into what single messages hold.

use std::ops::Range;

use lagometer_protocol::wire::Reader;

/// Encoded data, cut between its fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// The parts, in order, none longer than was asked for.
    pub(super) parts: Vec<Range<usize>>,
    /// The sizes of the fields that are longer: they are in no part.
    pub(super) too_long: Vec<usize>,
}

/// Cuts `data` into parts of at most `max_bytes`, which merged in their order
/// are the whole. A field, or an entry of a map, is never cut: nobody could
/// tell where it goes on.
pub(super) fn cut(data: &[u8], max_bytes: usize) -> Cut {
    let mut cut = Cut::default();
    let (mut start, mut end) = (0, 0);
    let mut reader = Reader::new(data);
    while let Ok(Some(field)) = reader.next_field() {
        let field_end = end + field.raw.len();
        let is_too_long = field.raw.len() > max_bytes;
        if is_too_long || field_end - start > max_bytes {
            if start < end {
                cut.parts.push(start..end);
            }
            start = end;
        }
        if is_too_long {
            cut.too_long.push(field.raw.len());
            start = field_end;
        }
        end = field_end;
    }
    if start < end {
        cut.parts.push(start..end);
    }
    cut
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::wire::put_bytes_field;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_hold_every_field_that_fits_whole_and_in_order(
            lens in proptest::collection::vec(0usize..90, 0..40),
            max_bytes in 20usize..70,
        ) {
            let (mut data, mut fits, mut too_long) = (Vec::new(), Vec::new(), Vec::new());
            for (index, len) in lens.into_iter().enumerate() {
                let mut field = Vec::new();
                put_bytes_field(&mut field, index as u32 % 5 + 1, &vec![index as u8; len]);
                data.extend_from_slice(&field);
                if field.len() > max_bytes {
                    too_long.push(field.len());
                } else {
                    fits.extend_from_slice(&field);
                }
            }
            let cut = cut(&data, max_bytes);
            prop_assert!(cut.parts.iter().all(|part| part.len() <= max_bytes));
            let joined: Vec<u8> = cut.parts.iter().flat_map(|part| data[part.clone()].to_vec()).collect();
            prop_assert_eq!(joined, fits);
            prop_assert_eq!(cut.too_long, too_long);
            // No two neighbours would have fitted together.
            for pair in cut.parts.windows(2) {
                if pair[0].end == pair[1].start {
                    let first = Reader::new(&data[pair[1].clone()]).next_field().unwrap().unwrap();
                    prop_assert!(pair[0].len() + first.raw.len() > max_bytes);
                }
            }
        }
    }
}
