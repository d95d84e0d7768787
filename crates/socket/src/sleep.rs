//! Waiting for a file to become ready, for a while.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;

/// Sleeps until `file` can be read, or written to where `to_write`, at most
/// `longest`. An interruption counts as the end. Whether the time went by in vain.
pub(crate) fn until_ready(file: impl AsFd, to_write: bool, longest: Duration) -> bool {
    let mut flags = PollFlags::IN;
    if to_write {
        flags |= PollFlags::OUT;
    }
    // Longer than can be said is forever.
    let longest = Timespec::try_from(longest).ok();
    let file = file.as_fd();
    // What is wrong with the file is reported by the next attempt to use it.
    matches!(
        poll(&mut [PollFd::new(&file, flags)], longest.as_ref()),
        Ok(0)
    )
}
