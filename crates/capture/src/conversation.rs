//! Which packets of a machine are one lane's: those between two sockets' addresses.

use std::net::{IpAddr, SocketAddr};

use crate::udp::{IPV4_BYTES, IPV6_BYTES};

/// The addresses between which a lane's packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// This end's.
    pub local: SocketAddr,
    /// The address of the remote end.
    pub remote: SocketAddr,
}

impl Conversation {
    /// Whether `packet`, from its IP header on, goes from this end to the other. `None`
    /// if it is none of the conversation's: of other addresses, without ports (a later
    /// fragment, say), or cut short.
    #[must_use]
    pub fn is_up(&self, packet: &[u8]) -> Option<bool> {
        let (from, to) = ends(packet)?;
        if is(from, self.local) && is(to, self.remote) {
            Some(true)
        } else if is(from, self.remote) && is(to, self.local) {
            Some(false)
        } else {
            None
        }
    }
}

/// Whether a packet's address and port are those of a socket: an IPv4 address may be
/// written as an IPv6 one there, and a link-local one have a scope.
fn is(of_packet: SocketAddr, socket: SocketAddr) -> bool {
    of_packet.ip() == socket.ip().to_canonical() && of_packet.port() == socket.port()
}

/// From where to where a packet of TCP or UDP goes, from its IP header on.
fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (from, to, ports) = match packet.first()? >> 4 {
        4 => {
            let offset = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x1fff;
            if offset > 0 {
                return None;
            }
            let header = packet.get(..IPV4_BYTES)?;
            let bytes = usize::from(header[0] & 0xf) * 4;
            let address = |at| -> Option<IpAddr> {
                let octets: [u8; 4] = *header.get(at..)?.first_chunk()?;
                Some(octets.into())
            };
            (address(12)?, address(16)?, packet.get(bytes..)?)
        }
        6 => {
            let address = |at| -> Option<IpAddr> {
                let octets: [u8; 16] = *packet.get(at..)?.first_chunk()?;
                Some(octets.into())
            };
            (address(8)?, address(24)?, packet.get(IPV6_BYTES..)?)
        }
        _ => return None,
    };
    let port = |at| Some(u16::from_be_bytes(*ports.get(at..)?.first_chunk()?));
    Some((
        SocketAddr::new(from, port(0)?),
        SocketAddr::new(to, port(2)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UdpHeaders;
    use proptest::prelude::*;

    fn conversation(local: &str, remote: &str) -> Conversation {
        Conversation {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }

    #[test]
    fn a_packet_is_of_its_conversation_alone() {
        for (local, remote, other) in [
            ("10.0.0.1:5000", "10.0.0.2:443", "10.0.0.1:5001"),
            ("[fd00::1]:5000", "[fd00::2]:443", "[fd00::3]:5000"),
        ] {
            let of = conversation(local, remote);
            let headers = UdpHeaders::new(of.local, of.remote);
            let up = headers.packet(b"input");
            assert_eq!(of.is_up(&up), Some(true));
            assert_eq!(of.is_up(&headers.reversed().packet(b"state")), Some(false));
            assert_eq!(conversation(other, remote).is_up(&up), None);
            assert_eq!(of.is_up(&up[..up.len() - b"input".len() - 5]), None);
        }
    }

    #[test]
    fn an_ipv4_address_may_be_written_as_an_ipv6_one() {
        let mapped = conversation("[::ffff:10.0.0.1]:5000", "[::ffff:10.0.0.2]:443");
        let packet = UdpHeaders::new(mapped.local, mapped.remote).packet(b"input");
        assert_eq!(packet[0] >> 4, 4);
        assert_eq!(mapped.is_up(&packet), Some(true));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let of = conversation("10.0.0.1:5000", "10.0.0.2:443");
        let mut packet = UdpHeaders::new(of.local, of.remote).packet(b"input");
        packet[7] = 1;
        assert_eq!(of.is_up(&packet), None);
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(packet: Vec<u8>) {
            let _ = conversation("10.0.0.1:5000", "10.0.0.2:443").is_up(&packet);
        }
    }
}
