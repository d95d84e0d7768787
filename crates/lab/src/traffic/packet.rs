//! From a captured packet to the UDP datagram in it, by its headers alone: a capture may
//! have cut off what they carry.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a captured packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A UDP datagram, or the first fragment of one.
    Udp {
        from: SocketAddr,
        to: SocketAddr,
        /// Of what it carries, all fragments together.
        bytes: u32,
    },
    /// A TCP segment.
    Tcp,
    /// Anything else: other protocols, later fragments, what is too short for its
    /// headers.
    Other,
}

/// Where packets of a link type begin with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// BSD's loopback: four bytes with the family of addresses.
    Null,
    Ethernet,
    /// IP, of either version.
    Ip,
    /// Linux's `any`.
    Cooked,
    /// The newer form of it.
    Cooked2,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q and 802.1ad: four more bytes before the type.
const ETHERTYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER_BYTES: u16 = 8;

impl Framing {
    /// That of a link type by its number (<https://www.tcpdump.org/linktypes.html>).
    pub(super) const fn of(link_type: i32) -> Option<Self> {
        Some(match link_type {
            0 | 108 => Self::Null,
            1 => Self::Ethernet,
            // 12 and 14 are what some systems' files have for 101.
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            _ => return None,
        })
    }

    /// What a packet is.
    pub(super) fn read(self, packet: &[u8]) -> Packet {
        self.ip(packet).and_then(read_ip).unwrap_or(Packet::Other)
    }

    /// What comes behind the link's header, where that is IP.
    fn ip(self, packet: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Ip => Some(packet),
            // The family's number is another on each system: the version of IP says it.
            Self::Null => packet.get(4..),
            Self::Ethernet => after_type(packet, 12),
            Self::Cooked => after_type(packet, 14),
            Self::Cooked2 => is_ip(half(packet, 0)?).then(|| packet.get(20..))?,
        }
    }
}

const fn is_ip(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6)
}

/// What comes behind an Ethernet type at `at`, and tags for virtual networks, where that is
/// IP.
fn after_type(packet: &[u8], mut at: usize) -> Option<&[u8]> {
    while ETHERTYPE_VLAN.contains(&half(packet, at)?) {
        at += 4;
    }
    is_ip(half(packet, at)?).then(|| packet.get(at + 2..))?
}

fn read_ip(packet: &[u8]) -> Option<Packet> {
    match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            let fragment_offset = half(packet, 6)? & 0x1fff;
            let ends = [12, 16].map(|at| Some(IpAddr::V4(Ipv4Addr::from(array(packet, at)?))));
            let protocol = *packet.get(9)?;
            // Of a first fragment the datagram is longer than what is here, and a host that
            // leaves cutting to its card says no length.
            let is_first_of_several = half(packet, 6)? & 0x2000 != 0;
            let total = usize::from(half(packet, 2)?);
            let most = (total > 0 && !is_first_of_several).then(|| total.saturating_sub(header));
            (header >= 20 && fragment_offset == 0)
                .then(|| read_protocol(protocol, packet.get(header..)?, ends, most))?
        }
        6 => {
            let ends = [8, 24].map(|at| {
                let octets: [u8; 16] = array(packet, at)?;
                Some(IpAddr::V6(Ipv6Addr::from(octets)))
            });
            let first = *packet.get(6)?;
            let (protocol, rest) = after_extensions(first, packet.get(40..)?)?;
            let payload = usize::from(half(packet, 4)?);
            let most = (payload > 0 && first == protocol).then_some(payload);
            read_protocol(protocol, rest, ends, most)
        }
        _ => None,
    }
}

/// What comes behind IPv6's extension headers; nothing of a later fragment.
fn after_extensions(mut next: u8, mut rest: &[u8]) -> Option<(u8, &[u8])> {
    loop {
        let bytes = match next {
            // Hop by hop, routing, destination options: in units of eight bytes.
            0 | 43 | 60 => 8 + usize::from(*rest.get(1)?) * 8,
            // A fragment.
            44 if half(rest, 2)? & 0xfff8 == 0 => 8,
            44 => return None,
            _ => return Some((next, rest)),
        };
        next = *rest.first()?;
        rest = rest.get(bytes..)?;
    }
}

/// What IP carries, of which it says to have no more than `most` bytes, if it says it.
fn read_protocol(
    protocol: u8,
    rest: &[u8],
    ends: [Option<IpAddr>; 2],
    most: Option<usize>,
) -> Option<Packet> {
    let [from, to] = ends;
    match protocol {
        TCP => Some(Packet::Tcp),
        UDP => {
            let length = half(rest, 4)?;
            if most.is_some_and(|most| usize::from(length) > most) {
                return None;
            }
            Some(Packet::Udp {
                from: SocketAddr::new(from?, half(rest, 0)?),
                to: SocketAddr::new(to?, half(rest, 2)?),
                bytes: u32::from(length.checked_sub(UDP_HEADER_BYTES)?),
            })
        }
        _ => None,
    }
}

/// Two bytes at `at`, the larger part first.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(array(bytes, at)?))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
