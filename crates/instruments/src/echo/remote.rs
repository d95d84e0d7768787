//! The remote end's loop: what comes is sent back as it is.

use std::io;

use crate::wire::Wire;

/// Sends every message back until `over` says so; how many. What cannot be
/// sent back is lost, as on any path.
///
/// # Errors
///
/// The stream has ended, or the socket is of no use any more.
pub fn send_back(wire: &mut impl Wire, over: impl Fn() -> bool) -> io::Result<u64> {
    let mut echoed = 0;
    loop {
        let received = wire.receive().map(drop);
        if over() {
            return Ok(echoed);
        }
        match received.and_then(|()| wire.send_back()) {
            Ok(()) => echoed += 1,
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether the socket may still be of use after `error`: nothing was there, or
/// the local end's socket was closed for a moment.
fn passes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused
    )
}
