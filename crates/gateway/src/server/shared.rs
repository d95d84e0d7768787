//! What all loops know of each other.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use lagometer_units::Time;

use crate::core::{CloseReason, Peer};

use super::accept_queue::AcceptQueues;
use super::admission_control::{AdmissionControl, Evicted, Permit};
use super::clock::Clock;
use super::command::{Command, Commands};
use super::recordings::LeftOut;
use super::stream_transport::KcpCounters;

/// Shared by all threads of one server.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) admission: Arc<AdmissionControl>,
    /// Who waits to be accepted.
    pub(super) accept_queues: AcceptQueues,
    /// What became of KCP's datagrams, in all loops.
    pub(super) kcp: Arc<KcpCounters>,
    /// Recordings that the disk could not keep up with.
    pub(super) recordings_left_out: LeftOut,
    /// A server has owned GLOBAL: clients may come.
    pub(super) owned: AtomicBool,
    /// Of a node among several: it has its part.
    pub(super) joined: Joined,
    /// The gateway is about to end.
    pub(super) draining: AtomicBool,
    /// Clients connected to any loop.
    pub(super) clients: AtomicUsize,
    /// Connections of each connection loop.
    pub(super) loads: Vec<AtomicUsize>,
    /// The way to each connection loop, once they are there.
    pub(super) loops: OnceLock<Vec<Arc<Commands>>>,
}

/// Which threads of a node have their part of the gateway.
#[derive(Debug, Default)]
pub(super) struct Joined(Vec<AtomicBool>);

impl Joined {
    /// None of so many has. Where one process is all, none need any.
    pub(super) fn none_of(threads: usize) -> Self {
        Self((0..threads).map(|_| AtomicBool::new(false)).collect())
    }

    /// A thread has its part, or has it no longer.
    pub(super) fn set(&self, thread: usize, is_joined: bool) {
        if let Some(joined) = self.0.get(thread) {
            joined.store(is_joined, Ordering::Relaxed);
        }
    }

    /// Whether all have.
    pub(super) fn is_all(&self) -> bool {
        self.0.iter().all(|joined| joined.load(Ordering::Relaxed))
    }
}

impl Shared {
    /// Of a server with so many connection loops whose clock starts now.
    pub(super) fn new(admission: Arc<AdmissionControl>, loops: usize) -> Self {
        Self {
            clock: Clock::start(),
            admission,
            accept_queues: AcceptQueues::new(),
            kcp: Arc::default(),
            recordings_left_out: LeftOut::default(),
            owned: AtomicBool::new(false),
            joined: Joined::default(),
            draining: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            loads: (0..loops).map(|_| AtomicUsize::new(0)).collect(),
            loops: OnceLock::new(),
        }
    }

    /// Asks for a place for a connection that connection loop `on_loop` is to
    /// own; `None` if it is to be hung up on. If an unauthenticated connection
    /// had to make room, its loop is asked to close it.
    pub(super) fn admit(
        &self,
        now: Time,
        peer: Peer,
        address: IpAddr,
        on_loop: usize,
    ) -> Option<Permit> {
        let admitted = self.admission.admit(now, peer, address, on_loop).ok()?;
        if let Some(evicted) = admitted.evicted {
            self.evict(evicted, CloseReason::Evicted);
        }
        Some(admitted.permit)
    }

    /// Asks the loop of a connection that has lost its place to close it.
    pub(super) fn evict(&self, evicted: Evicted, why: CloseReason) {
        if let Some(commands) = self.loops.get().and_then(|all| all.get(evicted.on_loop)) {
            commands.give(Command::Evict(evicted.permit, why));
        }
    }

    pub(super) fn wake_all(&self) {
        for commands in self.loops.get().into_iter().flatten() {
            commands.wake();
        }
    }
}
