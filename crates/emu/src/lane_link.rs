//! A lane's link: its own, or a path that it shares with other senders.
//!
//! A link of a lane's own knows a packet's fate when the packet enters. On a path with
//! other senders, or with a queue whose discipline may prefer who comes later, fates are
//! known when packets leave the queue: such a path has deadlines, which the router keeps.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lagometer_link::{Direction, Fate, Link};
use lagometer_units::Time;

/// What decides over a lane's packets.
#[derive(Clone, Debug)]
pub enum LaneLink {
    /// A link with nobody else on it, whose queue is first in, first out.
    Own(Box<Link>),
    /// As one of the senders of a shared path.
    Shared(PathSender),
}

/// A path with several senders on it, as the router asks for it. Instants are those of
/// the router's clock, and do not decrease from call to call.
pub trait SharedPath: fmt::Debug + Send {
    /// Puts a packet on the path.
    fn offer(&mut self, now: Time, packet: PathPacket<'_>);

    /// When [`handle_deadline`](Self::handle_deadline) must be called at the latest so
    /// that no fate is known later than it is needed; nothing where nothing will happen
    /// before the next packet is offered that anybody waits for.
    fn next_deadline(&self) -> Option<Time>;

    /// Has all happen that is due by `now`.
    fn handle_deadline(&mut self, now: Time);

    /// Takes out the next fate that became known.
    fn poll(&mut self) -> Option<PathFate>;
}

/// A packet that is put on a path.
#[derive(Clone, Copy, Debug)]
pub struct PathPacket<'a> {
    /// The number of its sender on the path, from 0.
    pub sender: usize,
    /// Whether it goes up, to the remote end, or down.
    pub direction: Direction,
    /// By which its fate is reported. No two packets have the same.
    pub number: u64,
    /// The IP packet.
    pub bytes: &'a [u8],
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFate {
    /// The packet's number.
    pub number: u64,
    /// When it arrives, or why it does not.
    pub fate: Fate,
    /// Whether the path marks it with "congestion experienced" (RFC 3168).
    pub is_marked: bool,
}

/// One of the senders of a path.
#[derive(Clone, Debug)]
pub struct PathSender {
    path: Arc<Mutex<dyn SharedPath>>,
    sender: usize,
}

impl PathSender {
    /// The sender with this number, from 0, of `path`.
    #[must_use]
    pub fn new(path: Arc<Mutex<dyn SharedPath>>, sender: usize) -> Self {
        Self { path, sender }
    }

    pub(crate) fn offer(&self, now: Time, direction: Direction, number: u64, bytes: &[u8]) {
        self.path().offer(
            now,
            PathPacket {
                sender: self.sender,
                direction,
                number,
                bytes,
            },
        );
    }

    /// The path itself, for as long as it is looked after.
    pub(crate) fn path(&self) -> MutexGuard<'_, dyn SharedPath + 'static> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Link> for LaneLink {
    fn from(link: Link) -> Self {
        Self::Own(Box::new(link))
    }
}

impl From<PathSender> for LaneLink {
    fn from(sender: PathSender) -> Self {
        Self::Shared(sender)
    }
}
