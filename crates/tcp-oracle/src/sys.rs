//! System calls for which neither `rustix` nor `nix` has a safe wrapper. Each
//! is safe to call with any arguments.

#![allow(unsafe_code, reason = "system calls without a safe wrapper live here")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::libc;

/// The state of a TCP socket, as far as the C library's `struct tcp_info` goes.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which `info` has, and
    // any bytes, zeros among them, are a `tcp_info`: it has integers alone.
    unsafe {
        let result = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        );
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(info.assume_init())
    }
}
