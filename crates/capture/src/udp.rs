//! A UDP datagram as the IP packet it is between hosts, and back.

use std::net::{IpAddr, SocketAddr};

use crate::checksum::checksum;

/// Bytes of the IPv4 and UDP headers in front of a datagram.
pub const UDP_V4_HEADER_BYTES: usize = IPV4_BYTES + UDP_BYTES;

/// Bytes of an IPv4 header without options.
pub(crate) const IPV4_BYTES: usize = 20;
/// Bytes of an IPv6 header.
pub(crate) const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
/// The number of UDP among the protocols over IP.
const UDP: u8 = 17;
/// The time to live, or hop limit, with which hosts send.
const HOPS: u8 = 64;

/// The headers that datagrams from one address to another have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeaders {
    from: SocketAddr,
    to: SocketAddr,
}

impl UdpHeaders {
    /// Headers of datagrams from `from` to `to`, which are of one IP version: that of
    /// `from`, where they are not. An IPv4 address that is written as an IPv6 one is the
    /// former.
    #[must_use]
    pub const fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            from: SocketAddr::new(from.ip().to_canonical(), from.port()),
            to: SocketAddr::new(to.ip().to_canonical(), to.port()),
        }
    }

    /// Those of what comes back.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }

    /// How many bytes they are: 28 over IPv4, 48 over IPv6.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self.from.ip() {
            IpAddr::V4(_) => UDP_V4_HEADER_BYTES,
            IpAddr::V6(_) => IPV6_BYTES + UDP_BYTES,
        }
    }

    /// The datagram with its headers.
    #[must_use]
    pub fn packet(self, datagram: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; self.bytes()];
        packet.extend_from_slice(datagram);
        self.encapsulate(&mut packet);
        packet
    }

    /// Writes the headers in front of the datagram that lies in `packet` from
    /// [`bytes`](Self::bytes) on.
    ///
    /// # Panics
    ///
    /// Where `packet` is shorter than the headers.
    pub fn encapsulate(self, packet: &mut [u8]) {
        let (ip, udp) = packet.split_at_mut(self.bytes() - UDP_BYTES);
        ip.fill(0);
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let length = (IPV4_BYTES + udp.len()) as u16;
                ip[0] = 0x45;
                ip[2..4].copy_from_slice(&length.to_be_bytes());
                // A host's kernel would fragment no game's datagrams.
                ip[6] = 0x40;
                ip[8] = HOPS;
                ip[9] = UDP;
                ip[12..16].copy_from_slice(&from.octets());
                ip[16..20].copy_from_slice(&to.octets());
                let sum = checksum(&[ip]);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            (IpAddr::V4(from), IpAddr::V6(to)) => {
                let to = to.to_ipv4().unwrap_or(from);
                let to = SocketAddr::new(to.into(), self.to.port());
                return Self::new(self.from, to).encapsulate(packet);
            }
            (IpAddr::V6(from), to) => {
                let to = match to {
                    IpAddr::V4(to) => to.to_ipv6_mapped(),
                    IpAddr::V6(to) => to,
                };
                ip[0] = 0x60;
                ip[4..6].copy_from_slice(&(udp.len() as u16).to_be_bytes());
                ip[6] = UDP;
                ip[7] = HOPS;
                ip[8..24].copy_from_slice(&from.octets());
                ip[24..40].copy_from_slice(&to.octets());
            }
        }
        let length = udp.len() as u16;
        udp[..2].copy_from_slice(&self.from.port().to_be_bytes());
        udp[2..4].copy_from_slice(&self.to.port().to_be_bytes());
        udp[4..6].copy_from_slice(&length.to_be_bytes());
        udp[6..8].fill(0);
        // A sum of zero is written as its other form (RFC 768).
        let sum = match udp_checksum(addresses(ip), udp) {
            0 => u16::MAX,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The datagram in an IPv4 `packet`, if it is one that a host's kernel would take:
/// whole and undamaged.
#[must_use]
pub fn taken_off(packet: &[u8]) -> Option<&[u8]> {
    let (ip, udp) = packet.split_at_checked(IPV4_BYTES)?;
    let is_whole = ip[0] == 0x45
        && ip[9] == UDP
        && usize::from(u16::from_be_bytes([ip[2], ip[3]])) == packet.len()
        && checksum(&[ip]) == 0;
    let (header, datagram) = udp.split_at_checked(UDP_BYTES)?;
    let says = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let is_undamaged = says == udp.len() && udp_checksum(addresses(ip), udp) == 0;
    (is_whole && is_undamaged).then_some(datagram)
}

/// The addresses in an IP header.
fn addresses(ip: &[u8]) -> &[u8] {
    if ip.len() == IPV4_BYTES {
        &ip[12..]
    } else {
        &ip[8..]
    }
}

/// The checksum over UDP's pseudo header, its header and its datagram.
fn udp_checksum(addresses: &[u8], udp: &[u8]) -> u16 {
    let length = (udp.len() as u16).to_be_bytes();
    checksum(&[addresses, &[0, UDP], &length, udp])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(from: &str, to: &str) -> UdpHeaders {
        UdpHeaders::new(from.parse().unwrap(), to.parse().unwrap())
    }

    proptest! {
        #[test]
        fn a_datagram_comes_out_as_it_went_in_and_damage_shows(
            datagram: Vec<u8>,
            at: prop::sample::Index,
        ) {
            let mut packet = headers("10.77.3.1:7000", "10.77.3.2:7001").packet(&datagram);
            prop_assert_eq!(&packet[12..20], &[10, 77, 3, 1, 10, 77, 3, 2]);
            prop_assert_eq!(&packet[20..24], &[0x1b, 0x58, 0x1b, 0x59]);
            prop_assert_eq!(taken_off(&packet), Some(&datagram[..]));
            let bit = at.index(packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(taken_off(&packet), None);
        }

        #[test]
        fn no_packet_makes_it_panic(packet: Vec<u8>) {
            let _ = taken_off(&packet);
        }

        #[test]
        fn over_ipv6_the_checksum_is_right(datagram: Vec<u8>) {
            let packet = headers("[fd00::1]:7000", "[fd00::2]:7001").packet(&datagram);
            prop_assert_eq!(packet.len(), 48 + datagram.len());
            let lengths = [0, 0, packet[44], packet[45], 0, 0, 0, UDP];
            prop_assert_eq!(checksum(&[&packet[8..40], &lengths, &packet[40..]]), 0);
        }
    }

    #[test]
    fn what_comes_back_has_the_addresses_the_other_way_round() {
        let there = headers("10.0.0.1:1", "10.0.0.2:2");
        assert_eq!(there.reversed(), headers("10.0.0.2:2", "10.0.0.1:1"));
    }

    #[test]
    fn addresses_of_two_versions_make_a_packet_of_the_senders() {
        let mapped = headers("10.0.0.1:1", "[::ffff:10.0.0.2]:2").packet(b"x");
        assert_eq!(mapped, headers("10.0.0.1:1", "10.0.0.2:2").packet(b"x"));
        let other = headers("[fd00::1]:1", "10.0.0.2:2").packet(b"x");
        assert_eq!(
            other,
            headers("[fd00::1]:1", "[::ffff:10.0.0.2]:2").packet(b"x")
        );
    }
}
