//! `poll` over handles of its own to the sockets, in time that grows with their number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;

use super::{Interest, Ready};

/// What a stream is watched for whose outbox lies on the socket itself: what is not
/// read is reported again.
pub(in crate::server) const FOR_STREAMS: Interest = Interest::Read;

/// A set of sockets that are watched. Level-triggered: what is not read now is reported again.
#[derive(Default)]
pub(in crate::server) struct Poller {
    /// By the socket it was added with.
    watched: Mutex<BTreeMap<RawFd, Watched>>,
}

struct Watched {
    /// A handle of the poller's own.
    socket: OwnedFd,
    token: u64,
    interest: Interest,
}

/// What happened during a wait.
pub(in crate::server) struct Events {
    ready: Vec<Ready>,
}

impl Events {
    pub(in crate::server) const fn new() -> Self {
        Self { ready: Vec::new() }
    }

    pub(in crate::server) fn iter(&self) -> impl Iterator<Item = Ready> {
        self.ready.iter().copied()
    }
}

impl Poller {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that Linux has")]
    pub(in crate::server) fn new() -> Result<Self, Errno> {
        Ok(Self::default())
    }

    pub(in crate::server) fn add(
        &self,
        file: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> Result<(), Errno> {
        let file = file.as_fd();
        let own = file.try_clone_to_owned();
        let watched = Watched {
            socket: own.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?,
            token,
            interest,
        };
        self.watched().insert(file.as_raw_fd(), watched);
        Ok(())
    }

    pub(in crate::server) fn change(
        &self,
        file: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> Result<(), Errno> {
        let mut watched = self.watched();
        let known = watched.get_mut(&file.as_fd().as_raw_fd());
        let known = known.ok_or(Errno::BADF)?;
        (known.token, known.interest) = (token, interest);
        Ok(())
    }

    pub(in crate::server) fn remove(&self, file: &impl AsFd) -> Result<(), Errno> {
        let known = self.watched().remove(&file.as_fd().as_raw_fd());
        known.map(drop).ok_or(Errno::BADF)
    }

    /// Waits until something happens, at most for `timeout`. A signal ends the
    /// wait early.
    pub(in crate::server) fn wait(
        &self,
        timeout: Option<Duration>,
        events: &mut Events,
    ) -> Result<(), Errno> {
        events.ready.clear();
        let watched = self.watched();
        let asked: Vec<&Watched> = watched
            .values()
            .filter(|it| it.interest != Interest::Nothing)
            .collect();
        let mut polled: Vec<PollFd<'_>> = asked
            .iter()
            .map(|it| PollFd::new(&it.socket, flags(it.interest)))
            .collect();
        // Longer than can be said is forever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
        }
        let answers = asked.iter().zip(&polled);
        events.ready.extend(answers.filter_map(|(it, answer)| {
            let found = answer.revents();
            let ended = found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            (!found.is_empty()).then(|| Ready {
                token: it.token,
                readable: ended || found.intersects(PollFlags::IN),
                writable: found.intersects(PollFlags::OUT),
                ended,
            })
        }));
        Ok(())
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<RawFd, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Poller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sockets = self.watched().len();
        formatter
            .debug_struct("Poller")
            .field("sockets", &sockets)
            .finish()
    }
}

fn flags(interest: Interest) -> PollFlags {
    match interest {
        Interest::Read => PollFlags::IN,
        Interest::ReadWrite | Interest::Edges => PollFlags::IN | PollFlags::OUT,
        Interest::Write => PollFlags::OUT,
        Interest::Nothing => PollFlags::empty(),
    }
}
