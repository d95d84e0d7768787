//! Places to listen at as Windows has them.

use std::io;
use std::path::Path;

use socket2::Socket;

/// Nobody shares an address: settings that would need it are refused.
pub(in crate::server) const CAN_SHARE_PORTS: bool = false;

/// As [`CAN_SHARE_PORTS`] has it.
pub(super) fn share_port(_: &Socket, shared: bool) -> io::Result<()> {
    if shared {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "several threads cannot share a port here",
        ));
    }
    Ok(())
}

/// Addresses can be had again as it is. What is called so elsewhere would let another
/// program take ours away.
#[expect(clippy::unnecessary_wraps, reason = "the shape that Unix has")]
pub(super) const fn reuse_address(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// There are none.
pub(super) fn bound_unix(_: &Path) -> io::Result<Socket> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "there are no Unix sockets here: listen at a TCP address",
    ))
}
