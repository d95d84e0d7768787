//! The options that Linux has for a TCP connection.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use socket2::{SockRef, TcpKeepalive};

/// The kernel takes so many bytes at most before they are sent.
pub(super) fn limit_unsent(socket: &SockRef<'_>, bytes: u32) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(bytes)
}

/// Chooses the congestion control.
pub(super) fn set_congestion_control(socket: &SockRef<'_>, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

/// A peer whose kernel says nothing for so long counts as gone; it is asked every
/// `probe`.
pub(super) fn keep_alive(
    socket: &SockRef<'_>,
    probe: Duration,
    dead_after: Duration,
) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(probe)
        .with_interval(probe)
        .with_retries(2);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(dead_after))
}

/// One write. The calls for sockets go a shorter way through the kernel than
/// those for files, and the one for a single slice the shortest.
pub(super) fn write_slices(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let written = match slices {
        [one] => send(stream, one, SendFlags::NOSIGNAL),
        several => {
            let mut nothing = SendAncillaryBuffer::default();
            sendmsg(stream, several, &mut nothing, SendFlags::NOSIGNAL)
        }
    };
    written.map_err(io::Error::from)
}
