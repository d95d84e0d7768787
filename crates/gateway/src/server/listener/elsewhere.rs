//! Places to listen at as Windows has them.

use std::io;
use std::path::Path;

use socket2::Socket;

/// Nobody shares an address.
pub(super) fn share_port(_: &Socket, shared: bool) -> io::Result<()> {
    if shared {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "KCP's port cannot be shared by several threads here: use one connection thread",
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
