//! Streams of the kernel's TCP that are used as they are: reading in large pieces, and
//! the congestion control.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;

use nix::libc;
use nix::setsockopt_impl;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetUsize;
use rustix::net::sockopt;

/// Bytes that must lie there before a sleeping reader is woken.
#[derive(Clone, Copy, Debug)]
struct ReceiveLowWater;

setsockopt_impl!(
    ReceiveLowWater,
    libc::SOL_SOCKET,
    libc::SO_RCVLOWAT,
    usize,
    SetUsize
);

/// From now on a reader of `stream` that waits sleeps until `bytes` bytes lie
/// there, or the stream has ended, or the time-out of its read is over; it
/// then gets what there is.
///
/// A reader that keeps up with its sender otherwise finds little each time
/// and sleeps again, and the sender pays for waking it. The kernel keeps the
/// mark below what its receive buffer may hold.
///
/// # Errors
///
/// What the system says.
pub fn gather(stream: &impl AsFd, bytes: usize) -> io::Result<()> {
    setsockopt(stream, ReceiveLowWater, &bytes).map_err(Into::into)
}

/// The congestion control that a connection has; `None` where the system does not
/// say.
#[must_use]
pub fn congestion(stream: &TcpStream) -> Option<String> {
    sockopt::tcp_congestion(stream).ok()
}

/// Chooses the congestion control.
///
/// # Errors
///
/// What the system says: [`io::ErrorKind::NotFound`] where it is not there, and
/// [`io::ErrorKind::PermissionDenied`], with how to be permitted, where root alone may
/// choose it.
pub fn set_congestion(stream: impl AsFd, name: &str) -> io::Result<()> {
    sockopt::set_tcp_congestion(stream, name).map_err(|why| match io::Error::from(why) {
        why if why.kind() == io::ErrorKind::PermissionDenied => io::Error::new(
            why.kind(),
            format!(
                "{why}: root alone may choose the congestion control `{name}` here; as root, add it \
                 to net.ipv4.tcp_allowed_congestion_control"
            ),
        ),
        why => why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpListener};
    use std::thread;

    #[test]
    fn a_read_returns_with_enough_or_with_the_rest() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sender.set_nodelay(true).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        gather(&receiver, 1000).unwrap();
        let reading = thread::spawn(move || {
            let mut buffer = [0; 4000];
            let first = receiver.read(&mut buffer).unwrap();
            let mut rest = Vec::new();
            receiver.read_to_end(&mut rest).unwrap();
            (first, rest.len())
        });
        for _ in 0..128 {
            sender.write_all(&[7; 8]).unwrap();
        }
        sender.shutdown(Shutdown::Write).unwrap();
        let (first, rest) = reading.join().unwrap();
        assert!(first >= 1000, "{first}");
        assert_eq!(first + rest, 1024);
    }
}
