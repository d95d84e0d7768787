//! What Linux lets a program set and no other system here does.

use std::io;
use std::time::Duration;

use rustix::net::SendFlags;

pub(crate) use std::thread::yield_now as yield_thread;

/// No signal comes: the standard library sees to it.
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

pub(crate) const fn timer_slack() -> Option<Duration> {
    None
}

pub(crate) const fn processors() -> Vec<usize> {
    Vec::new()
}

pub(crate) fn place_thread(_: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn become_first() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
