//! Marks in the header of an IPv4 packet (RFC 3168, section 5).

/// "Congestion experienced", both bits of the field.
const CONGESTION_EXPERIENCED: u8 = 3;

/// Whether the packet's transport understands marks.
pub(super) fn is_capable(packet: &[u8]) -> bool {
    is_ipv4(packet) && packet[1] & CONGESTION_EXPERIENCED != 0
}

/// Marks the packet and mends its checksum (RFC 1624, equation 3).
pub(super) fn mark(packet: &mut [u8]) {
    if !is_ipv4(packet) {
        return;
    }
    let word = |bytes: &[u8], at: usize| u32::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let before = word(packet, 0);
    packet[1] |= CONGESTION_EXPERIENCED;
    let after = word(packet, 0);
    let mut sum = (!word(packet, 10) & 0xFFFF) + (!before & 0xFFFF) + after;
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    let [high, low] = (!(sum as u16)).to_be_bytes();
    packet[10] = high;
    packet[11] = low;
}

fn is_ipv4(packet: &[u8]) -> bool {
    packet.len() >= 20 && packet[0] >> 4 == 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = header
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_mark_leaves_the_checksum_right() {
        for first in 0..=u8::MAX {
            let mut packet = vec![0x45, 0x02, 5, first, 9, first, 0x40, 0, 64, 6, 0, 0];
            packet.extend([10, 0, 0, 1, 10, 0, first, 2]);
            let sum = checksum(&packet).to_be_bytes();
            packet[10..12].copy_from_slice(&sum);
            assert!(is_capable(&packet));
            mark(&mut packet);
            assert_eq!(packet[1], 0x03);
            assert_eq!(checksum(&packet), 0, "{packet:?}");
        }
        let mut short = [0x45, 2];
        mark(&mut short);
        assert!(!is_capable(&short));
    }
}
