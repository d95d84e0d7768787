//! The poller on Linux: `epoll(7)`, edge-triggered where a socket is read to its end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::{Interest, Ready};

/// What a stream is watched for whose outbox lies on the socket itself.
pub(in crate::server) const FOR_STREAMS: Interest = Interest::Edges;

/// What is reported of a peer that has gone.
const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

/// How many events one wait takes at most: those of all connections that one thread may
/// serve in a tick, for what came before a tick belongs into its windows.
const AT_ONCE: usize = 4096;

/// A set of files that are watched. What is not read now is reported again, save of
/// those that are watched for [`Interest::Edges`].
#[derive(Debug)]
pub(in crate::server) struct Poller {
    epoll: OwnedFd,
}

/// What happened during a wait.
pub(in crate::server) struct Events {
    raw: Vec<Event>,
}

impl Events {
    pub(in crate::server) fn new() -> Self {
        Self {
            raw: Vec::with_capacity(AT_ONCE),
        }
    }

    pub(in crate::server) fn iter(&self) -> impl Iterator<Item = Ready> {
        self.raw.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                token: data.u64(),
                readable: flags.intersects(EventFlags::IN | ENDED),
                writable: flags.intersects(EventFlags::OUT),
                ended: flags.intersects(ENDED),
            }
        })
    }
}

impl Poller {
    pub(in crate::server) fn new() -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    pub(in crate::server) fn add(
        &self,
        file: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> Result<(), Errno> {
        epoll::add(
            &self.epoll,
            file,
            EventData::new_u64(token),
            flags(interest),
        )
    }

    pub(in crate::server) fn change(
        &self,
        file: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> Result<(), Errno> {
        epoll::modify(
            &self.epoll,
            file,
            EventData::new_u64(token),
            flags(interest),
        )
    }

    pub(in crate::server) fn remove(&self, file: &impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.epoll, file)
    }

    /// Waits until something happens, at most for `timeout`. A signal ends the
    /// wait early.
    pub(in crate::server) fn wait(
        &self,
        timeout: Option<Duration>,
        events: &mut Events,
    ) -> Result<(), Errno> {
        events.raw.clear();
        // Longer than can be said is forever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut events.raw),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Read => EventFlags::IN,
        Interest::ReadWrite => EventFlags::IN | EventFlags::OUT,
        Interest::Write => EventFlags::OUT,
        Interest::Edges => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        Interest::Nothing => EventFlags::ET,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn edges_are_reported_once_and_so_is_the_end() {
        let poller = Poller::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        poller.add(&socket, 7, Interest::Edges).unwrap();
        let mut events = Events::new();
        let mut reported = |readable: bool| {
            loop {
                poller
                    .wait(Some(Duration::from_secs(9)), &mut events)
                    .unwrap();
                let event = events.iter().next().expect("something happens");
                if event.readable == readable {
                    return event;
                }
            }
        };
        assert!(reported(false).writable, "there is room at the beginning");
        peer.write_all(b"word").unwrap();
        assert!(!reported(true).ended);
        drop(peer);
        // Nothing was read, and still only what is new is reported.
        assert!(reported(true).ended);
        poller.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert!(events.iter().next().is_none());
    }
}
