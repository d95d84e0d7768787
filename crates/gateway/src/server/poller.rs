//! Waiting for sockets, and being woken by another thread.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

use super::mailbox::{self, Bell};

/// What is told of a peer that has gone.
const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

/// How many events one wait takes at most.
const AT_ONCE: usize = 512;

/// What a file is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// Bytes to read, or connections to accept.
    Read,
    /// The same, and room to write.
    ReadWrite,
    /// Room to write.
    Write,
    /// Both, each told once when it comes: whoever is told reads all there is.
    /// The system looks half as often at what is watched in this way, for it
    /// need not ask whether what it told of is still there.
    Edges,
    /// Nothing but that the peer has gone, told once.
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

/// A set of files that are watched. What is not read now is told again, save of
/// those that are watched for [`Interest::Edges`].
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
}

/// What happened during a wait.
pub(super) struct Events {
    raw: Vec<Event>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            raw: Vec::with_capacity(AT_ONCE),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Ready> {
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
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    pub(super) fn add(&self, file: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        epoll::add(
            &self.epoll,
            file,
            EventData::new_u64(token),
            flags(interest),
        )
    }

    pub(super) fn change(
        &self,
        file: impl AsFd,
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

    pub(super) fn remove(&self, file: impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.epoll, file)
    }

    /// Waits until something happens, at most for `timeout`. A signal ends the
    /// wait early.
    pub(super) fn wait(&self, timeout: Option<Duration>, events: &mut Events) -> Result<(), Errno> {
        events.raw.clear();
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
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

/// Wakes a thread that sleeps in its [`Poller`].
pub(super) type Waker = mailbox::Waker<EventBell>;

/// A bell in a poller: an eventfd.
#[derive(Debug)]
pub(super) struct EventBell {
    event: OwnedFd,
}

/// A waker whose bell is in `poller` under `token`.
pub(super) fn waker(poller: &Poller, token: u64) -> Result<Waker, Errno> {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    poller.add(&event, token, Interest::Read)?;
    Ok(Waker::with(EventBell { event }))
}

impl Bell for EventBell {
    fn ring(&self) {
        // A full counter is a bell that rings already.
        let _ = write(&self.event, &1_u64.to_ne_bytes());
    }

    fn hush(&self) {
        let mut count = [0; 8];
        let _ = read(&self.event, &mut count);
    }
}

impl EventBell {
    /// Waits for the bell alone, whatever else may be ready.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), Errno> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut files = [PollFd::new(&self.event, PollFlags::IN)];
        match poll(&mut files, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn edges_are_told_once_and_so_is_the_end() {
        let poller = Poller::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        poller.add(&socket, 7, Interest::Edges).unwrap();
        let mut events = Events::new();
        let mut told = |readable: bool| {
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
        assert!(told(false).writable, "there is room at the beginning");
        peer.write_all(b"word").unwrap();
        assert!(!told(true).ended);
        drop(peer);
        // Nothing was read, and still only what is new is told.
        assert!(told(true).ended);
        poller.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert!(events.iter().next().is_none());
    }

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
