//! IPv4 packets with right checksums around any TCP bytes.

/// Puts an IPv4 header around TCP bytes, both checksums right.
pub(crate) fn wrap(
    source: std::net::IpAddr,
    destination: std::net::IpAddr,
    mut tcp: Vec<u8>,
) -> Vec<u8> {
    let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) = (source, destination)
    else {
        panic!("the tests' hosts have IPv4 addresses");
    };
    tcp[16] = 0;
    tcp[17] = 0;
    let mut pseudo = Vec::new();
    pseudo.extend_from_slice(&source.octets());
    pseudo.extend_from_slice(&destination.octets());
    pseudo.extend_from_slice(&[0, 6]);
    pseudo.extend_from_slice(&(tcp.len() as u16).to_be_bytes());
    pseudo.extend_from_slice(&tcp);
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&((20 + tcp.len()) as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&destination.octets());
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(tcp);
    packet
}

pub(super) fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}
