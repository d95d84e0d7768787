//! Places to listen at as Unix has them.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

/// Whether the system spreads peers over the sockets that have one address: Linux does
/// (`SO_REUSEPORT` in socket(7)), elsewhere one of them has all.
pub(in crate::server) const CAN_SHARE_PORTS: bool = cfg!(target_os = "linux");

/// Lets others that do the same have the address too.
pub(super) fn share_port(socket: &Socket, shared: bool) -> io::Result<()> {
    socket.set_reuse_port(shared)
}

/// Lets an address be had again whose last connections have not been forgotten yet.
pub(super) fn reuse_address(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// A Unix socket at a path. A file that a gateway which was killed left there is
/// taken away; one that somebody answers at is not.
pub(super) fn bound_unix(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let address = SockAddr::unix(path)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_forsaken(path) => {
            std::fs::remove_file(path)?;
            socket.bind(&address)?;
        }
        other => other?,
    }
    Ok(socket)
}

/// Whether a file is a socket that nobody listens at.
fn is_forsaken(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
