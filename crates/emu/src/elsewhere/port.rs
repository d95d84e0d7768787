//! Where the router meets a side of a lane: the relay's UDP sockets alone.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;

use lagometer_capture::{UDP_V4_HEADER_BYTES, UdpHeaders, taken_off};
use rustix::fd::{AsFd, BorrowedFd};

/// The router's side of one lane's end: a UDP socket of the relay, connected to that
/// end, and the headers of datagrams from there.
#[derive(Debug)]
pub(crate) struct Port {
    socket: UdpSocket,
    headers: UdpHeaders,
}

impl Port {
    /// The relay's socket and the headers of what it takes.
    pub(crate) const fn relay(socket: UdpSocket, headers: UdpHeaders) -> Self {
        Self { socket, headers }
    }

    /// Takes the next packet the side sends into `packet` and returns its length;
    /// nothing if none waits.
    pub(crate) fn take(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(room) = packet.get_mut(UDP_V4_HEADER_BYTES..) else {
            return Ok(Some(0));
        };
        match self.socket.recv(room) {
            Ok(length) => {
                let length = length + UDP_V4_HEADER_BYTES;
                self.headers.encapsulate(&mut packet[..length]);
                Ok(Some(length))
            }
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands `packet` to the side as one that has arrived.
    pub(crate) fn hand_over(&self, packet: &[u8]) -> io::Result<()> {
        // What a host's kernel would drop is dropped.
        let Some(payload) = taken_off(packet) else {
            return Ok(());
        };
        match self.socket.send(payload) {
            Err(error) if is_absence(&error) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Sockets do not say how many packets they lost.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the shape that Linux has"
    )]
    pub(crate) const fn lost(&self) -> io::Result<u64> {
        Ok(0)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a packet was refused for what it is or for want of room, rather than
/// because the port is broken.
pub(crate) fn is_about_the_packet(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == ErrorKind::WouldBlock
        || matches!(
            Errno::from_io_error(error),
            Some(Errno::MSGSIZE | Errno::NOBUFS | Errno::INVAL)
        )
}

/// A side that is not there yet, or no more, is reported by an error on the next call of
/// its relay.
fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}

fn is_passing(error: &io::Error) -> bool {
    is_absence(error) || matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
