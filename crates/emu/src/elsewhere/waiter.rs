//! What the router waits for: `poll` over few sockets.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::wait::Waiting;

/// What the router waits for: readiness of any of its sockets, each known by a
/// number.
#[derive(Debug)]
pub(super) struct Waiter {
    /// Handles of its own to the sockets, so that nobody's are borrowed.
    sockets: Vec<(OwnedFd, u64)>,
    ready: Vec<u64>,
}

impl Waiter {
    /// Waits for nothing yet; at most `files` will be added.
    #[expect(clippy::unnecessary_wraps, reason = "the shape that Linux has")]
    pub(super) fn new(_: Waiting, files: usize) -> io::Result<Self> {
        Ok(Self {
            sockets: Vec::with_capacity(files),
            ready: Vec::with_capacity(files),
        })
    }

    /// Waits for `file` too, to be known by `number`.
    pub(super) fn add(&mut self, file: &impl AsFd, number: u64) -> io::Result<()> {
        let own = file.as_fd().try_clone_to_owned()?;
        self.sockets.push((own, number));
        Ok(())
    }

    /// Waits until a file is ready or `longest` has passed. Whether any is.
    pub(super) fn wait(&mut self, longest: Duration) -> io::Result<bool> {
        let sockets = self.sockets.iter().map(|(socket, _)| socket);
        let mut polled: Vec<PollFd<'_>> = sockets
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(longest).ok();
        self.ready.clear();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {
                let are_ready = polled.iter().map(|it| !it.revents().is_empty());
                let numbers = self.sockets.iter().map(|(_, number)| *number);
                let ready = numbers.zip(are_ready).filter(|(_, is_ready)| *is_ready);
                self.ready.extend(ready.map(|(number, _)| number));
                Ok(!self.ready.is_empty())
            }
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// How many files were ready.
    pub(super) const fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// The number of the `nth` file that was ready.
    pub(super) fn ready(&self, nth: usize) -> Option<u64> {
        self.ready.get(nth).copied()
    }
}
