//! Being a guest's first process, where there are no guests.

use std::io;

/// Says that it is not to be had here.
#[must_use]
pub fn init() -> io::Error {
    io::ErrorKind::Unsupported.into()
}
