//! Becoming a kernel, where none can run.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Says that it is not to be had here.
#[must_use]
pub fn boot(_: &Path, _: &[OsString]) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
