//! What the router parses of an IP packet: version, addresses, and whether its
//! length field is right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an IPv4 header without options.
pub(crate) const V4_HEADER_BYTES: usize = 20;
/// Bytes of an IPv6 header without extensions.
pub(crate) const V6_HEADER_BYTES: usize = 40;

/// The version of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    /// The version the first byte of `packet` says.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Some(Self::V4),
            6 => Some(Self::V6),
            _ => None,
        }
    }
}

/// The parts of a packet's header that matter to the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Whether a router may cut the packet up: IPv4 without "don't fragment".
    pub(crate) may_fragment: bool,
}

impl Header {
    /// Reads the header of `packet`; nothing unless the packet is exactly as
    /// long as its header says.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        match Version::of(packet)? {
            Version::V4 => {
                let header: &[u8; V4_HEADER_BYTES] = packet.first_chunk()?;
                let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
                let address = |at: usize| -> Ipv4Addr {
                    Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3])
                };
                (length == packet.len()).then(|| Self {
                    version: Version::V4,
                    source: address(12).into(),
                    destination: address(16).into(),
                    may_fragment: header[6] & 0x40 == 0,
                })
            }
            Version::V6 => {
                let header: &[u8; V6_HEADER_BYTES] = packet.first_chunk()?;
                let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
                let address = |at: usize| -> Ipv6Addr {
                    let mut octets = [0; 16];
                    octets.copy_from_slice(&header[at..at + 16]);
                    octets.into()
                };
                (V6_HEADER_BYTES + payload == packet.len()).then(|| Self {
                    version: Version::V6,
                    source: address(8).into(),
                    destination: address(24).into(),
                    may_fragment: false,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_of_another_length_than_it_says_is_not_read() {
        let mut packet = [0_u8; 28];
        packet[0] = 0x45;
        packet[3] = 28;
        packet[6] = 0x40;
        packet[12..16].copy_from_slice(&[10, 77, 0, 1]);
        packet[16..20].copy_from_slice(&[10, 77, 0, 2]);
        let header = Header::read(&packet).unwrap();
        assert_eq!(header.source, Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(header.destination, Ipv4Addr::new(10, 77, 0, 2));
        assert!(!header.may_fragment);
        assert_eq!(Header::read(&packet[..27]), None);
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(packet: Vec<u8>) {
            let _ = Header::read(&packet);
        }
    }
}
