//! A UDP datagram as the IPv4 packet it is between hosts, and back.

use std::net::Ipv4Addr;

use crate::ip::{V4_HEADER_BYTES, checksum};

/// IPv4 and UDP headers.
pub(crate) const HEADER_BYTES: usize = V4_HEADER_BYTES + 8;
const UDP: u8 = 17;
/// The ports that packets in the log name.
const PORT: u16 = 7000;

/// The headers that datagrams from one side have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encapsulation {
    from: Ipv4Addr,
    to: Ipv4Addr,
}

impl Encapsulation {
    /// Headers of datagrams from `from` to `to`.
    pub(crate) const fn new(from: Ipv4Addr, to: Ipv4Addr) -> Self {
        Self { from, to }
    }

    /// Writes the headers in front of the datagram that lies in `packet` from
    /// [`HEADER_BYTES`] on.
    pub(crate) fn encapsulate(self, packet: &mut [u8]) {
        let length = packet.len() as u16;
        let udp_length = (packet.len() - V4_HEADER_BYTES) as u16;
        let (ip, udp) = packet.split_at_mut(V4_HEADER_BYTES);
        ip.fill(0);
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        // A host's kernel would fragment no game's datagrams.
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = UDP;
        ip[12..16].copy_from_slice(&self.from.octets());
        ip[16..20].copy_from_slice(&self.to.octets());
        let sum = checksum(&[ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        udp[..2].copy_from_slice(&PORT.to_be_bytes());
        udp[2..4].copy_from_slice(&PORT.to_be_bytes());
        udp[4..6].copy_from_slice(&udp_length.to_be_bytes());
        udp[6..8].fill(0);
        // A sum of zero is written as its other form (RFC 768).
        let sum = match udp_checksum(ip, udp) {
            0 => u16::MAX,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The datagram in `packet`, if it is one that a host's kernel would take:
/// whole and undamaged.
pub(crate) fn taken_off(packet: &[u8]) -> Option<&[u8]> {
    let (ip, udp) = packet.split_at_checked(V4_HEADER_BYTES)?;
    let is_whole = ip[0] == 0x45
        && ip[9] == UDP
        && usize::from(u16::from_be_bytes([ip[2], ip[3]])) == packet.len()
        && checksum(&[ip]) == 0;
    let (header, datagram) = udp.split_at_checked(8)?;
    let says = usize::from(u16::from_be_bytes([header[4], header[5]]));
    (is_whole && says == udp.len() && udp_checksum(ip, udp) == 0).then_some(datagram)
}

/// The checksum over UDP's pseudo header, its header and its datagram.
fn udp_checksum(ip: &[u8], udp: &[u8]) -> u16 {
    let length = (udp.len() as u16).to_be_bytes();
    checksum(&[&ip[12..20], &[0, UDP], &length, udp])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Header;
    use proptest::prelude::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 77, 3, 1);
    const TO: Ipv4Addr = Ipv4Addr::new(10, 77, 3, 2);

    proptest! {
        #[test]
        fn a_datagram_comes_out_as_it_went_in_and_damage_shows(
            datagram: Vec<u8>,
            at: prop::sample::Index,
        ) {
            let mut packet = vec![0xee; HEADER_BYTES];
            packet.extend(&datagram);
            Encapsulation::new(FROM, TO).encapsulate(&mut packet);
            let header = Header::read(&packet).unwrap();
            prop_assert_eq!((header.source, header.destination), (FROM.into(), TO.into()));
            prop_assert_eq!(taken_off(&packet), Some(&datagram[..]));
            let bit = at.index(packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(taken_off(&packet), None);
        }

        #[test]
        fn no_packet_makes_it_panic(packet: Vec<u8>) {
            let _ = taken_off(&packet);
        }
    }
}
