//! What Linux has for datagrams: batches, offloads and large buffers.

use std::io;

use nix::libc;
use rustix::fd::BorrowedFd;
use rustix::net::sockopt;

pub(super) use super::batches::{
    MOST_RUN_BYTES, MOST_RUN_DATAGRAMS, Name, Reception, Transmission, can_cut, join_received,
};
use super::obstacle::Obstacle;
use super::socket::Options;

/// Whether several datagrams can share a call.
pub(super) const HAS_BATCHES: bool = true;

/// What an error of the system means.
pub(super) fn obstacle(error: &io::Error) -> Obstacle {
    match error.raw_os_error().unwrap_or(0) {
        libc::EAGAIN | libc::ENOBUFS => Obstacle::Full,
        libc::EINTR => Obstacle::Again,
        libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN => {
            Obstacle::Unreachable
        }
        libc::EMSGSIZE => Obstacle::TooLong,
        libc::EINVAL => Obstacle::Invalid,
        libc::EIO => Obstacle::NoOffload,
        libc::ENOSYS => Obstacle::NoSuchCall,
        _ => Obstacle::Failure,
    }
}

/// Asks for the buffers: beyond the system's limits where the process may,
/// else within them.
pub(super) fn make_room(socket: BorrowedFd<'_>, options: &Options) {
    enlarge_receive_buffer(socket, options.receive_buffer);
    let _ = sockopt::set_socket_send_buffer_size(socket, options.send_buffer);
}

/// Asks for so many bytes that may wait to be read, likewise.
pub(super) fn enlarge_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) {
    let _ = sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_distinguished() {
        let of = |errno| obstacle(&io::Error::from_raw_os_error(errno));
        assert_eq!(of(libc::EAGAIN), Obstacle::Full);
        assert_eq!(of(libc::ECONNREFUSED), Obstacle::Unreachable);
        assert_eq!(of(libc::EBADF), Obstacle::Failure);
    }
}
