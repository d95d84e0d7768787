//! Making a TUN device: `linux/if_tun.h`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{IntegerSetter, Opcode, Updater, ioctl, opcode};

use super::ethtool::InterfaceRequest;

/// Layer 3 packets, and no four bytes of packet information before them.
const IFF_TUN_NO_PI: u16 = 0x0001 | 0x1000;
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
const TUNSETOFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);

/// Makes a TUN device called `name` in the calling thread's network namespace
/// and returns the descriptor through which its packets pass, one IP packet
/// for each read or write, never blocking.
///
/// All offloads are off, so that no packet is larger than the device's MTU
/// and every checksum is complete. The device is gone when the descriptor is
/// closed.
///
/// # Errors
///
/// What the system says: `/dev/net/tun` missing or not permitted, no
/// capability over the namespace, a name that is taken or too long.
pub(crate) fn create(name: &str) -> io::Result<OwnedFd> {
    let device = rustix::fs::open(
        "/dev/net/tun",
        OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut request = InterfaceRequest::with_flags(name, IFF_TUN_NO_PI)?;
    set_interface(device.as_fd(), &mut request)?;
    set_no_offload(device.as_fd())?;
    Ok(device)
}

fn set_interface(device: BorrowedFd<'_>, request: &mut InterfaceRequest) -> io::Result<()> {
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq` (its opcode says
    // `int` for historical reasons), which `InterfaceRequest` is laid out as
    // and as large as.
    unsafe { ioctl(device, Updater::<TUNSETIFF, _>::new(request)) }?;
    Ok(())
}

fn set_no_offload(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes an integer by value and dereferences
    // nothing; zero is the empty set of offloads.
    unsafe { ioctl(device, IntegerSetter::<TUNSETOFFLOAD>::new_usize(0)) }?;
    Ok(())
}
