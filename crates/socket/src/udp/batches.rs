//! `sendmmsg(2)` and `recvmmsg(2)` with the control messages of `udp(7)`.
//!
//! No safe wrapper offers these without an allocation for each call or with
//! control messages that differ from message to message. All `unsafe` of the
//! crate is here: the two calls, the marks that let their headers move between
//! threads, and two socket options.
#![allow(unsafe_code, reason = "system calls without a fitting safe wrapper")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use nix::libc::{self, c_int, c_uint, iovec, mmsghdr, msghdr, socklen_t};

use super::incoming::PIECE_BYTES;
use super::outgoing::Run;

/// The most datagrams that one write is cut into. Linux permits 128 since
/// 6.9, 64 before (`UDP_MAX_SEGMENTS`).
pub(super) const MOST_RUN_DATAGRAMS: usize = 64;
/// The most bytes of one write: the longest datagram over IPv4.
pub(super) const MOST_RUN_BYTES: usize = super::LONGEST_DATAGRAM;
/// The most writes that share a call.
const MOST_RUNS: usize = 64;

/// The room an address takes that the kernel writes or reads: the longest of
/// `sockaddr_in` (16 bytes) and `sockaddr_in6` (28).
const NAME_BYTES: usize = 28;

/// An address as the kernel lays it out.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Name([u8; NAME_BYTES]);

impl Name {
    const EMPTY: Self = Self([0; NAME_BYTES]);
    /// What stands for a sender that the kernel did not name.
    pub(super) const NOWHERE: SocketAddr =
        SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

    /// `sockaddr_in` or `sockaddr_in6` of an address, and its length.
    fn of(address: SocketAddr) -> (Self, socklen_t) {
        let mut bytes = [0; NAME_BYTES];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(v4) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                (Self(bytes), 16)
            }
            SocketAddr::V6(v6) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (Self(bytes), NAME_BYTES as socklen_t)
            }
        }
    }

    /// The address, if it is one of the internet.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let bytes = &self.0;
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        match c_int::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
            libc::AF_INET => Some(SocketAddrV4::new(Ipv4Addr::from(word(4)), port).into()),
            libc::AF_INET6 => {
                let mut octets = [0; 16];
                octets.copy_from_slice(&bytes[8..24]);
                let flow = u32::from_be_bytes(word(4));
                let scope = u32::from_ne_bytes(word(24));
                Some(SocketAddrV6::new(Ipv6Addr::from(octets), port, flow, scope).into())
            }
            _ => None,
        }
    }
}

/// A control message that holds an integer: the segment size of a write (two
/// bytes) or of a read (four).
#[derive(Clone, Copy)]
#[repr(C)]
struct Control {
    header: ControlHeader,
    value: Value,
}

/// `cmsghdr` as the kernel has it: C libraries have lengths of their own.
#[derive(Clone, Copy)]
#[repr(C)]
struct ControlHeader {
    bytes: usize,
    level: c_int,
    kind: c_int,
}

/// The integer, with the alignment of control messages.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Value([u8; 8]);

const SEGMENT_BYTES: usize = size_of::<u16>();
const GRO_BYTES: usize = size_of::<c_int>();

// The kernel's own arithmetic gives the layout of the structure above.
const _: () = {
    // SAFETY: the macros only add and round.
    let (space, length) = unsafe { (libc::CMSG_SPACE(2), libc::CMSG_LEN(0)) };
    assert!(size_of::<Control>() == space as usize);
    assert!(std::mem::offset_of!(Control, value) == length as usize);
};

impl Control {
    /// Room for what the kernel writes.
    fn empty() -> Self {
        Self::with(0, 0, [0; 8], 0)
    }

    /// A write is to be cut into datagrams of so many bytes.
    fn segment(bytes: u16) -> Self {
        let mut value = [0; 8];
        value[..SEGMENT_BYTES].copy_from_slice(&bytes.to_ne_bytes());
        Self::with(libc::SOL_UDP, libc::UDP_SEGMENT, value, SEGMENT_BYTES)
    }

    fn with(level: c_int, kind: c_int, value: [u8; 8], bytes: usize) -> Self {
        Self {
            header: ControlHeader {
                bytes: std::mem::offset_of!(Self, value) + bytes,
                level,
                kind,
            },
            value: Value(value),
        }
    }

    /// The size of the datagrams that a read was joined from.
    fn joined_from(&self) -> Option<usize> {
        let header = &self.header;
        let is_gro = header.level == libc::SOL_UDP && header.kind == libc::UDP_GRO;
        let whole = header.bytes >= std::mem::offset_of!(Self, value) + GRO_BYTES;
        let [a, b, c, d, ..] = self.value.0;
        (is_gro && whole)
            .then(|| c_int::from_ne_bytes([a, b, c, d]))
            .and_then(|bytes| usize::try_from(bytes).ok())
            .filter(|&bytes| bytes > 0)
    }
}

/// What `sendmmsg` reads, kept for its memory.
#[derive(Default)]
pub(super) struct Transmission {
    headers: Vec<mmsghdr>,
    slices: Vec<iovec>,
    names: Vec<(Name, socklen_t)>,
    controls: Vec<Control>,
}

impl Transmission {
    /// Hands runs to the kernel, as many as it takes, in one call. A run of
    /// several datagrams is cut by the kernel. Returns how many runs were
    /// taken; an error means none was, because of the first.
    pub(super) fn send<'a>(
        &mut self,
        socket: BorrowedFd<'_>,
        runs: impl Iterator<Item = Run<'a>> + Clone,
    ) -> io::Result<usize> {
        self.headers.clear();
        self.slices.clear();
        self.names.clear();
        self.controls.clear();
        // First everything that headers point to, so that nothing moves once
        // they do.
        let runs = runs.take(MOST_RUNS);
        for run in runs.clone() {
            self.slices.extend(run.iter().map(|bytes| iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            }));
            self.names.push(run.to().map_or((Name::EMPTY, 0), Name::of));
            // A run's datagrams are no longer than `MOST_RUN_BYTES`.
            self.controls
                .push(Control::segment(run.segment_bytes() as u16));
        }
        let mut slice = 0;
        for (index, run) in runs.enumerate() {
            let (name, name_bytes) = &mut self.names[index];
            let mut header = empty_header();
            if *name_bytes > 0 {
                header.msg_name = ptr::from_mut(name).cast();
                header.msg_namelen = *name_bytes;
            }
            header.msg_iov = &raw mut self.slices[slice];
            header.msg_iovlen = run.datagrams() as _;
            slice += run.datagrams();
            if run.datagrams() > 1 {
                header.msg_control = (&raw mut self.controls[index]).cast();
                header.msg_controllen = size_of::<Control>() as _;
            }
            self.headers.push(mmsghdr {
                msg_hdr: header,
                msg_len: 0,
            });
        }
        if self.headers.is_empty() {
            return Ok(0);
        }
        // SAFETY: there are as many headers as said. Each points to a name, to
        // slices and to a control message that lie in this structure's
        // vectors, which have not been touched since, and each slice to a
        // datagram that `runs` borrows until this function returns. The kernel
        // writes only to `msg_len`.
        let taken = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        usize::try_from(taken).map_err(|_| io::Error::last_os_error())
    }
}

/// What `recvmmsg` writes, kept for its memory.
pub(super) struct Reception {
    headers: Vec<mmsghdr>,
    slices: Vec<iovec>,
    names: Vec<Name>,
    controls: Vec<Control>,
    filled: usize,
}

impl Reception {
    /// For so many reads in one call.
    pub(super) fn new(reads: usize) -> Self {
        Self {
            headers: Vec::with_capacity(reads),
            slices: Vec::with_capacity(reads),
            names: vec![Name::EMPTY; reads],
            controls: vec![Control::empty(); reads],
            filled: 0,
        }
    }

    /// Reads what is there into `memory`, cut into as many pieces as there
    /// are reads, in one call. `names` says whether the senders are of
    /// interest. Returns how many pieces were filled.
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &mut [u8],
        names: bool,
    ) -> io::Result<usize> {
        self.filled = 0;
        self.headers.clear();
        self.slices.clear();
        for piece in memory.chunks_exact_mut(PIECE_BYTES).take(self.names.len()) {
            self.slices.push(iovec {
                iov_base: piece.as_mut_ptr().cast(),
                iov_len: PIECE_BYTES,
            });
        }
        for (index, slice) in self.slices.iter_mut().enumerate() {
            let mut header = empty_header();
            if names {
                self.names[index] = Name::EMPTY;
                header.msg_name = (&raw mut self.names[index]).cast();
                header.msg_namelen = NAME_BYTES as socklen_t;
            }
            self.controls[index] = Control::empty();
            header.msg_iov = ptr::from_mut(slice);
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = size_of::<Control>() as _;
            self.headers.push(mmsghdr {
                msg_hdr: header,
                msg_len: 0,
            });
        }
        // SAFETY: there are as many headers as said. Each points to a name, a
        // slice and a control message of the lengths said, all of which lie in
        // this structure's vectors, and each slice to its own piece of
        // `memory`, which is borrowed exclusively until this function returns.
        let filled = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        self.filled = usize::try_from(filled).map_err(|_| io::Error::last_os_error())?;
        Ok(self.filled)
    }

    /// Of each piece that the last call filled: its bytes, the size of the
    /// datagrams it was joined from, and its sender.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize, &Name)> {
        let pieces = self.headers.iter().zip(&self.controls).zip(&self.names);
        pieces.take(self.filled).map(|((header, control), name)| {
            let bytes = (header.msg_len as usize).min(PIECE_BYTES);
            (bytes, control.joined_from().unwrap_or(bytes), name)
        })
    }
}

// SAFETY: the pointers in the headers and slices are written and used within
// one call and never followed after it.
unsafe impl Send for Transmission {}
// SAFETY: as for `Transmission`; what is read after the call is the headers'
// lengths and memory that the structure owns.
unsafe impl Send for Reception {}
// SAFETY: a shared reference gives no way to the pointers.
unsafe impl Sync for Transmission {}
// SAFETY: as for `Transmission`.
unsafe impl Sync for Reception {}

impl std::fmt::Debug for Transmission {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Transmission")
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Reception {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reception").finish_non_exhaustive()
    }
}

/// Whether the kernel joins datagrams of one sender from now on, and says so.
pub(super) fn join_received(socket: BorrowedFd<'_>, join: bool) -> io::Result<()> {
    let on = c_int::from(join);
    // SAFETY: the pointer is to an integer of the length given, which the call
    // only reads.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const on).cast(),
            size_of::<c_int>() as socklen_t,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether the kernel cuts large writes into datagrams. One that does not
/// would ignore the control message and send a single long datagram.
pub(super) fn can_cut(socket: BorrowedFd<'_>) -> bool {
    let mut bytes: c_int = 0;
    let mut length = size_of::<c_int>() as socklen_t;
    // SAFETY: UDP_SEGMENT writes an integer of the length given, to which the
    // pointer points.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw mut bytes).cast(),
            &raw mut length,
        )
    };
    outcome == 0
}

/// A header that says nothing.
fn empty_header() -> msghdr {
    // SAFETY: the structure is plain numbers and pointers, for which zero is a
    // value; some platforms have private padding, so it cannot be written out.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernels_layout() {
        for written in ["127.0.0.1:9", "[::1]:65535", "[fe80::1%3]:80"] {
            let address: SocketAddr = written.parse().unwrap();
            assert_eq!(Name::of(address).0.address(), Some(address));
        }
        assert_eq!(Name::EMPTY.address(), None);
    }

    #[test]
    fn a_segment_size_is_read_back_only_from_the_right_control_message() {
        let mut value = [0; 8];
        value[..4].copy_from_slice(&1200_i32.to_ne_bytes());
        let gro = Control::with(libc::SOL_UDP, libc::UDP_GRO, value, GRO_BYTES);
        assert_eq!(gro.joined_from(), Some(1200));
        assert_eq!(Control::segment(1200).joined_from(), None);
        assert_eq!(Control::empty().joined_from(), None);
    }
}
