//! Where everybody comes from: loopback has 2^24 addresses, so that players,
//! newcomers and the attacker can each have their own, as on the Internet.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// Who comes; each kind has a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Source {
    /// The game server and those that come during the attack.
    Server = 1,
    /// Players.
    Player = 2,
    /// Players that come during the attack.
    Newcomer = 3,
    /// Whoever asks for the health.
    Watcher = 4,
    /// The attacker.
    Attacker = 66,
}

impl Source {
    /// The address of the `number`th of them, each its own below 65,024.
    pub(super) fn address(self, number: usize) -> Ipv4Addr {
        let number = number % (254 * 256);
        // No address ends in 0 or 255.
        Ipv4Addr::new(
            127,
            self as u8,
            (number / 254) as u8,
            (number % 254) as u8 + 1,
        )
    }
}

/// Connects from an address of one's own.
///
/// # Errors
///
/// The system's; also when it does not stand within that time.
pub(super) fn connect(from: Ipv4Addr, to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect_timeout(&to.into(), within)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A socket for datagrams to one place, from an address of one's own.
///
/// # Errors
///
/// The system's.
pub(super) fn datagrams(from: Ipv4Addr, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect(to)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everybody_has_an_address_of_their_own() {
        let mut all = BTreeSet::new();
        for number in 0..65_024 {
            assert!(all.insert(Source::Attacker.address(number)));
            assert!(all.insert(Source::Player.address(number)));
        }
        assert!(all.iter().all(Ipv4Addr::is_loopback));
    }
}
