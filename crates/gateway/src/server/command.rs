//! Commands to loops, from outside.

use std::collections::VecDeque;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::{CloseReason, Peer};

use super::admission_control::{Permit, PermitId};
use super::config::{Config, Wire};
use super::poller::Waker;

/// One thing to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Take over a connection that was accepted.
    Adopt(Accepted),
    /// Close an unauthenticated connection whose place another has got, or which
    /// holds too much memory.
    Evict(PermitId, CloseReason),
    /// Take other settings.
    Reload(Arc<Config>),
    /// Let everyone go, and end.
    Drain,
    /// End.
    End,
}

/// A connection that was accepted.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: Peer,
    pub(super) wire: Wire,
    pub(super) address: IpAddr,
    pub(super) permit: Permit,
}

/// Commands on their way to one loop. What is in it is bounded by those who
/// send: settings and the end come seldom, and of connections there are no more
/// than have been admitted, or evicted since the loop's last turn.
#[derive(Debug)]
pub(super) struct Commands {
    waiting: Mutex<VecDeque<Command>>,
    waker: Waker,
}

impl Commands {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            waiting: Mutex::default(),
            waker,
        }
    }

    pub(super) fn give(&self, command: Command) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(command);
        self.waker.wake();
    }

    pub(super) fn take(&self) -> Option<Command> {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }
}
