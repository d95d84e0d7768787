//! One system call each, and nothing around it.
//!
//! The C library makes of `send` and `recv` points at which a thread can be
//! cancelled, which in a process with several threads costs a fiftieth of an
//! echo. These go straight to the kernel.

use std::io;

use lagometer_platform::NO_SIGNAL;
use rustix::fd::AsFd;
use rustix::net::RecvFlags;

/// Sends `bytes`, or over a stream the beginning of them; how many.
///
/// # Errors
///
/// What the system says.
#[inline]
pub(crate) fn send(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, NO_SIGNAL)?)
}

/// Receives into `buffer`; how many bytes. What of a datagram does not fit is
/// gone.
///
/// # Errors
///
/// What the system says.
#[inline]
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (filled, _) = rustix::net::recv(socket, buffer, RecvFlags::empty())?;
    Ok(filled)
}
