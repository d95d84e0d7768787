//! One connection's place, while it has it: logging in, what it holds in memory
//! and what it sends are reported to it, and through it to the admission control.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lagometer_units::Time;

use crate::core::Peer;
use crate::server::pace::SharedPace;

use super::{AdmissionControl, Evicted, PermitId, Refusal, lock};

/// What a connection holds is reported again once it has changed by about so much:
/// most never do.
const HELD_STEP_BYTES: usize = 1 << 10;

/// One connection's place; given back when dropped.
#[derive(Debug)]
pub(in crate::server) struct Permit {
    pub(super) control: Arc<AdmissionControl>,
    pub(super) id: PermitId,
    /// It is one of the places that are limited.
    pub(super) is_limited: bool,
    pub(super) peer: Peer,
    /// The address whose connections are counted: clients have one.
    pub(super) address: Option<IpAddr>,
    /// How fast the clients of its address are read together, and the rate.
    pub(super) pace: Option<(Arc<SharedPace>, u32)>,
    /// Its place was given to another.
    pub(super) evicted: Arc<AtomicBool>,
    /// What it was last said to hold.
    pub(super) held_bytes: usize,
}

impl Permit {
    pub(in crate::server) fn id(&self) -> PermitId {
        self.id
    }

    /// Its place was given to another: the connection is to be closed.
    pub(in crate::server) fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::SeqCst)
    }

    /// The connection has logged in: it is in no pool any more, and nobody takes
    /// its place. Who was evicted just before gets a place again if there is one
    /// still; otherwise it is turned away, and is to be closed as any that was
    /// evicted.
    pub(in crate::server) fn authenticated(&self) -> Result<(), Refusal> {
        if !self.is_limited {
            return Ok(());
        }
        let limits = self.control.limits();
        let mut places = lock(&self.control.places);
        if places.leave_pool(self.peer, self.id).is_some() || !self.is_evicted() {
            return Ok(());
        }
        let all = limits.connections.min(self.control.connections_at_most);
        let took = places.take_again(&limits, all, self);
        took.inspect_err(|why| self.control.count_turned_away(*why))
    }

    /// The connection, which has not logged in, holds so much memory. Returns who
    /// has to be closed so that all such clients together hold no more than they
    /// may; game servers, which have few places before their login, count not.
    pub(in crate::server) fn hold(&mut self, bytes: usize) -> Vec<Evicted> {
        let bytes = bytes.next_multiple_of(HELD_STEP_BYTES);
        if !self.is_limited || bytes == self.held_bytes {
            return Vec::new();
        }
        self.held_bytes = bytes;
        let Some(address) = self.address else {
            return Vec::new();
        };
        let at_most = self.control.limits().unauthenticated_bytes;
        lock(&self.control.places).hold(address, self.id, bytes, at_most)
    }

    /// So many messages have come. Returns until when the connection is not to
    /// be read, if the clients of its address have sent too many together.
    pub(in crate::server) fn spend(&self, now: Time, messages: usize) -> Option<Time> {
        let (pace, per_s) = self.pace.as_ref()?;
        pace.spend(now, messages, u64::from(*per_s))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_limited {
            return;
        }
        let mut places = lock(&self.control.places);
        places.open -= 1;
        places.leave_pool(self.peer, self.id);
        if !self.is_evicted() {
            places.vacate(self.peer, self.address);
        }
    }
}
