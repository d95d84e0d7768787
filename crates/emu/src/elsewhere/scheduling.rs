//! Precedence over other threads, where it is not asked for.

use std::io;

/// Leaves the calling thread as it is.
///
/// # Errors
///
/// [`io::ErrorKind::Unsupported`].
pub(crate) fn become_first() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
