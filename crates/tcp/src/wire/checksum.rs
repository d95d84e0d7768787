//! The Internet checksum (RFC 1071), eight bytes at a time.

/// Adds bytes to a running sum of big-endian 16-bit words. Every part but the
/// last must have an even length.
pub(super) fn add(sum: u64, bytes: &[u8]) -> u64 {
    let mut sum = u128::from(sum);
    let mut words = bytes.chunks_exact(8);
    let mut wide: u64 = 0;
    let mut carries: u64 = 0;
    for word in &mut words {
        let value = u64::from_be_bytes([
            word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
        ]);
        let (added, carry) = wide.overflowing_add(value);
        wide = added;
        carries += u64::from(carry);
    }
    sum += u128::from(wide) + u128::from(carries);
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u128::from(u64::from_be_bytes(rest));
    u64::from(fold(sum))
}

/// The one's complement of a running sum, as it goes into a header.
pub(super) fn finish(sum: u64) -> u16 {
    !fold(u128::from(sum))
}

fn fold(mut sum: u128) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::{add, finish};

    /// The plain loop of RFC 1071, section 4.1.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    #[test]
    fn agrees_with_the_plain_loop_at_every_length() {
        let bytes: Vec<u8> = (0..600_u32).map(|i| (i * 251 % 256) as u8 | 0x80).collect();
        for length in 0..bytes.len() {
            assert_eq!(finish(add(0, &bytes[..length])), plain(&bytes[..length]));
        }
    }

    #[test]
    fn parts_of_even_length_add_up() {
        let bytes: Vec<u8> = (0..=255).collect();
        let whole = finish(add(0, &bytes));
        assert_eq!(finish(add(add(0, &bytes[..74]), &bytes[74..])), whole);
    }
}
