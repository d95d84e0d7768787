//! Turning a device's offloads off: `SIOCETHTOOL`, `linux/ethtool.h`.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::ioctl::{Opcode, Updater, ioctl};

/// `IFNAMSIZ`, the closing zero included.
const NAME_BYTES: usize = 16;
const SIOCETHTOOL: Opcode = 0x8946;

/// `struct ifreq` of `linux/if.h`: a name and a union of 24 bytes, of which
/// the first hold flags or a pointer.
#[repr(C)]
pub(super) struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    union: RequestUnion,
}

#[repr(C)]
union RequestUnion {
    flags: u16,
    value: *mut EthtoolValue,
    whole: [u64; 3],
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// The commands that switch one offload each, and what they switch.
const OFFLOADS: [(u32, &str); 6] = [
    (0x15, "receive checksums"),
    (0x17, "transmit checksums"),
    (0x19, "scatter and gather"),
    (0x1f, "TCP segmentation"),
    (0x24, "generic segmentation"),
    (0x2c, "generic receive offload"),
];

/// Turns all offloads of the device called `name` off, looked up in the
/// network namespace in which `socket` was made.
///
/// # Errors
///
/// What the system says, but for an offload the device does not have: that
/// one is off.
pub(crate) fn turn_offloads_off(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    for (command, what) in OFFLOADS {
        match set(socket, name, command, 0) {
            Err(error) if error.raw_os_error() != Some(nix::libc::EOPNOTSUPP) => {
                return Err(io::Error::new(error.kind(), format!("{what}: {error}")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn set(socket: BorrowedFd<'_>, name: &str, command: u32, data: u32) -> io::Result<()> {
    let mut value = EthtoolValue { command, data };
    let mut request = InterfaceRequest {
        name: padded(name)?,
        union: RequestUnion {
            value: &raw mut value,
        },
    };
    // SAFETY: SIOCETHTOOL takes a `struct ifreq` whose union points to the
    // structure that belongs to the command; for the commands above that is
    // `struct ethtool_value`, which lives until the call has returned.
    unsafe { ioctl(socket, Updater::<SIOCETHTOOL, _>::new(&mut request)) }?;
    Ok(())
}

impl InterfaceRequest {
    /// A request about the device called `name` that carries `flags`.
    pub(super) fn with_flags(name: &str, flags: u16) -> io::Result<Self> {
        let mut union = RequestUnion { whole: [0; 3] };
        union.flags = flags;
        Ok(Self {
            name: padded(name)?,
            union,
        })
    }
}

fn padded(name: &str) -> io::Result<[u8; NAME_BYTES]> {
    let mut padded = [0; NAME_BYTES];
    if name.len() >= NAME_BYTES || name.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{name}` cannot be the name of a device"),
        ));
    }
    padded[..name.len()].copy_from_slice(name.as_bytes());
    Ok(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        assert!(padded("a_very_long_name_indeed").is_err());
        assert!(padded("a\0b").is_err());
        assert_eq!(&padded("lane255").unwrap()[..8], b"lane255\0");
    }
}
