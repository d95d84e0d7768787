//! Notifying a host that a packet was too large for the path: ICMP "fragmentation
//! needed" (RFC 792, RFC 1191), and for IPv6 "packet too big" (RFC 4443).

use std::net::IpAddr;

use lagometer_capture::checksum;

use crate::ip::{Header, V4_HEADER_BYTES, V6_HEADER_BYTES, Version};

/// Room for the longest answer: as much of the packet as fits the least MTU
/// of IPv6.
pub(super) const ANSWER_BYTES: usize = 1280;
/// How much of a packet an IPv4 answer quotes (RFC 1812 permits up to 576
/// bytes in all).
const V4_QUOTE_BYTES: usize = 576 - V4_HEADER_BYTES - ICMP_HEADER_BYTES;
const ICMP_HEADER_BYTES: usize = 8;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// What another ICMP error is never answered with, by version: the types of
/// errors.
const V4_ERRORS: [u8; 5] = [3, 4, 5, 11, 12];

/// Writes the answer to `packet`, which was larger than `mtu_bytes`, and
/// returns its length; nothing if the packet is one that must not be
/// answered.
///
/// It comes from the packet's own destination: the link is no host and has no
/// address.
pub(super) fn answer(
    packet: &[u8],
    mtu_bytes: u64,
    answer: &mut [u8; ANSWER_BYTES],
) -> Option<usize> {
    let header = Header::read(packet)?;
    match (header.version, header.source, header.destination) {
        (Version::V4, IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header_bytes = usize::from(packet[0] & 0x0f) * 4;
            let is_error = packet[9] == ICMP && V4_ERRORS.contains(packet.get(header_bytes)?);
            if is_error {
                return None;
            }
            let quote = &packet[..packet.len().min(V4_QUOTE_BYTES)];
            let length = V4_HEADER_BYTES + ICMP_HEADER_BYTES + quote.len();
            let (ip, rest) = answer[..length].split_at_mut(V4_HEADER_BYTES);
            ip.fill(0);
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            ip[8] = 64;
            ip[9] = ICMP;
            ip[12..16].copy_from_slice(&destination.octets());
            ip[16..20].copy_from_slice(&source.octets());
            let sum = checksum(&[ip]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            let mtu = u16::try_from(mtu_bytes).unwrap_or(u16::MAX);
            rest[..4].copy_from_slice(&[3, 4, 0, 0]);
            rest[4..6].fill(0);
            rest[6..8].copy_from_slice(&mtu.to_be_bytes());
            rest[8..].copy_from_slice(quote);
            let sum = checksum(&[rest]);
            rest[2..4].copy_from_slice(&sum.to_be_bytes());
            Some(length)
        }
        (Version::V6, IpAddr::V6(source), IpAddr::V6(destination)) => {
            // Types below 128 are errors (RFC 4443, section 2.1).
            let is_error = packet[6] == ICMP_V6 && *packet.get(V6_HEADER_BYTES)? < 128;
            if is_error {
                return None;
            }
            let room = ANSWER_BYTES - V6_HEADER_BYTES - ICMP_HEADER_BYTES;
            let quote = &packet[..packet.len().min(room)];
            let payload = ICMP_HEADER_BYTES + quote.len();
            let length = V6_HEADER_BYTES + payload;
            let (ip, rest) = answer[..length].split_at_mut(V6_HEADER_BYTES);
            ip[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, ICMP_V6, 64]);
            ip[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
            ip[8..24].copy_from_slice(&destination.octets());
            ip[24..40].copy_from_slice(&source.octets());
            // No IPv6 path has less than 1280 bytes (RFC 8200, section 5).
            let mtu = u32::try_from(mtu_bytes).unwrap_or(u32::MAX).max(1280);
            rest[..4].copy_from_slice(&[2, 0, 0, 0]);
            rest[4..8].copy_from_slice(&mtu.to_be_bytes());
            rest[8..].copy_from_slice(quote);
            // The pseudo-header of RFC 8200, section 8.1.
            let lengths = [0, 0, (payload >> 8) as u8, payload as u8, 0, 0, 0, ICMP_V6];
            let sum = checksum(&[&ip[8..40], &lengths, rest]);
            rest[2..4].copy_from_slice(&sum.to_be_bytes());
            Some(length)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(length: u16) -> Vec<u8> {
        let mut packet = vec![0xaa; usize::from(length)];
        packet[..20].copy_from_slice(&[
            0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2,
        ]);
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet
    }

    #[test]
    fn an_ipv4_sender_is_notified_of_the_mtu() {
        let mut answer = [0; ANSWER_BYTES];
        let length = super::answer(&v4(1400), 1200, &mut answer).unwrap();
        let header = Header::read(&answer[..length]).unwrap();
        assert_eq!(header.destination.to_string(), "10.77.0.1");
        assert_eq!(answer[20..22], [3, 4]);
        assert_eq!(answer[26..28], 1200_u16.to_be_bytes());
        assert_eq!(checksum(&[&answer[..20]]), 0);
        assert_eq!(checksum(&[&answer[20..length]]), 0);
        assert_eq!(answer[28..56], v4(1400)[..28]);
    }

    #[test]
    fn an_ipv6_sender_is_notified_of_the_mtu() {
        let mut packet = vec![0xaa; 1400];
        packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 5, 80, 17, 64]);
        let mut answer = [0; ANSWER_BYTES];
        let length = super::answer(&packet, 1300, &mut answer).unwrap();
        assert_eq!(length, 1280);
        assert_eq!(
            Header::read(&answer[..length]).unwrap().version,
            Version::V6
        );
        assert_eq!(answer[40], 2);
        assert_eq!(answer[44..48], 1300_u32.to_be_bytes());
        let lengths = [0, 0, 4, 216, 0, 0, 0, ICMP_V6];
        assert_eq!(
            checksum(&[&answer[8..40], &lengths, &answer[40..length]]),
            0
        );
    }

    #[test]
    fn an_error_is_not_answered_with_an_error() {
        let mut packet = v4(1400);
        packet[9] = ICMP;
        packet[20] = 3;
        assert_eq!(super::answer(&packet, 1200, &mut [0; ANSWER_BYTES]), None);
        packet[20] = 8;
        assert!(super::answer(&packet, 1200, &mut [0; ANSWER_BYTES]).is_some());
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(packet: Vec<u8>, mtu: u64) {
            let _ = super::answer(&packet, mtu, &mut [0; ANSWER_BYTES]);
        }
    }
}
