//! ICMP messages with right checksums about any packet, from any router.

use std::net::{IpAddr, SocketAddr};

use lagometer_tcp::Seq;

use super::forge::checksum;

/// What a message says, in the numbers of its own protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The second four bytes: where a packet was too big, the MTU.
    pub(crate) rest: u32,
}

impl Says {
    /// "Fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443).
    pub(crate) const fn too_big(is_ipv4: bool, mtu: u32) -> Self {
        let (kind, code) = if is_ipv4 { (3, 4) } else { (2, 0) };
        Self {
            kind,
            code,
            rest: mtu,
        }
    }
}

/// A message to the sender of the packet it quotes.
pub(crate) fn message(router: IpAddr, to: IpAddr, says: Says, quoted: &[u8]) -> Vec<u8> {
    let mut icmp = vec![says.kind, says.code, 0, 0];
    icmp.extend(says.rest.to_be_bytes());
    icmp.extend(quoted);
    let protocol = if router.is_ipv4() { 1 } else { 58 };
    let mut packet = header(router, to, protocol, icmp.len());
    seal(&packet, &mut icmp);
    packet.extend(icmp);
    packet
}

/// Makes a message's checksum right again.
pub(crate) fn reseal(packet: &mut [u8]) {
    let length = if packet[0] >> 4 == 6 { 40 } else { 20 };
    let (header, icmp) = packet.split_at_mut(length);
    seal(header, icmp);
}

fn seal(header: &[u8], icmp: &mut [u8]) {
    icmp[2..4].fill(0);
    let mut summed = Vec::new();
    if header[0] >> 4 == 6 {
        summed.extend(&header[8..40]);
        summed.extend((icmp.len() as u32).to_be_bytes());
        summed.extend([0, 0, 0, 58]);
    }
    summed.extend(&*icmp);
    icmp[2..4].copy_from_slice(&checksum(&summed).to_be_bytes());
}

/// The beginning of a data packet, as a router quotes it: the IP header and the first
/// eight bytes behind it.
pub(crate) fn quote(from: SocketAddr, to: SocketAddr, seq: Seq) -> Vec<u8> {
    let mut packet = header(from.ip(), to.ip(), 6, 1_460);
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend(seq.0.to_be_bytes());
    packet
}

fn header(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0x45, 0];
            header.extend(((20 + length) as u16).to_be_bytes());
            header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            header.extend(from.octets());
            header.extend(to.octets());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend((length as u16).to_be_bytes());
            header.extend([protocol, 64]);
            header.extend(from.octets());
            header.extend(to.octets());
            header
        }
        _ => panic!("both of one family"),
    }
}
