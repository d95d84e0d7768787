//! Packet sockets: `packet(7)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::libc::{self, c_int, sockaddr_ll, socklen_t};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

/// Every protocol, in the byte order of the network.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();
/// What may wait in a socket, where the system permits as much.
const RECEIVE_BYTES: usize = 4 << 20;

/// Opens a socket through which whole frames pass, one for each read or
/// write, never blocking: what comes to the Ethernet device with index
/// `device` of the calling thread's network namespace, and what is to leave
/// through it.
///
/// # Errors
///
/// What the system says.
pub(crate) fn open(device: u32) -> io::Result<OwnedFd> {
    // With no protocol it receives nothing until it is bound.
    let socket = socket_with(
        AddressFamily::PACKET,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    set(socket.as_fd(), libc::PACKET_IGNORE_OUTGOING, 1)?;
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
    bind(socket.as_fd(), device)?;
    Ok(socket)
}

/// How many frames the socket lost for lack of room since this was last
/// asked.
///
/// # Errors
///
/// What the system says.
pub(crate) fn lost(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut figures = libc::tpacket_stats {
        tp_packets: 0,
        tp_drops: 0,
    };
    let mut length = size_of::<libc::tpacket_stats>() as socklen_t;
    // SAFETY: PACKET_STATISTICS writes a `struct tpacket_stats` of the length
    // given, to which the pointer points.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut figures).cast(),
            &raw mut length,
        )
    };
    succeeded(outcome)?;
    Ok(u64::from(figures.tp_drops))
}

/// Sets an option of the protocol's.
pub(super) fn set<T: Copy>(socket: BorrowedFd<'_>, option: c_int, value: T) -> io::Result<()> {
    // SAFETY: the pointer is to a value of the length given, which the call only
    // reads.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const value).cast(),
            size_of::<T>() as socklen_t,
        )
    };
    succeeded(outcome)
}

/// Has the socket receive every protocol of the device with an index, 0 for all.
pub(super) fn bind(socket: BorrowedFd<'_>, device: u32) -> io::Result<()> {
    let address = sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ALL_PROTOCOLS,
        sll_ifindex: device.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the pointer is to a whole `sockaddr_ll` of the length given,
    // which the call only reads.
    let outcome = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<sockaddr_ll>() as socklen_t,
        )
    };
    succeeded(outcome)
}

fn succeeded(outcome: c_int) -> io::Result<()> {
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
