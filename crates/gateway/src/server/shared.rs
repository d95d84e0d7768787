//! What all loops know of each other.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};

use super::carrier::KcpCounters;
use super::clock::Clock;
use super::command::Commands;
use super::gatekeeper::Gatekeeper;

/// Shared by all threads of one server.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) gatekeeper: Arc<Gatekeeper>,
    /// What became of KCP's datagrams, in all loops.
    pub(super) kcp: Arc<KcpCounters>,
    /// A server has owned GLOBAL: clients may come.
    pub(super) owned: AtomicBool,
    /// The gateway is about to end.
    pub(super) draining: AtomicBool,
    /// Clients connected to any loop.
    pub(super) clients: AtomicUsize,
    /// Connections of each connection loop.
    pub(super) loads: Vec<AtomicUsize>,
    /// The way to each connection loop, once they are there.
    pub(super) loops: OnceLock<Vec<Arc<Commands>>>,
}

impl Shared {
    pub(super) fn wake_all(&self) {
        for commands in self.loops.get().into_iter().flatten() {
            commands.wake();
        }
    }
}
