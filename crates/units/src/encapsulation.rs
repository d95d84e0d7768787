//! What is around a datagram on the wire.

use std::net::IpAddr;

/// What a datagram is carried in, and so what must be added to its size to know the
/// bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// The datagram is the payload of one UDP datagram over IPv4. The host checks
    /// it: a damaged one never reaches the endpoint.
    UdpIpv4,
    /// As [`Self::UdpIpv4`], over IPv6.
    UdpIpv6,
    /// The datagram is a whole IP packet. The endpoint checks it itself.
    Ip,
}

impl Encapsulation {
    /// That of UDP datagrams to `address`.
    #[must_use]
    pub const fn of_udp_to(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::UdpIpv4,
            IpAddr::V6(_) => Self::UdpIpv6,
        }
    }

    /// Bytes on the wire beyond the datagram itself: an IPv4 header without options
    /// (20, RFC 791) or an IPv6 header without extensions (40, RFC 8200), and a UDP
    /// header (8, RFC 768); or nothing.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::UdpIpv4 => 20 + 8,
            Self::UdpIpv6 => 40 + 8,
            Self::Ip => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_costs_its_own_header_and_that_of_the_addresss_ip_version() {
        let bytes =
            |address: &str| Encapsulation::of_udp_to(address.parse().unwrap()).header_bytes();
        assert_eq!(bytes("10.0.0.1"), 28);
        assert_eq!(bytes("fd00::1"), 48);
        assert_eq!(Encapsulation::Ip.header_bytes(), 0);
    }
}
