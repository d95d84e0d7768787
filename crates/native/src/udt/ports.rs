//! The port numbers of this process's UDT sockets, each held once.
//!
//! UDT gives an accepted connection the UDP socket of its listener, and finds
//! that by the listener's port number among all UDP sockets of the process
//! (`CUDTUnited::updateMux`, release 4.11). Two with one number, at different
//! addresses or in different network namespaces, would be confused, so the
//! second is refused here. A closed socket's number may be taken again at once,
//! though UDT keeps its UDP socket for about a second: it looks at the newest
//! first.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port number that no other UDT socket of this process has while this lives.
#[derive(Debug)]
pub(crate) struct HeldPort(u16);

impl HeldPort {
    /// Takes a number, unless it is taken.
    pub(crate) fn take(port: u16) -> Option<Self> {
        TAKEN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(port)
            .then(|| Self(port))
    }
}

impl Drop for HeldPort {
    fn drop(&mut self) {
        TAKEN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.0);
    }
}
