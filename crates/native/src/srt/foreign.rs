//! The calls into `libsrt`: the one module that is allowed `unsafe`.
//!
//! Its interface is C, and no exception crosses it. Sockets are plain numbers
//! to it, looked up in a table under a lock at every call; a number that is
//! none is answered with an error. What remains to be argued is memory handed
//! over, and that is argued at each block.
//!
//! What SRT leaves to chance comes from the kernel. It draws its first sequence numbers
//! and the numbers of its sockets from C++'s `std::random_device`, which on x86-64 is the
//! processor's own generator (`RDSEED`, `RDRAND`): no kernel is asked, so that a guest
//! whose kernel repeats its random numbers is not the same twice. A program's own symbols
//! go before those of the libraries it is linked with, so here `random_device` is three
//! functions that ask the kernel.

#![allow(unsafe_code, reason = "the calls into C live here")]

use std::ffi::{c_char, c_int, c_void};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::IntoRawFd;
use std::ptr;

use socket2::SockAddr;

use crate::srt::error::{Error, Kind};

unsafe extern "C" {
    // Numbers in, numbers out: these may be called with anything.
    safe fn srt_startup() -> c_int;
    safe fn srt_cleanup() -> c_int;
    safe fn srt_getversion() -> u32;
    safe fn srt_setloglevel(level: c_int);
    safe fn srt_create_socket() -> c_int;
    safe fn srt_listen(socket: c_int, backlog: c_int) -> c_int;
    safe fn srt_close(socket: c_int) -> c_int;
    safe fn srt_getsockstate(socket: c_int) -> c_int;

    /// The C library's: random bytes of the kernel, 256 at most.
    fn getentropy(buffer: *mut c_void, length: usize) -> c_int;

    fn srt_getlasterror(system_error: *mut c_int) -> c_int;
    fn srt_bind_acquire(socket: c_int, udp: c_int) -> c_int;
    fn srt_accept(socket: c_int, peer: *mut c_void, peer_length: *mut c_int) -> c_int;
    fn srt_connect(socket: c_int, peer: *const c_void, peer_length: c_int) -> c_int;
    fn srt_setsockflag(
        socket: c_int,
        option: c_int,
        value: *const c_void,
        value_length: c_int,
    ) -> c_int;
    fn srt_sendmsg(
        socket: c_int,
        bytes: *const c_char,
        length: c_int,
        lifetime_ms: c_int,
        in_order: c_int,
    ) -> c_int;
    fn srt_recvmsg(socket: c_int, bytes: *mut c_char, length: c_int) -> c_int;
}

fn result(doing: &'static str, answer: c_int) -> Result<c_int, Error> {
    if answer != -1 {
        return Ok(answer);
    }
    let mut system_error = 0;
    // SAFETY: the pointer is to a live integer; it is written and not kept.
    let code = unsafe { srt_getlasterror(&raw mut system_error) };
    Err(Error::new(doing, Kind::from_code(code, system_error)))
}

pub(crate) fn startup() -> Result<(), Error> {
    result("starting", srt_startup())?;
    // Critical messages only: it writes to standard error by itself.
    srt_setloglevel(2);
    Ok(())
}

pub(crate) fn cleanup() {
    // It answers nothing but success.
    let _ = srt_cleanup();
}

/// Major, minor and patch level, a byte each.
pub(crate) fn version() -> u32 {
    srt_getversion()
}

pub(crate) fn socket() -> Result<c_int, Error> {
    result("making a socket", srt_create_socket())
}

pub(crate) fn set_int(socket: c_int, option: c_int, value: c_int) -> Result<(), Error> {
    let length = c_int::try_from(size_of::<c_int>()).unwrap_or(0);
    // SAFETY: the pointer is to a live integer of the length that is given;
    // callers name options that are an integer, and it is copied.
    let answer = unsafe { srt_setsockflag(socket, option, (&raw const value).cast(), length) };
    result("setting an option", answer).map(drop)
}

pub(crate) fn set_bool(socket: c_int, option: c_int, value: bool) -> Result<(), Error> {
    // SAFETY: as in `set_int`, for options that are a C++ `bool`, one byte.
    let answer = unsafe { srt_setsockflag(socket, option, (&raw const value).cast(), 1) };
    result("setting an option", answer).map(drop)
}

pub(crate) fn bind(socket: c_int, udp: UdpSocket) -> Result<(), Error> {
    // SAFETY: the descriptor is open and given away here; SRT closes it with
    // the socket. Where SRT fails before taking it, it stays open for good,
    // which is safe.
    let answer = unsafe { srt_bind_acquire(socket, udp.into_raw_fd()) };
    result("binding", answer).map(drop)
}

pub(crate) fn listen(socket: c_int, backlog: c_int) -> Result<(), Error> {
    result("listening", srt_listen(socket, backlog)).map(drop)
}

pub(crate) fn accept(socket: c_int) -> Result<c_int, Error> {
    // SAFETY: both may be null, where the peer's address is not asked for.
    let answer = unsafe { srt_accept(socket, ptr::null_mut(), ptr::null_mut()) };
    result("accepting", answer)
}

pub(crate) fn connect(socket: c_int, peer: SocketAddr) -> Result<(), Error> {
    let peer = SockAddr::from(peer);
    let length = c_int::try_from(peer.len()).unwrap_or(0);
    // SAFETY: the address lives through the call, has this length, and is
    // copied.
    let answer = unsafe { srt_connect(socket, peer.as_ptr().cast(), length) };
    result("connecting", answer).map(drop)
}

pub(crate) fn close(socket: c_int) {
    // Closing what is closed is its only error.
    let _ = srt_close(socket);
}

pub(crate) fn state(socket: c_int) -> c_int {
    srt_getsockstate(socket)
}

pub(crate) fn send_message(socket: c_int, message: &[u8]) -> Result<(), Error> {
    let length = c_int::try_from(message.len()).unwrap_or(c_int::MAX);
    // SAFETY: the bytes live through the call, are at least that many, and are
    // copied.
    let answer = unsafe { srt_sendmsg(socket, message.as_ptr().cast(), length, -1, 1) };
    result("sending", answer).map(drop)
}

pub(crate) fn receive_message(socket: c_int, buffer: &mut [u8]) -> Result<usize, Error> {
    let length = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
    // SAFETY: the buffer lives through the call, is ours alone, and SRT writes
    // at most its length into it.
    let answer = unsafe { srt_recvmsg(socket, buffer.as_mut_ptr().cast(), length) };
    result("receiving", answer).map(|received| received as usize)
}

/// `std::random_device::_M_init(std::string const&)`: there is nothing to open.
// SAFETY: it has the name and the signature of what it stands for, touches none of its
// arguments and does not unwind. So have and do the two below.
#[unsafe(export_name = "_ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")]
extern "C" fn random_device_init(_device: *mut c_void, _token: *const c_void) {}

/// `std::random_device::_M_getval()`: a random number.
#[unsafe(export_name = "_ZNSt13random_device9_M_getvalEv")]
extern "C" fn random_device_value(_device: *mut c_void) -> u32 {
    let mut value = [0; 4];
    // SAFETY: the buffer is as long as is said.
    if unsafe { getentropy(value.as_mut_ptr().cast(), value.len()) } != 0 {
        // It has no way to say so, and may not unwind.
        std::process::abort();
    }
    u32::from_ne_bytes(value)
}

/// `std::random_device::_M_fini()`: there is nothing to close.
#[unsafe(export_name = "_ZNSt13random_device7_M_finiEv")]
extern "C" fn random_device_finish(_device: *mut c_void) {}
