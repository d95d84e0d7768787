//! Waiting for sockets, and being woken by another thread.
//!
//! Linux has `epoll`; elsewhere the sockets are polled, which does for the few of a
//! developer's gateway. The feature `portable-poller` has Linux do as elsewhere.

#[cfg_attr(
    all(target_os = "linux", not(feature = "portable-poller")),
    path = "poller/epoll.rs"
)]
#[cfg_attr(
    any(not(target_os = "linux"), feature = "portable-poller"),
    path = "poller/polling.rs"
)]
mod system;

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::mailbox::{self, Notifier};

pub(super) use system::{Events, FOR_STREAMS, Poller};

/// What a file is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// Bytes to read, or connections to accept.
    Read,
    /// The same, and room to write.
    ReadWrite,
    /// Room to write.
    Write,
    /// Both, edge-triggered (`EPOLLET`): read until `WouldBlock`.
    /// The system looks half as often at what is watched in this way, for it
    /// need not ask whether what it reported is still there.
    #[cfg_attr(
        any(not(target_os = "linux"), feature = "portable-poller"),
        expect(dead_code, reason = "only `epoll` is edge-triggered")
    )]
    Edges,
    /// Nothing but that the peer has gone, edge-triggered.
    Nothing,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    /// The word the file was added with.
    pub(super) token: u64,
    /// There may be something to read, or the peer has gone.
    pub(super) readable: bool,
    /// There may be room to write.
    pub(super) writable: bool,
    /// The peer sends no more, or is gone: behind what is to be read is the end.
    pub(super) ended: bool,
}

/// Wakes a thread that sleeps in its [`Poller`].
pub(super) type Waker = mailbox::Waker<EventNotifier>;

/// An event (an eventfd where there are any) in a poller.
#[derive(Debug)]
pub(super) struct EventNotifier {
    event: lagometer_platform::Waker,
}

/// A waker whose event is in `poller` under `token`.
pub(super) fn waker(poller: &Poller, token: u64) -> Result<Waker, Errno> {
    let event = lagometer_platform::Waker::new()
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
    poller.add(&event, token, Interest::Read)?;
    Ok(Waker::with(EventNotifier { event }))
}

impl Notifier for EventNotifier {
    fn notify(&self) {
        // An event that cannot be set is set already.
        let _ = self.event.wake();
    }

    fn clear(&self) {
        self.event.clear();
    }
}

impl EventNotifier {
    /// Waits for the event alone, whatever else may be ready.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), Errno> {
        // Longer than can be said is forever.
        let timeout = Timespec::try_from(timeout).ok();
        let mut files = [PollFd::new(&self.event, PollFlags::IN)];
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 7).unwrap();
        let mut events = Events::new();
        for _ in 0..3 {
            waker.wake();
            waker.wake();
            poller.wait(None, &mut events).unwrap();
            assert!(events.iter().map(|event| event.token).eq([7]));
            waker.silence();
            poller.wait(Some(Duration::ZERO), &mut events).unwrap();
            assert!(events.iter().next().is_none());
        }
    }
}
