//! Packets of lanes that are played in memory, as they would be between the hosts of
//! `emu`: with the addresses and ports of their lane.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use lagometer_capture::{UdpHeaders, checksum};
use lagometer_link::Direction;
use lagometer_transport::Encapsulation;

use crate::lane_ports;

/// What one end of lane number `lane` handed out to be sent in `direction`, as the packet
/// that it is between hosts. Ports repeat from the 256th lane on, addresses do not.
#[must_use]
pub fn lane_packet(
    lane: usize,
    direction: Direction,
    encapsulation: Encapsulation,
    datagram: &[u8],
) -> Vec<u8> {
    let [client, server] = addresses(lane);
    let [of_client, of_server] = lane_ports(lane as u8);
    let client = SocketAddrV4::new(client, of_client);
    let server = SocketAddrV4::new(server, of_server);
    let (from, to) = match direction {
        Direction::Up => (client, server),
        Direction::Down => (server, client),
    };
    if encapsulation == Encapsulation::Ip {
        return with_ends(datagram.to_vec(), from, to);
    }
    UdpHeaders::new(from.into(), to.into()).packet(datagram)
}

/// The client's and the server's address in a lane.
fn addresses(lane: usize) -> [Ipv4Addr; 2] {
    let [high, low] = (lane as u16).to_be_bytes();
    [1, 2].map(|host| Ipv4Addr::new(10, 77_u8.wrapping_add(high), low, host))
}

/// Puts other addresses and ports into a packet of TCP over IPv4, whose checksums stay as
/// right or wrong as they are. All lanes have the same ones in memory. Others are left
/// alone.
fn with_ends(mut packet: Vec<u8>, from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    const TCP: u8 = 6;
    const ADDRESSES: Range<usize> = 12..20;
    const IP_CHECKSUM: usize = 10;
    const TCP_CHECKSUM: usize = 16;
    let header_bytes = usize::from(packet.first().map_or(0, |first| first & 0x0f)) * 4;
    let is_tcp_v4 = packet.first().is_some_and(|first| first >> 4 == 4)
        && packet.get(9) == Some(&TCP)
        && header_bytes >= ADDRESSES.end
        && packet.len() >= header_bytes + TCP_CHECKSUM + 2;
    if !is_tcp_v4 {
        return packet;
    }
    let addresses = [from.ip().octets(), to.ip().octets()].concat();
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    let tcp_checksum = header_bytes + TCP_CHECKSUM;
    // TCP's is over the addresses too.
    let sums = [IP_CHECKSUM, tcp_checksum];
    replace(&mut packet, ADDRESSES, &addresses, &sums);
    let at = header_bytes..header_bytes + ports.len();
    replace(&mut packet, at, &ports, &[tcp_checksum]);
    packet
}

/// Replaces bytes that the checksums at `sums` are over (RFC 1624, equation 3).
fn replace(packet: &mut [u8], at: Range<usize>, new: &[u8], sums: &[usize]) {
    let sum_of = |bytes: &[u8]| u32::from(!checksum(&[bytes]));
    let (before, after) = (sum_of(&packet[at.clone()]), sum_of(new));
    packet[at].copy_from_slice(new);
    for &at in sums {
        let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let mut sum = u32::from(!old) + (0xffff - before) + after;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use lagometer_capture::taken_off;
    use lagometer_units::Time;

    use super::*;

    #[test]
    fn each_lane_has_addresses_of_its_own() {
        assert_eq!(addresses(3)[1], Ipv4Addr::new(10, 77, 3, 2));
        assert_eq!(addresses(256)[0], Ipv4Addr::new(10, 78, 0, 1));
        let up = Direction::Up;
        let on_wire = lane_packet(3, up, Encapsulation::UdpIpv4, b"hello");
        assert_eq!(on_wire[12..20], [10, 77, 3, 1, 10, 77, 3, 2]);
        assert_eq!(taken_off(&on_wire), Some(&b"hello"[..]));
    }

    #[test]
    fn other_addresses_leave_the_checksums_of_tcp_as_they_are() {
        let spec = lagometer_transport::Spec::preset("tcp-cubic").unwrap();
        let mut pair = spec.pair(1, Time::ZERO);
        let mut segment = Vec::new();
        assert!(pair.client.poll_datagram(Time::ZERO, &mut segment));
        for damage in [0, 1] {
            let mut before = segment.clone();
            *before.last_mut().unwrap() ^= damage;
            let after = lane_packet(9, Direction::Up, Encapsulation::Ip, &before);
            assert_eq!(after[12..20], [10, 77, 9, 1, 10, 77, 9, 2]);
            let ports = [after[20..22].try_into(), after[22..24].try_into()];
            assert_eq!(
                ports.map(|port| u16::from_be_bytes(port.unwrap())),
                lane_ports(9)
            );
            let sums = |packet: &[u8]| {
                let length = ((packet.len() - 20) as u16).to_be_bytes();
                let tcp = checksum(&[&packet[12..20], &[0, 6], &length, &packet[20..]]);
                [checksum(&[&packet[..20]]), tcp]
            };
            assert_eq!(sums(&after), sums(&before));
            assert_eq!(sums(&after)[1] == 0, damage == 0);
        }
    }
}
