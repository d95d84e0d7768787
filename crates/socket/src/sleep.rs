//! Waiting for a file to become ready, for a while.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Sleeps until `file` can be read, or written to where `to_write`, at most
/// `longest`. An interruption counts as the end. Whether the time went by in vain.
pub(crate) fn until_ready(file: impl AsFd, to_write: bool, longest: Duration) -> bool {
    let mut flags = PollFlags::IN;
    if to_write {
        flags |= PollFlags::OUT;
    }
    let longest = Timespec {
        tv_sec: longest.as_secs().cast_signed(),
        tv_nsec: longest.subsec_nanos().into(),
    };
    let file = file.as_fd();
    // What is wrong with the file is told by the next attempt to use it.
    matches!(
        poll(&mut [PollFd::new(&file, flags)], Some(&longest)),
        Ok(0)
    )
}
