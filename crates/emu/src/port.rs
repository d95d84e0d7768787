//! Where the router meets a host: IP packets out of it and into it.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lagometer_capture::{UDP_V4_HEADER_BYTES, UdpHeaders, taken_off};
use rustix::io::{Errno, read, readv, write, writev};

use crate::ip::Version;
use crate::sys::packet;

/// Bytes of an Ethernet header without tags.
pub(crate) const FRAME_HEADER_BYTES: usize = 14;

/// The router's side of one lane's device in one host.
#[derive(Debug)]
pub(crate) enum Port {
    /// The descriptor of a TUN device in the host.
    Tun(OwnedFd),
    /// A packet socket on the other end of the host's Ethernet device.
    Ethernet(OwnedFd, Frames),
    /// A UDP socket of the relay, connected to one side of the lane, and the
    /// headers of datagrams from there.
    Relay(OwnedFd, UdpHeaders),
}

/// What frames to one host start with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    header: [u8; FRAME_HEADER_BYTES],
}

impl Port {
    /// The relay's socket, connected to one side of a lane, and the headers of
    /// datagrams from there.
    pub(crate) fn relay(socket: UdpSocket, headers: UdpHeaders) -> Self {
        Self::Relay(socket.into(), headers)
    }

    /// Takes the next packet the host sends into `packet` and returns its
    /// length; nothing if none waits. A packet larger than `packet` fills it.
    pub(crate) fn take(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        let taken = match self {
            Self::Tun(device) => read(device, packet),
            Self::Ethernet(socket, _) => {
                let mut header = [0; FRAME_HEADER_BYTES];
                readv(
                    socket,
                    &mut [IoSliceMut::new(&mut header), IoSliceMut::new(packet)],
                )
                .map(|length| length.saturating_sub(FRAME_HEADER_BYTES))
            }
            Self::Relay(socket, headers) => match packet.get_mut(UDP_V4_HEADER_BYTES..) {
                Some(room) => read(socket, room).map(|length| {
                    let length = length + UDP_V4_HEADER_BYTES;
                    headers.encapsulate(&mut packet[..length]);
                    length
                }),
                None => Ok(0),
            },
        };
        match taken {
            Ok(length) => Ok(Some(length)),
            // A side that is not there yet, or no more, is reported by an error
            // on the next call of its relay.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands `packet` to the host as one that has arrived.
    pub(crate) fn hand_over(&self, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(device) => write(device, packet)?,
            Self::Ethernet(socket, frames) => writev(
                socket,
                &[IoSlice::new(&frames.around(packet)), IoSlice::new(packet)],
            )?,
            // What a host's kernel would drop is dropped.
            Self::Relay(socket, _) => match taken_off(packet).map(|it| write(socket, it)) {
                None | Some(Err(Errno::CONNREFUSED)) => 0,
                Some(outcome) => outcome?,
            },
        };
        Ok(())
    }

    /// How many packets of the host were lost before they could be taken,
    /// since this was last asked, as far as the port and not the host's
    /// device knows.
    pub(crate) fn lost(&self) -> io::Result<u64> {
        match self {
            Self::Tun(_) | Self::Relay(..) => Ok(0),
            Self::Ethernet(socket, _) => packet::lost(socket.as_fd()),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(file) | Self::Ethernet(file, _) | Self::Relay(file, _) => file.as_fd(),
        }
    }
}

impl Frames {
    /// Frames to the device with address `hardware`.
    pub(crate) fn to(hardware: [u8; 6]) -> Self {
        // From a locally administered address that nobody has.
        let mut header = [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0];
        header[..6].copy_from_slice(&hardware);
        Self { header }
    }

    fn around(self, packet: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
        let mut header = self.header;
        header[12..].copy_from_slice(&match Version::of(packet) {
            Some(Version::V6) => [0x86, 0xdd],
            _ => [0x08, 0x00],
        });
        header
    }
}

/// Whether a host refused a packet for what it is (damaged beyond a version)
/// or for want of room, rather than because the port is broken.
pub(crate) fn is_about_the_packet(error: &io::Error) -> bool {
    use nix::libc::{EAGAIN, EINVAL, EIO, EMSGSIZE, ENOBUFS, ENOMEM};
    matches!(
        error.raw_os_error(),
        Some(EAGAIN | EINVAL | EMSGSIZE | ENOBUFS | ENOMEM | EIO)
    )
}
