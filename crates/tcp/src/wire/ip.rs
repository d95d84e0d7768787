//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers around a segment, and the ICMP
//! messages that say a packet was too big.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::checksum;
use super::tcp::{Segment, TCP_HEADER};

/// Bytes of an IPv4 header without options.
const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER: usize = 40;

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_ICMPV6: u8 = 58;

/// Explicit congestion notification in the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The transport does not speak ECN.
    #[default]
    NotCapable,
    /// ECN-capable, ECT(1).
    Capable1,
    /// ECN-capable, ECT(0).
    Capable0,
    /// Congestion experienced.
    CongestionExperienced,
}

impl Ecn {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::CongestionExperienced => 3,
        }
    }
}

/// What of the IP header matters to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Congestion notification.
    pub ecn: Ecn,
}

/// Why bytes are not a packet for this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Shorter than its headers say.
    #[error("packet of {0} bytes is shorter than its headers say: hand over whole IP packets")]
    Truncated(usize),
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0} is neither 4 nor 6: hand over packets without a link-layer header")]
    Version(u8),
    /// Not TCP.
    #[error("protocol {0} is not TCP (6): hand over TCP packets only")]
    Protocol(u8),
    /// A fragment; reassembly is the caller's.
    #[error("packet is a fragment: reassemble before handing it over")]
    Fragment,
    /// The checksum of the IP or the TCP header is wrong.
    #[error("checksum of the {0} header is wrong: the packet was damaged or not filled in")]
    Checksum(&'static str),
    /// The header's lengths contradict each other.
    #[error("TCP header is malformed: its data offset points outside the segment")]
    Malformed,
}

/// Reads one IP packet with one TCP segment and verifies both checksums.
///
/// # Errors
///
/// Names what is wrong with the packet; none of it is an event for a
/// connection (RFC 9293, section 3.1, has a bad checksum dropped silently).
pub fn parse_packet(packet: &[u8]) -> Result<(IpHeader, Segment<'_>), ParseError> {
    let (header, protocol, payload) = parse_ip(packet)?;
    if protocol != PROTOCOL_TCP {
        return Err(ParseError::Protocol(protocol));
    }
    if payload.len() < TCP_HEADER {
        return Err(ParseError::Truncated(packet.len()));
    }
    let sum = pseudo_header(
        header.source,
        header.destination,
        PROTOCOL_TCP,
        payload.len(),
    );
    if checksum::finish(checksum::add(sum, payload)) != 0 {
        return Err(ParseError::Checksum("TCP"));
    }
    let segment = Segment::parse(payload).ok_or(ParseError::Malformed)?;
    Ok((header, segment))
}

/// Address and protocol of an IP packet, and what it carries.
fn parse_ip(packet: &[u8]) -> Result<(IpHeader, u8, &[u8]), ParseError> {
    let truncated = ParseError::Truncated(packet.len());
    match packet.first().map(|first| first >> 4) {
        Some(4) => parse_ipv4(packet).ok_or(truncated)?,
        Some(6) => parse_ipv6(packet).ok_or(truncated),
        Some(version) => Err(ParseError::Version(version)),
        None => Err(truncated),
    }
}

type Parsed<'a> = (IpHeader, u8, &'a [u8]);

fn parse_ipv4(packet: &[u8]) -> Option<Result<Parsed<'_>, ParseError>> {
    let header_length = usize::from(packet.first()? & 15) * 4;
    let header = packet.get(..header_length)?;
    let fixed: &[u8; IPV4_HEADER] = header.first_chunk()?;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let payload = packet.get(header_length..total)?;
    if checksum::finish(checksum::add(0, header)) != 0 {
        return Some(Err(ParseError::Checksum("IPv4")));
    }
    // More fragments, or an offset.
    if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0 {
        return Some(Err(ParseError::Fragment));
    }
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            fixed[at],
            fixed[at + 1],
            fixed[at + 2],
            fixed[at + 3],
        ))
    };
    let parsed = IpHeader {
        source: address(12),
        destination: address(16),
        ecn: Ecn::from_bits(fixed[1]),
    };
    Some(Ok((parsed, fixed[9], payload)))
}

fn parse_ipv6(packet: &[u8]) -> Option<Parsed<'_>> {
    let fixed: &[u8; IPV6_HEADER] = packet.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let payload = packet.get(IPV6_HEADER..IPV6_HEADER + length)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let parsed = IpHeader {
        source: address(8),
        destination: address(24),
        ecn: Ecn::from_bits(fixed[1] >> 4),
    };
    Some((parsed, fixed[6], payload))
}

/// The sum over the pseudo-header (RFC 9293, section 3.1; RFC 8200, 8.1).
fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u64 {
    let mut sum = u64::from(protocol) + length as u64;
    for address in [source, destination] {
        sum = match address {
            IpAddr::V4(address) => checksum::add(sum, &address.octets()),
            IpAddr::V6(address) => checksum::add(sum, &address.octets()),
        };
    }
    sum
}

/// Builds a packet; the payload comes in two parts, as a ring buffer has it, and
/// the segment's own is not looked at. `identification` goes into an IPv4
/// header; fragmentation is forbidden (path-MTU discovery, RFC 1191).
///
/// # Panics
///
/// When the addresses are of different families, which a connection's never
/// are.
pub(crate) fn build_packet(
    header: &IpHeader,
    identification: u16,
    segment: &Segment<'_>,
    payload: (&[u8], &[u8]),
) -> Vec<u8> {
    let payload_length = payload.0.len() + payload.1.len();
    let tcp_length = TCP_HEADER + segment.options.length() + payload_length;
    let mut packet = Vec::with_capacity(IPV6_HEADER + tcp_length);
    match (header.source, header.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = (IPV4_HEADER + tcp_length) as u16;
            packet.extend_from_slice(&[0x45, header.ecn.bits()]);
            packet.extend_from_slice(&total.to_be_bytes());
            packet.extend_from_slice(&identification.to_be_bytes());
            packet.extend_from_slice(&[0x40, 0, 64, PROTOCOL_TCP, 0, 0]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
            let sum = checksum::finish(checksum::add(0, &packet));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.extend_from_slice(&[0x60, header.ecn.bits() << 4, 0, 0]);
            packet.extend_from_slice(&(tcp_length as u16).to_be_bytes());
            packet.extend_from_slice(&[PROTOCOL_TCP, 64]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
        }
        _ => unreachable!("both addresses of a connection are of one family"),
    }
    let begin = packet.len();
    segment.write_header(&mut packet);
    packet.extend_from_slice(payload.0);
    packet.extend_from_slice(payload.1);
    let sum = pseudo_header(header.source, header.destination, PROTOCOL_TCP, tcp_length);
    let sum = checksum::finish(checksum::add(sum, &packet[begin..]));
    packet[begin + 16..begin + 18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// What an ICMP message says of a TCP packet of ours that was too big.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooBig {
    /// Where our packet came from.
    pub(crate) local: SocketAddr,
    /// Where it went.
    pub(crate) remote: SocketAddr,
    /// Its sequence number.
    pub(crate) seq: crate::Seq,
    /// The MTU of the next hop, in bytes; 0 from routers older than RFC 1191.
    pub(crate) mtu: u32,
}

/// Reads "fragmentation needed" (RFC 1191, section 4) or "packet too big" (RFC
/// 4443, section 3.2); `None` for anything else.
pub(crate) fn too_big(packet: &[u8]) -> Option<TooBig> {
    let (header, protocol, payload) = parse_ip(packet).ok()?;
    let (fixed, quoted) = payload.split_at_checked(8)?;
    let mtu = match (protocol, fixed[0], fixed[1]) {
        (PROTOCOL_ICMP, 3, 4) => {
            if checksum::finish(checksum::add(0, payload)) != 0 {
                return None;
            }
            u32::from(u16::from_be_bytes([fixed[6], fixed[7]]))
        }
        (PROTOCOL_ICMPV6, 2, 0) => {
            let sum = pseudo_header(
                header.source,
                header.destination,
                PROTOCOL_ICMPV6,
                payload.len(),
            );
            if checksum::finish(checksum::add(sum, payload)) != 0 {
                return None;
            }
            u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]])
        }
        _ => return None,
    };
    let (source, destination, tcp) = quoted_packet(quoted)?;
    let tcp: &[u8; 8] = tcp.first_chunk()?;
    Some(TooBig {
        local: SocketAddr::new(source, u16::from_be_bytes([tcp[0], tcp[1]])),
        remote: SocketAddr::new(destination, u16::from_be_bytes([tcp[2], tcp[3]])),
        seq: crate::Seq(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
        mtu,
    })
}

/// Addresses and TCP bytes of a packet quoted in an ICMP message, which may be
/// cut short.
fn quoted_packet(quoted: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    match quoted.first()? >> 4 {
        4 => {
            let fixed: &[u8; IPV4_HEADER] = quoted.first_chunk()?;
            let rest = quoted.get(usize::from(fixed[0] & 15) * 4..)?;
            let address = |at: usize| {
                IpAddr::V4(Ipv4Addr::new(
                    fixed[at],
                    fixed[at + 1],
                    fixed[at + 2],
                    fixed[at + 3],
                ))
            };
            (fixed[9] == PROTOCOL_TCP).then(|| (address(12), address(16), rest))
        }
        6 => {
            let fixed: &[u8; IPV6_HEADER] = quoted.first_chunk()?;
            let source: [u8; 16] = fixed[8..24].try_into().ok()?;
            let destination: [u8; 16] = fixed[24..40].try_into().ok()?;
            (fixed[6] == PROTOCOL_TCP)
                .then(|| (source.into(), destination.into(), &quoted[IPV6_HEADER..]))
        }
        _ => None,
    }
}

/// The ICMP message with which a router at `router` refuses a packet larger than
/// `mtu` bytes; `None` when the packet is no IP packet or of another family than
/// the router's address.
#[must_use]
pub fn icmp_too_big(router: IpAddr, packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let (header, _, _) = parse_ip(packet).ok()?;
    let quoted = &packet[..packet.len().min(IPV6_HEADER + 8)];
    let mut message = Vec::with_capacity(8 + quoted.len());
    let mut out = Vec::new();
    match (router, header.source) {
        (IpAddr::V4(router), IpAddr::V4(host)) => {
            message.extend_from_slice(&[3, 4, 0, 0, 0, 0]);
            message.extend_from_slice(&mtu.to_be_bytes());
            message.extend_from_slice(quoted);
            let sum = checksum::finish(checksum::add(0, &message));
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&((IPV4_HEADER + message.len()) as u16).to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 0, 64, PROTOCOL_ICMP, 0, 0]);
            out.extend_from_slice(&router.octets());
            out.extend_from_slice(&host.octets());
            let sum = checksum::finish(checksum::add(0, &out));
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(host)) => {
            message.extend_from_slice(&[2, 0, 0, 0, 0, 0]);
            message.extend_from_slice(&mtu.to_be_bytes());
            message.extend_from_slice(quoted);
            let sum = pseudo_header(router, header.source, PROTOCOL_ICMPV6, message.len());
            let sum = checksum::finish(checksum::add(sum, &message));
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&(message.len() as u16).to_be_bytes());
            out.extend_from_slice(&[PROTOCOL_ICMPV6, 64]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&host.octets());
        }
        _ => return None,
    }
    out.extend_from_slice(&message);
    Some(out)
}

#[cfg(test)]
mod tests;
