//! The calls into the shim: the one module that is allowed `unsafe`.
//!
//! Sockets and polls are plain numbers to UDT, looked up in a table under a
//! lock at every call; a number that is none is answered with an error. What
//! remains to be argued is memory handed over, and that is argued at each
//! block. The shim lets no exception out.

#![allow(unsafe_code, reason = "the calls into C++ live here")]

use std::ffi::{c_char, c_int};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::IntoRawFd;
use std::time::Duration;

use socket2::SockAddr;

use crate::udt::error::{Error, Kind};

/// As `lagometer_udt_statistics` in `shim/api.cpp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawStatistics {
    pub(crate) sent_packets: i64,
    pub(crate) received_packets: i64,
    pub(crate) resent_packets: i32,
    pub(crate) lost_packets_sent: i32,
    pub(crate) lost_packets_received: i32,
    pub(crate) flight_packets: i32,
    pub(crate) window_packets: i32,
    pub(crate) reserved: i32,
    pub(crate) period_us: f64,
    pub(crate) round_trip_ms: f64,
    pub(crate) bandwidth_mbit_per_s: f64,
}

unsafe extern "C" {
    // Numbers in, numbers out: these may be called with anything.
    safe fn lagometer_udt_startup() -> c_int;
    safe fn lagometer_udt_cleanup() -> c_int;
    safe fn lagometer_udt_socket(ipv6: c_int, messages: c_int) -> c_int;
    safe fn lagometer_udt_listen(socket: c_int, backlog: c_int) -> c_int;
    safe fn lagometer_udt_close(socket: c_int) -> c_int;
    safe fn lagometer_udt_state(socket: c_int) -> c_int;
    safe fn lagometer_udt_set_int(socket: c_int, option: c_int, value: c_int) -> c_int;
    safe fn lagometer_udt_set_bool(socket: c_int, option: c_int, value: c_int) -> c_int;
    safe fn lagometer_udt_set_linger(socket: c_int, seconds: c_int) -> c_int;
    safe fn lagometer_udt_set_rate_control_4_10(socket: c_int) -> c_int;
    safe fn lagometer_udt_set_fixed_window(
        socket: c_int,
        window_packets: c_int,
        timeout_us: c_int,
        repeats_reports: c_int,
    ) -> c_int;
    safe fn lagometer_udt_poll_new() -> c_int;
    safe fn lagometer_udt_poll_add(poll: c_int, socket: c_int, events: c_int) -> c_int;
    safe fn lagometer_udt_poll_remove(poll: c_int, socket: c_int) -> c_int;
    safe fn lagometer_udt_poll_release(poll: c_int) -> c_int;
    safe fn lagometer_udt_thread_cpu_ns(thread: c_int) -> i64;
    safe fn lagometer_udt_make_ordinary(thread: c_int);

    fn lagometer_udt_error(system_error: *mut c_int) -> c_int;
    fn lagometer_udt_bind(socket: c_int, udp: c_int) -> c_int;
    fn lagometer_udt_accept(
        socket: c_int,
        peer: *mut SockAddrStorage,
        peer_length: *mut c_int,
    ) -> c_int;
    fn lagometer_udt_connect(
        socket: c_int,
        peer: *const SockAddrStorage,
        peer_length: c_int,
    ) -> c_int;
    fn lagometer_udt_get_int(socket: c_int, option: c_int, value: *mut c_int) -> c_int;
    fn lagometer_udt_send(socket: c_int, bytes: *const c_char, length: c_int) -> c_int;
    fn lagometer_udt_send_message(
        socket: c_int,
        bytes: *const c_char,
        length: c_int,
        lifetime_ms: c_int,
        in_order: c_int,
    ) -> c_int;
    fn lagometer_udt_receive(socket: c_int, bytes: *mut c_char, length: c_int) -> c_int;
    fn lagometer_udt_receive_message(socket: c_int, bytes: *mut c_char, length: c_int) -> c_int;
    fn lagometer_udt_poll_wait(
        poll: c_int,
        readable: *mut c_int,
        readable_count: *mut c_int,
        writable: *mut c_int,
        writable_count: *mut c_int,
        timeout_ms: i64,
    ) -> c_int;
    fn lagometer_udt_statistics(socket: c_int, out: *mut RawStatistics) -> c_int;
}

/// A `sockaddr` of either family, which only `socket2` looks into.
type SockAddrStorage = socket2::SockAddrStorage;

/// UDT's answer as a result: -1 is an error, whose kind this thread reads.
fn result(doing: &'static str, answer: c_int) -> Result<c_int, Error> {
    if answer != -1 {
        return Ok(answer);
    }
    let mut system_error = 0;
    // SAFETY: the pointer is to a live integer; the shim writes it and keeps
    // nothing.
    let code = unsafe { lagometer_udt_error(&raw mut system_error) };
    Err(Error::new(doing, Kind::from_code(code, system_error)))
}

/// A length as UDT takes it. What is longer than an `int` is cut: reads then
/// read less, and writes are bounded by UDT's buffer far below that.
fn length(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).unwrap_or(c_int::MAX)
}

pub(crate) fn startup() -> Result<(), Error> {
    result("starting", lagometer_udt_startup()).map(drop)
}

pub(crate) fn cleanup() {
    // Its only errors are thrown by allocations that clean-up does not make.
    let _ = lagometer_udt_cleanup();
}

pub(crate) fn socket(ipv6: bool, messages: bool) -> Result<c_int, Error> {
    result(
        "making a socket",
        lagometer_udt_socket(ipv6.into(), messages.into()),
    )
}

pub(crate) fn bind(socket: c_int, udp: UdpSocket) -> Result<(), Error> {
    // SAFETY: the descriptor is open and given away here, so nobody else
    // closes it or reads from it; UDT closes it with the socket. Where UDT
    // fails before taking it, it stays open for good, which is safe.
    let answer = unsafe { lagometer_udt_bind(socket, udp.into_raw_fd()) };
    result("binding", answer).map(drop)
}

pub(crate) fn listen(socket: c_int, backlog: c_int) -> Result<(), Error> {
    result("listening", lagometer_udt_listen(socket, backlog)).map(drop)
}

pub(crate) fn accept(socket: c_int) -> Result<(c_int, Option<SocketAddr>), Error> {
    let mut peer = SockAddrStorage::zeroed();
    let mut peer_length = c_int::try_from(size_of::<SockAddrStorage>()).unwrap_or(0);
    // SAFETY: both pointers are to live values; the storage holds an address
    // of any family, and UDT writes no more than one of the socket's family.
    let answer = unsafe { lagometer_udt_accept(socket, &raw mut peer, &raw mut peer_length) };
    let accepted = result("accepting", answer)?;
    let peer_length = u32::try_from(peer_length).unwrap_or(0);
    // SAFETY: UDT has written an address of this length, or nothing, and the
    // storage was zeroed before, which is an address of no family.
    let peer = unsafe { SockAddr::new(peer, peer_length) };
    Ok((accepted, peer.as_socket()))
}

pub(crate) fn connect(socket: c_int, peer: SocketAddr) -> Result<(), Error> {
    let peer = SockAddr::from(peer);
    let peer_length = c_int::try_from(peer.len()).unwrap_or(0);
    // SAFETY: the address lives through the call and has the length that is
    // given, which UDT checks against the family of the socket; it copies it.
    let answer = unsafe { lagometer_udt_connect(socket, peer.as_ptr().cast(), peer_length) };
    result("connecting", answer).map(drop)
}

pub(crate) fn close(socket: c_int) {
    // Closing what is closed is its only error.
    let _ = lagometer_udt_close(socket);
}

pub(crate) fn state(socket: c_int) -> c_int {
    lagometer_udt_state(socket)
}

pub(crate) fn set_int(socket: c_int, option: c_int, value: c_int) -> Result<(), Error> {
    result(
        "setting an option",
        lagometer_udt_set_int(socket, option, value),
    )
    .map(drop)
}

pub(crate) fn set_bool(socket: c_int, option: c_int, value: bool) -> Result<(), Error> {
    result(
        "setting an option",
        lagometer_udt_set_bool(socket, option, value.into()),
    )
    .map(drop)
}

pub(crate) fn set_linger(socket: c_int, seconds: c_int) -> Result<(), Error> {
    result("setting linger", lagometer_udt_set_linger(socket, seconds)).map(drop)
}

pub(crate) fn set_rate_control_4_10(socket: c_int) -> Result<(), Error> {
    result(
        "setting the rate control",
        lagometer_udt_set_rate_control_4_10(socket),
    )
    .map(drop)
}

pub(crate) fn set_fixed_window(
    socket: c_int,
    window_packets: c_int,
    timeout_us: c_int,
    repeats_reports: bool,
) -> Result<(), Error> {
    result(
        "setting the rate control",
        lagometer_udt_set_fixed_window(socket, window_packets, timeout_us, repeats_reports.into()),
    )
    .map(drop)
}

pub(crate) fn get_int(socket: c_int, option: c_int) -> Result<c_int, Error> {
    let mut value = 0;
    // SAFETY: the pointer is to a live integer, and callers ask only for
    // options that are one.
    let answer = unsafe { lagometer_udt_get_int(socket, option, &raw mut value) };
    result("reading an option", answer).map(|_| value)
}

pub(crate) fn send(socket: c_int, bytes: &[u8]) -> Result<usize, Error> {
    // SAFETY: the bytes live through the call, have this length, and are
    // copied.
    let answer = unsafe { lagometer_udt_send(socket, bytes.as_ptr().cast(), length(bytes)) };
    result("sending", answer).map(|sent| sent as usize)
}

pub(crate) fn send_message(
    socket: c_int,
    bytes: &[u8],
    lifetime_ms: c_int,
    in_order: bool,
) -> Result<usize, Error> {
    // SAFETY: as in `send`.
    let answer = unsafe {
        lagometer_udt_send_message(
            socket,
            bytes.as_ptr().cast(),
            length(bytes),
            lifetime_ms,
            in_order.into(),
        )
    };
    result("sending", answer).map(|sent| sent as usize)
}

pub(crate) fn receive(socket: c_int, buffer: &mut [u8]) -> Result<usize, Error> {
    // SAFETY: the buffer lives through the call, is ours alone, and UDT writes
    // at most its length into it.
    let answer =
        unsafe { lagometer_udt_receive(socket, buffer.as_mut_ptr().cast(), length(buffer)) };
    result("receiving", answer).map(|received| received as usize)
}

pub(crate) fn receive_message(socket: c_int, buffer: &mut [u8]) -> Result<usize, Error> {
    // SAFETY: as in `receive`.
    let answer = unsafe {
        lagometer_udt_receive_message(socket, buffer.as_mut_ptr().cast(), length(buffer))
    };
    result("receiving", answer).map(|received| received as usize)
}

pub(crate) fn poll_new() -> Result<c_int, Error> {
    result("making a poll", lagometer_udt_poll_new())
}

pub(crate) fn poll_add(poll: c_int, socket: c_int, events: c_int) -> Result<(), Error> {
    result(
        "watching a socket",
        lagometer_udt_poll_add(poll, socket, events),
    )
    .map(drop)
}

pub(crate) fn poll_remove(poll: c_int, socket: c_int) -> Result<(), Error> {
    result("leaving a socket", lagometer_udt_poll_remove(poll, socket)).map(drop)
}

/// Whether the one socket of the poll is readable and writable.
pub(crate) fn poll_wait(poll: c_int, timeout_ms: i64) -> Result<(bool, bool), Error> {
    let (mut readable, mut writable) = (0, 0);
    let (mut readable_count, mut writable_count) = (1, 1);
    // SAFETY: all pointers are to live integers; each list has room for the one
    // socket that its count says, and UDT writes no more than that.
    let answer = unsafe {
        lagometer_udt_poll_wait(
            poll,
            &raw mut readable,
            &raw mut readable_count,
            &raw mut writable,
            &raw mut writable_count,
            timeout_ms,
        )
    };
    result("waiting", answer).map(|_| (readable_count > 0, writable_count > 0))
}

pub(crate) fn poll_release(poll: c_int) {
    // Releasing what is released is its only error.
    let _ = lagometer_udt_poll_release(poll);
}

pub(crate) fn statistics(socket: c_int) -> Result<RawStatistics, Error> {
    let mut out = RawStatistics::default();
    // SAFETY: the pointer is to a live value of the layout that the shim
    // declares; it writes that and keeps nothing.
    let answer = unsafe { lagometer_udt_statistics(socket, &raw mut out) };
    result("reading statistics", answer).map(|_| out)
}

/// The processor time of a thread of this process, nothing where it has ended.
pub(crate) fn thread_cpu(thread: i32) -> Option<Duration> {
    u64::try_from(lagometer_udt_thread_cpu_ns(thread))
        .ok()
        .map(Duration::from_nanos)
}

/// Gives a thread of this process the ordinary scheduling policy.
pub(crate) fn make_ordinary(thread: i32) {
    lagometer_udt_make_ordinary(thread);
}
