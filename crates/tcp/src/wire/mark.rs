//! Marks of congestion in the header of an IP packet (RFC 3168, section 5), for those who
//! play the routers between two connections.

use super::checksum;

/// "Congestion experienced", both bits of the field.
const CONGESTION_EXPERIENCED: u8 = 3;
/// Where the field is in the second byte of an IPv6 header: below half of a byte of the
/// flow label.
const IPV6_SHIFT: u32 = 4;

/// Whether the transport of this IP packet understands marks. What is no IP packet does not.
#[must_use]
pub fn is_ecn_capable(packet: &[u8]) -> bool {
    field(packet).is_some_and(|shift| packet[1] >> shift & CONGESTION_EXPERIENCED != 0)
}

/// Marks an IP packet as one that met congestion, and mends the checksum of an IPv4 header
/// (RFC 1624, equation 3). What is no IP packet stays as it is.
pub fn mark_congestion(packet: &mut [u8]) {
    let Some(shift) = field(packet) else {
        return;
    };
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= CONGESTION_EXPERIENCED << shift;
    if shift == IPV6_SHIFT {
        return;
    }
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = checksum::finish(u64::from(!sum) + u64::from(!before) + u64::from(after));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// By how many bits the field is shifted in the second byte of the header.
fn field(packet: &[u8]) -> Option<u32> {
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => Some(0),
        6 if packet.len() >= 40 => Some(IPV6_SHIFT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_leaves_the_checksum_right() {
        for first in 0..=u8::MAX {
            let mut packet = vec![0x45, 0x02, 5, first, 9, first, 0x40, 0, 64, 6, 0, 0];
            packet.extend([10, 0, 0, 1, 10, 0, first, 2]);
            let sum = checksum::finish(checksum::add(0, &packet)).to_be_bytes();
            packet[10..12].copy_from_slice(&sum);
            assert!(is_ecn_capable(&packet));
            mark_congestion(&mut packet);
            assert_eq!(packet[1], 0x03);
            assert_eq!(checksum::finish(checksum::add(0, &packet)), 0, "{packet:?}");
        }
    }

    #[test]
    fn a_mark_of_ipv6_leaves_the_flow_label() {
        let mut packet = [0; 40];
        packet[..4].copy_from_slice(&[0x60, 0x2A, 1, 2]);
        assert!(is_ecn_capable(&packet));
        mark_congestion(&mut packet);
        assert_eq!(packet[..4], [0x60, 0x3A, 1, 2]);
        packet[1] = 0x0A;
        assert!(!is_ecn_capable(&packet));
    }

    #[test]
    fn what_is_no_packet_is_left_alone() {
        for mut short in [vec![], vec![0x45, 2], vec![0x60; 39], vec![0x75; 40]] {
            let before = short.clone();
            mark_congestion(&mut short);
            assert_eq!(short, before);
            assert!(!is_ecn_capable(&short));
        }
    }
}
