//! Who waits to be accepted: in the system's queue before each listener, which
//! holds [`BACKLOG`](super::listener::BACKLOG) of them.
//!
//! Nobody is accepted while there is no file for them. How often that happened is
//! counted here; how many wait just now the system knows, and is asked when
//! somebody wants to see it.

#[cfg_attr(not(target_os = "linux"), path = "accept_queue/unlisted.rs")]
mod listed;

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::AsFd;

use crate::core::Peer;

use listed::Listed;

/// Why nobody is accepted for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Those who were evicted are not closed yet, and have the files.
    BeingClosed,
    /// The system has no file or memory for another.
    NoFile,
}

impl Wait {
    /// Both with their names, in the order they are counted.
    pub(super) const ALL: [(Self, &'static str); 2] = [
        (Self::BeingClosed, "being_closed"),
        (Self::NoFile, "no_file"),
    ];
}

/// What is known of all listeners of TCP.
#[derive(Debug)]
pub(super) struct AcceptQueues {
    /// What the system lists of them.
    listed: Listed,
    waits: [[AtomicU64; Wait::ALL.len()]; 2],
}

impl AcceptQueues {
    pub(super) fn new() -> Self {
        Self {
            listed: Listed::new(),
            waits: Default::default(),
        }
    }

    /// A socket listens for that kind of peer from now on.
    pub(super) fn listens(&self, socket: &impl AsFd, peer: Peer) {
        self.listed.listens(socket, peer);
    }

    /// Nobody is accepted for a while, for that reason, though somebody waits.
    pub(super) fn count(&self, peer: Peer, why: Wait) {
        self.waits[peer.index()][why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often that has happened.
    pub(super) fn waits(&self, peer: Peer, why: Wait) -> u64 {
        self.waits[peer.index()][why as usize].load(Ordering::Relaxed)
    }

    /// How many of each kind of peer wait now. What the system does not report is
    /// none.
    pub(super) fn waiting(&self) -> [u64; 2] {
        self.listed.waiting()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn those_who_wait_are_counted_until_they_are_accepted() {
        let queues = AcceptQueues::new();
        let sockets = ["127.0.0.1:0", "[::1]:0"].map(|at| TcpListener::bind(at).ok());
        let [Some(clients), servers] = &sockets else {
            panic!("no loopback");
        };
        queues.listens(clients, Peer::Client);
        if let Some(servers) = servers {
            queues.listens(servers, Peer::Server);
        }
        let at = clients.local_addr().unwrap();
        let _waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        assert_eq!(queues.waiting()[Peer::Client.index()], 3);
        let _accepted = clients.accept().unwrap();
        assert_eq!(queues.waiting()[Peer::Client.index()], 2);
        assert_eq!(queues.waiting()[Peer::Server.index()], 0);
    }
}
