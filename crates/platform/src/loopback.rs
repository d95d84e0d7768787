//! What stands in for an eventfd: a UDP socket of the loopback device, connected to
//! itself. And for what ends a wait from outside: a timeout.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
pub(crate) struct Waker(UdpSocket);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        // Connected, it takes nothing from others.
        socket.connect(socket.local_addr()?)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    pub(crate) fn wake(&self) -> io::Result<()> {
        match self.0.send(&[0]) {
            // So often that its buffer is full: it is readable.
            Err(error) if error.kind() != ErrorKind::WouldBlock && !is_full(&error) => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        while self.0.recv(&mut [0; 8]).is_ok() {}
    }
}

/// Whether the system has no room for another datagram (`ENOBUFS`, `WSAENOBUFS`).
fn is_full(error: &io::Error) -> bool {
    const NO_BUFFERS: [i32; 2] = [55, 10_055];
    error
        .raw_os_error()
        .is_some_and(|code| NO_BUFFERS.contains(&code))
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug)]
pub(crate) struct Reserve {
    _socket: UdpSocket,
}

impl Reserve {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {
            _socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
        })
    }
}

/// The longest that a read waits. Short against what people notice, long against what
/// it costs to look.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn let_reads_end(socket: &UdpSocket) -> io::Result<()> {
    socket.set_read_timeout(Some(LOOK))
}
