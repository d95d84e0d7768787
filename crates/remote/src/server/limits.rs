//! How much a remote end does at once.

use std::time::Duration;

/// Bounds of a remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Conversations that have proved themselves, at once.
    pub sessions: usize,
    /// Connections that have not proved themselves yet, at once. The next one
    /// gets the place of the oldest from the address that holds most.
    pub pending: usize,
    /// How long a connection may take to prove itself.
    pub proof_within: Duration,
    /// How long a control connection may be silent; the local end asks for the time
    /// twice a second, so a silent one is gone.
    pub silence: Duration,
    /// Jobs of one control connection, at once.
    pub jobs_per_session: usize,
    /// Data sockets of one control connection, at once.
    pub sockets_per_session: usize,
    /// Data sockets of all control connections, at once.
    pub sockets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 2000,
            pending: 512,
            proof_within: Duration::from_secs(5),
            silence: Duration::from_secs(30),
            jobs_per_session: 64,
            sockets_per_session: 256,
            sockets: 10_000,
        }
    }
}
