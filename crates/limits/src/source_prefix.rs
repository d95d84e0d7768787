//! The address that limits count by.

use std::net::{IpAddr, Ipv6Addr};

/// What limits count as one source: one IPv4 address, or a /64 of IPv6, as the first 64
/// bits belong to a single subscriber (RFC 6177, section 2). IPv4 written as IPv6 is IPv4.
#[must_use]
pub fn source_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_one_source_prefix_however_many_addresses_it_has() {
        let of = |text: &str| source_prefix(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
        assert_ne!(of("192.0.2.6"), of("192.0.2.7"));
    }
}
