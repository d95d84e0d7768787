//! The checksum of IPv4, UDP, TCP and ICMP.

/// The Internet checksum of `parts`, one after the other, each of an even
/// number of bytes but the last (RFC 1071).
#[must_use]
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
            sum += u32::from(word);
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn the_checksum_of_rfc_1071() {
        // The example of its section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&bytes]), !0xddf2);
        assert_eq!(checksum(&[&bytes[..4], &bytes[4..]]), !0xddf2);
    }
}
