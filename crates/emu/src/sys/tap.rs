//! What passes a host's devices, with the kernel's own time stamps: a packet socket
//! with a ring, `packet(7)` and the kernel's `packet_mmap.rst`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc::{self, sockaddr_ll, tpacket_req, tpacket2_hdr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::packet;
use crate::audit::HEAD_BYTES;

/// Room for a packet's record and its head.
const FRAME_BYTES: usize = 256;
/// Frames that lie together; a whole number of pages.
const BLOCK_FRAMES: usize = 256;

/// Sees every packet that a host sends and takes, and keeps nothing from anybody.
#[derive(Debug)]
pub(crate) struct Tap {
    socket: OwnedFd,
    /// Shared with the kernel, for as long as this lives.
    ring: NonNull<u8>,
    frames: usize,
    next: usize,
}

// SAFETY: the ring belongs to the tap alone, on whatever thread it is, and to the
// kernel, which frames pass to and fro by their status.
unsafe impl Send for Tap {}

/// A packet as a device passed it on.
#[derive(Clone, Debug)]
pub(crate) struct Tapped {
    /// The index of the device.
    pub(crate) device: u32,
    /// Whether the host sent it; else it came.
    pub(crate) is_outgoing: bool,
    /// When, on the system's calendar clock, in nanoseconds since 1970.
    pub(crate) at_ns: u64,
    /// Its length in bytes, from the IP header on.
    pub(crate) length: usize,
    /// Its first bytes.
    pub(crate) head: Head,
}

/// The first bytes of a packet.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    bytes: [u8; HEAD_BYTES],
    length: usize,
}

impl Head {
    /// Those bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Tap {
    /// Taps all devices of the calling thread's network namespace, with room for at
    /// least `frames` packets that have not been read yet.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn open(frames: usize) -> io::Result<Self> {
        // With no protocol it receives nothing until it is bound.
        let socket = socket_with(
            AddressFamily::PACKET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let blocks = frames.div_ceil(BLOCK_FRAMES).max(1);
        let frames = blocks * BLOCK_FRAMES;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        packet::set(socket.as_fd(), libc::PACKET_VERSION, version)?;
        let ring = tpacket_req {
            tp_block_size: (BLOCK_FRAMES * FRAME_BYTES) as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: frames as u32,
        };
        packet::set(socket.as_fd(), libc::PACKET_RX_RING, ring)?;
        // SAFETY: a mapping wherever the system likes, of the length of the ring that
        // the socket was just given.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                frames * FRAME_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let tap = Self {
            socket,
            ring: NonNull::new(mapped.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            frames,
            next: 0,
        };
        // Every device.
        packet::bind(tap.socket.as_fd(), 0)?;
        Ok(tap)
    }

    /// The next packet, if one has passed.
    pub(crate) fn read(&mut self) -> Option<Tapped> {
        // SAFETY: frame number `next` lies in the mapping, which is aligned to pages
        // and so each frame to its length; it begins with its status, which both
        // sides read and write as one word.
        let (frame, status) = unsafe {
            let frame = self.ring.add(self.next * FRAME_BYTES);
            (frame, AtomicU32::from_ptr(frame.cast().as_ptr()))
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has given the frame away: nobody writes to it until its
        // status says that it is the kernel's again. It holds a `tpacket2_hdr` and,
        // at a multiple of 16 bytes behind it, a `sockaddr_ll`, both plain data.
        let (header, address): (tpacket2_hdr, sockaddr_ll) = unsafe {
            let address = frame.add(size_of::<tpacket2_hdr>().next_multiple_of(16));
            (frame.cast().read(), address.cast().read())
        };
        let mut head = Head {
            bytes: [0; HEAD_BYTES],
            length: (header.tp_snaplen as usize).min(HEAD_BYTES),
        };
        let at = usize::from(header.tp_net);
        if at + head.length <= FRAME_BYTES {
            // SAFETY: the bytes lie in the frame, which is this side's, and the head
            // has room for them.
            unsafe {
                let from = frame.add(at).as_ptr();
                ptr::copy_nonoverlapping(from, head.bytes.as_mut_ptr(), head.length);
            }
        } else {
            head.length = 0;
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        Some(Tapped {
            device: address.sll_ifindex.cast_unsigned(),
            is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            at_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            length: header.tp_len as usize,
            head,
        })
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // SAFETY: the mapping is this tap's, of this length, and nobody has a
        // reference into it. That it could not be unmapped would hurt nobody.
        unsafe {
            libc::munmap(self.ring.as_ptr().cast(), self.frames * FRAME_BYTES);
        }
    }
}
