//! The options that other systems than Linux have for a TCP connection.

use std::io::{self, IoSlice, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// The system takes what it has room for.
#[expect(clippy::unnecessary_wraps, reason = "the shape that Linux has")]
pub(super) const fn limit_unsent(_: &SockRef<'_>, _: u32) -> io::Result<()> {
    Ok(())
}

/// No program can choose it.
pub(super) fn set_congestion_control(_: &SockRef<'_>, _: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux lets a program choose; leave it out",
    ))
}

/// A peer whose system says nothing for so long counts as gone; it is asked every
/// `probe`.
pub(super) fn keep_alive(socket: &SockRef<'_>, probe: Duration, _: Duration) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(probe).with_interval(probe);
    socket.set_tcp_keepalive(&keepalive)
}

/// One write.
pub(super) fn write_slices(mut stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    stream.write_vectored(slices)
}
