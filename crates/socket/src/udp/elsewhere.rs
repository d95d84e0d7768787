//! What other systems than Linux have for datagrams: a call for each. What batches
//! would need is here in the same shape and says that there are none, as a Linux
//! kernel without the calls does.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::sockopt;

use super::obstacle::Obstacle;
use super::outgoing::Run;
use super::socket::Options;

/// Whether several datagrams can share a call.
pub(super) const HAS_BATCHES: bool = false;
/// The most datagrams of a run: runs are cut here as on Linux.
pub(super) const MOST_RUN_DATAGRAMS: usize = 64;
/// The most bytes of a run.
pub(super) const MOST_RUN_BYTES: usize = super::LONGEST_DATAGRAM;

/// What an error of the system means. Windows says by `WSAECONNRESET` that nobody
/// received an earlier datagram.
pub(super) fn obstacle(error: &io::Error) -> Obstacle {
    match error.kind() {
        ErrorKind::WouldBlock => Obstacle::Full,
        ErrorKind::Interrupted => Obstacle::Again,
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable => Obstacle::Unreachable,
        ErrorKind::InvalidInput => Obstacle::Invalid,
        ErrorKind::Unsupported => Obstacle::NoSuchCall,
        _ => match Errno::from_io_error(error) {
            Some(Errno::NOBUFS) => Obstacle::Full,
            Some(Errno::HOSTDOWN) => Obstacle::Unreachable,
            Some(Errno::MSGSIZE) => Obstacle::TooLong,
            _ => Obstacle::Failure,
        },
    }
}

/// Asks for the buffers, within the system's limits.
pub(super) fn make_room(socket: BorrowedFd<'_>, options: &Options) {
    enlarge_receive_buffer(socket, options.receive_buffer);
    let _ = sockopt::set_socket_send_buffer_size(socket, options.send_buffer);
}

/// Asks for so many bytes that may wait to be read, likewise.
pub(super) fn enlarge_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) {
    let _ = sockopt::set_socket_recv_buffer_size(socket, bytes);
}

/// The address of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name(SocketAddr);

impl Name {
    /// What stands for a sender that is not known.
    pub(super) const NOWHERE: SocketAddr =
        SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

    /// The address.
    #[expect(clippy::unnecessary_wraps, reason = "the shape that Linux has")]
    pub(super) const fn address(&self) -> Option<SocketAddr> {
        Some(self.0)
    }
}

/// Sends none.
#[derive(Debug, Default)]
pub(super) struct Transmission {}

impl Transmission {
    /// Says that there are no batches.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) fn send<'a>(
        &mut self,
        _: BorrowedFd<'_>,
        _: impl Iterator<Item = Run<'a>> + Clone,
    ) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Receives none.
#[derive(Debug)]
pub(super) struct Reception;

impl Reception {
    /// For no reads.
    pub(super) const fn new(_: usize) -> Self {
        Self
    }

    /// Says that there are no batches.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) fn receive(
        &mut self,
        _: BorrowedFd<'_>,
        _: &mut [u8],
        _: bool,
    ) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    /// None.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize, &Name)> {
        std::iter::empty()
    }
}

/// Datagrams are not joined.
pub(super) fn join_received(_: BorrowedFd<'_>, _: bool) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Writes are not cut.
pub(super) const fn can_cut(_: BorrowedFd<'_>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_distinguished() {
        let of = |errno: Errno| obstacle(&errno.into());
        assert_eq!(of(Errno::WOULDBLOCK), Obstacle::Full);
        assert_eq!(of(Errno::CONNREFUSED), Obstacle::Unreachable);
        assert_eq!(of(Errno::MSGSIZE), Obstacle::TooLong);
        assert_eq!(of(Errno::BADF), Obstacle::Failure);
        assert_eq!(
            obstacle(&ErrorKind::Unsupported.into()),
            Obstacle::NoSuchCall
        );
    }
}
