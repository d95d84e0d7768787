//! Admission: who may connect, before a message is read. Bans, and limits for
//! all and for each address.
//!
//! Places come in pools, so that those who have proved nothing cannot take what
//! belongs to others:
//!
//! - `connections` bounds everybody; `reserved_for_servers` of them, a quarter at
//!   most, no client can take;
//! - of the clients that have not logged in there are `unauthenticated` at
//!   most, `unauthenticated_per_address` of one address. A newcomer who finds
//!   a pool full takes the place of the one who has been in it longest of the
//!   address that holds most of it, his own if none holds more: who fills the
//!   pool with silence, from however many addresses, pushes out his own silence,
//!   and who means to log in has done so long before it is his turn to go;
//! - servers that have not logged in have a pool of their own, as large as what
//!   is reserved for them;
//! - the memory of all clients that have not logged in is bounded, too: where
//!   they hold more together, the one goes that holds most of the address that
//!   holds most ([`Permit::hold`]), and of addresses that hold no more than a login
//!   may need the one that has been there longest.
//!
//! One admission control stands before all threads. It is asked once for each
//! connection; what it keeps of messages is an atomic number of each address, beside
//! the [`debts`]. It closes nothing itself: [`Admitted::evicted`] names the connection
//! whose place was given away, and the loop that owns it closes it.

mod debts;
mod permit;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lagometer_limits::{Shares, Weights, source_prefix};
use lagometer_units::Time;
use thiserror::Error;

use crate::core::Peer;

use super::config::Limits;
use super::pace::SharedPace;

use debts::PaceDebts;
pub(super) use permit::Permit;

/// Servers that may be about to log in at once, however few places there are.
const FEWEST_SERVERS: u32 = 16;

/// Connections that were evicted and are not closed yet, of all there are files
/// for: so many may be open beyond the limit before clients have to wait, and as
/// many more before servers have to. An eighth of the limit where that is less.
const BEING_CLOSED: u32 = 128;

/// Counts who is connected.
#[derive(Debug)]
pub(super) struct AdmissionControl {
    limits: Mutex<Arc<Limits>>,
    /// As many connections as there can be files for, whatever the limits say.
    connections_at_most: u32,
    places: Mutex<Places>,
    debts: Mutex<PaceDebts>,
    turned_away: [AtomicU64; Refusal::ALL.len()],
    evicted: [AtomicU64; 2],
}

/// What a login may need in memory: addresses that hold no more are held alike.
const LOGIN_MEMORY_STEP: usize = 64 << 10;

#[derive(Debug)]
struct Places {
    /// Connections by kind of peer.
    connected: [u32; 2],
    /// Connections that are not closed yet, the evicted among them.
    open: u32,
    /// Those of them that have not logged in, by age.
    unauthenticated: [BTreeMap<PermitId, Unauthenticated>; 2],
    /// The unauthenticated clients of each address.
    shares: Shares<IpAddr, PermitId>,
    /// Bytes of memory that each of them holds.
    memory: Weights<IpAddr, PermitId>,
    last_id: u64,
    /// The second that was last swept for.
    swept: u64,
    addresses: BTreeMap<IpAddr, OfAddress>,
}

/// What is known of clients' addresses that somebody is connected from, or
/// was in this second, or that have sent more than is paid for.
#[derive(Debug, Default)]
struct OfAddress {
    connected: u32,
    second: u64,
    connects: u32,
    pace: Arc<SharedPace>,
}

#[derive(Debug)]
struct Unauthenticated {
    on_loop: usize,
    address: Option<IpAddr>,
    evicted: Arc<AtomicBool>,
}

/// Names a permit; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PermitId(u64);

/// Why somebody was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Refusal {
    /// The address is banned by the settings.
    #[error("banned")]
    Banned,
    /// There is no room for anyone.
    #[error("full")]
    Full,
    /// There are too many from that address.
    #[error("address_full")]
    AddressFull,
    /// They come too fast from that address.
    #[error("address_too_fast")]
    AddressTooFast,
}

impl Refusal {
    /// All of them, in the order they are counted.
    pub(super) const ALL: [Self; 4] = [
        Self::Banned,
        Self::Full,
        Self::AddressFull,
        Self::AddressTooFast,
    ];
}

/// A place for a connection.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) permit: Permit,
    /// Whose place it was.
    pub(super) evicted: Option<Evicted>,
}

/// An unauthenticated connection that has to be closed: its place was given to
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evicted {
    pub(super) on_loop: usize,
    pub(super) permit: PermitId,
}

impl AdmissionControl {
    /// `connections_at_most` is how many the system has files for.
    pub(super) fn new(limits: Limits, connections_at_most: u32) -> Arc<Self> {
        Arc::new(Self {
            limits: Mutex::new(Arc::new(limits)),
            connections_at_most,
            places: Mutex::new(Places::new()),
            debts: Mutex::default(),
            turned_away: Default::default(),
            evicted: Default::default(),
        })
    }

    /// Other limits, for those who come from now on.
    pub(super) fn set_limits(&self, limits: Limits) {
        *lock(&self.limits) = Arc::new(limits);
    }

    /// The limits that hold now.
    pub(super) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&lock(&self.limits))
    }

    /// How many were turned away for that.
    pub(super) fn turned_away(&self, why: Refusal) -> u64 {
        self.turned_away[why as usize].load(Ordering::Relaxed)
    }

    fn count_turned_away(&self, why: Refusal) {
        self.turned_away[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many unauthenticated connections of a kind had to make room.
    pub(super) fn evicted(&self, peer: Peer) -> u64 {
        self.evicted[peer.index()].load(Ordering::Relaxed)
    }

    /// How many connections of a kind have not logged in.
    pub(super) fn unauthenticated(&self, peer: Peer) -> usize {
        lock(&self.places).unauthenticated[peer.index()].len()
    }

    /// Bytes of memory that all clients hold that have not logged in.
    pub(super) fn held_bytes(&self) -> usize {
        lock(&self.places).memory.total()
    }

    /// Asks for a place for a connection that loop `on_loop` is to own. It
    /// counts as unauthenticated until [`Permit::authenticated`].
    pub(super) fn admit(
        self: &Arc<Self>,
        now: Time,
        peer: Peer,
        address: IpAddr,
        on_loop: usize,
    ) -> Result<Admitted, Refusal> {
        let limits = self.limits();
        let admitted = self.try_admit(&limits, now, peer, address, on_loop);
        match &admitted {
            Ok(Admitted { evicted, .. }) => {
                let evicted = u64::from(evicted.is_some());
                self.evicted[peer.index()].fetch_add(evicted, Ordering::Relaxed);
            }
            Err(why) => self.count_turned_away(*why),
        }
        admitted
    }

    /// Whether another connection may be accepted without fear that the files
    /// run out: those of the evicted are still open until their loop has closed
    /// them. It is only for a moment that there is none.
    pub(super) fn has_file_for(&self, peer: Peer) -> bool {
        let most = self.connections_at_most;
        let being_closed = BEING_CLOSED.min(most / 8);
        let beyond = match peer {
            Peer::Client => being_closed,
            Peer::Server => 2 * being_closed,
        };
        lock(&self.places).open < most.saturating_add(beyond)
    }

    /// A permit for somebody who may not be where they say, and whom another
    /// table limits: it takes no place of those who are.
    pub(super) fn unproven(self: &Arc<Self>, peer: Peer) -> Permit {
        let mut places = lock(&self.places);
        places.last_id += 1;
        Permit {
            control: Arc::clone(self),
            id: PermitId(places.last_id),
            is_limited: false,
            peer,
            address: None,
            pace: None,
            evicted: Arc::default(),
            held_bytes: 0,
        }
    }

    /// Whether an address is banned by the settings; it is then counted.
    pub(super) fn turns_away(&self, address: IpAddr) -> bool {
        let limits = self.limits();
        let is_banned = limits.banned.iter().any(|range| range.contains(address));
        if is_banned {
            self.count_turned_away(Refusal::Banned);
        }
        is_banned
    }

    fn try_admit(
        self: &Arc<Self>,
        limits: &Limits,
        now: Time,
        peer: Peer,
        address: IpAddr,
        on_loop: usize,
    ) -> Result<Admitted, Refusal> {
        if limits.banned.iter().any(|range| range.contains(address)) {
            return Err(Refusal::Banned);
        }
        let address = (peer == Peer::Client).then(|| source_prefix(address));
        let mut places = lock(&self.places);
        let pace = match address {
            Some(address) => Some(places.connects(limits, now, address)?),
            None => None,
        };
        let evicted = places.make_room(limits, self.connections_at_most, peer, address)?;
        places.last_id += 1;
        let permit = Permit {
            control: Arc::clone(self),
            id: PermitId(places.last_id),
            is_limited: true,
            peer,
            address,
            pace: pace.zip(limits.messages_per_second_per_address),
            evicted: Arc::default(),
            held_bytes: 0,
        };
        places.occupy(&permit, on_loop);
        Ok(Admitted { permit, evicted })
    }
}

impl Places {
    /// Nobody has come yet.
    fn new() -> Self {
        Self {
            connected: [0; 2],
            open: 0,
            unauthenticated: Default::default(),
            shares: Shares::default(),
            memory: Weights::new(LOGIN_MEMORY_STEP),
            last_id: 0,
            swept: 0,
            addresses: BTreeMap::new(),
        }
    }

    /// Counts that somebody comes from an address, unless too many do.
    fn connects(
        &mut self,
        limits: &Limits,
        now: Time,
        address: IpAddr,
    ) -> Result<Arc<SharedPace>, Refusal> {
        let second = now.as_millis() / 1000;
        if self.swept != second {
            self.swept = second;
            // Nobody outruns its rate by connecting again.
            self.addresses.retain(|_, known| {
                known.connected > 0 || known.second == second || known.pace.is_behind(now)
            });
        }
        let known = self.address(address);
        if known.second != second {
            (known.second, known.connects) = (second, 0);
        }
        known.connects = known.connects.saturating_add(1);
        if limits
            .connects_per_second
            .is_some_and(|most| known.connects > most)
        {
            return Err(Refusal::AddressTooFast);
        }
        if is_address_full(limits, known) {
            return Err(Refusal::AddressFull);
        }
        Ok(Arc::clone(&known.pace))
    }

    fn address(&mut self, address: IpAddr) -> &mut OfAddress {
        self.addresses.entry(address).or_default()
    }

    /// One that has not logged in holds so much memory. Evicts until all together
    /// hold no more than that.
    fn hold(
        &mut self,
        address: IpAddr,
        permit: PermitId,
        bytes: usize,
        at_most: usize,
    ) -> Vec<Evicted> {
        if !self.unauthenticated[Peer::Client.index()].contains_key(&permit) {
            return Vec::new();
        }
        self.memory.set(address, permit, bytes);
        let mut evicted = Vec::new();
        while self.memory.total() > at_most
            && let Some(first) = self.memory.first_to_go()
            && let Some(gone) = self.evict(Peer::Client, first)
        {
            evicted.push(gone);
        }
        evicted
    }

    /// Sees to it that there is a place: evicts one who has not logged in where
    /// a pool is full.
    fn make_room(
        &mut self,
        limits: &Limits,
        connections_at_most: u32,
        peer: Peer,
        address: Option<IpAddr>,
    ) -> Result<Option<Evicted>, Refusal> {
        let all = limits.connections.min(connections_at_most);
        let pool = match peer {
            Peer::Client => limits.unauthenticated.min(all),
            Peer::Server => reserved_for_servers(limits, all).max(FEWEST_SERVERS),
        };
        let is_full = self.is_full(limits, all, peer);
        let share = limits.unauthenticated_per_address as usize;
        let oldest = match address {
            Some(address) if self.shares.count(&address) >= share => self.shares.oldest(&address),
            _ if is_full || self.unauthenticated[peer.index()].len() >= pool as usize => {
                Some(self.first_to_go(peer, address).ok_or(Refusal::Full)?)
            }
            _ => None,
        };
        Ok(oldest.and_then(|oldest| self.evict(peer, oldest)))
    }

    /// Whether there is no place, of `all`, for one more of a kind.
    fn is_full(&self, limits: &Limits, all: u32, peer: Peer) -> bool {
        let connected: u32 = self.connected.iter().sum();
        let clients = self.connected[Peer::Client.index()];
        connected >= all
            || (peer == Peer::Client && clients >= all - reserved_for_servers(limits, all))
    }

    /// Who of the unauthenticated makes room for one more of an address.
    /// Servers, whose addresses are not counted, go by age alone.
    fn first_to_go(&self, peer: Peer, address: Option<IpAddr>) -> Option<PermitId> {
        match peer {
            Peer::Client => self.shares.first_to_go(address),
            Peer::Server => Some(*self.unauthenticated[peer.index()].first_key_value()?.0),
        }
    }

    fn evict(&mut self, peer: Peer, permit: PermitId) -> Option<Evicted> {
        let gone = self.leave_pool(peer, permit)?;
        gone.evicted.store(true, Ordering::SeqCst);
        self.vacate(peer, gone.address);
        Some(Evicted {
            on_loop: gone.on_loop,
            permit,
        })
    }

    fn occupy(&mut self, permit: &Permit, on_loop: usize) {
        self.connected[permit.peer.index()] += 1;
        self.open += 1;
        let waiting = Unauthenticated {
            on_loop,
            address: permit.address,
            evicted: Arc::clone(&permit.evicted),
        };
        self.unauthenticated[permit.peer.index()].insert(permit.id, waiting);
        if let Some(address) = permit.address
            && let Some(known) = self.addresses.get_mut(&address)
        {
            known.connected += 1;
            self.shares.insert(address, permit.id);
        }
    }

    /// Gives a place to an evicted connection, if there is one.
    fn take_again(&mut self, limits: &Limits, all: u32, permit: &Permit) -> Result<(), Refusal> {
        if self.is_full(limits, all, permit.peer) {
            return Err(Refusal::Full);
        }
        if let Some(address) = permit.address {
            let known = self.address(address);
            if is_address_full(limits, known) {
                return Err(Refusal::AddressFull);
            }
            known.connected += 1;
        }
        self.connected[permit.peer.index()] += 1;
        permit.evicted.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn leave_pool(&mut self, peer: Peer, permit: PermitId) -> Option<Unauthenticated> {
        let left = self.unauthenticated[peer.index()].remove(&permit)?;
        if let Some(address) = left.address {
            self.shares.remove(address, permit);
            self.memory.remove(permit);
        }
        Some(left)
    }

    fn vacate(&mut self, peer: Peer, address: Option<IpAddr>) {
        self.connected[peer.index()] -= 1;
        if let Some(address) = address
            && let Some(known) = self.addresses.get_mut(&address)
        {
            known.connected -= 1;
        }
    }
}

/// How many of `all` places no client takes.
fn reserved_for_servers(limits: &Limits, all: u32) -> u32 {
    limits.reserved_for_servers.min(all / 4)
}

fn is_address_full(limits: &Limits, known: &OfAddress) -> bool {
    let most = limits.connections_per_address;
    most.is_some_and(|most| known.connected >= most)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No step under these locks can stop half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
