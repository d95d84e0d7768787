//! Who may come in, before a word is spoken: bans, and limits for all and for
//! each address.
//!
//! One gatekeeper stands before all threads. It is asked once for each
//! connection; what it counts for each message is one atomic number of the
//! connection's address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lagometer_units::Time;
use thiserror::Error;

use crate::core::{Peer, household};

use super::config::Limits;

/// Counts who is inside.
#[derive(Debug)]
pub(super) struct Gatekeeper {
    limits: Mutex<Arc<Limits>>,
    inside: AtomicU32,
    addresses: Mutex<Addresses>,
    turned_away: [AtomicU64; Refusal::ALL.len()],
}

#[derive(Debug, Default)]
struct Addresses {
    /// The second that was last swept for.
    swept: u64,
    known: BTreeMap<IpAddr, Known>,
}

#[derive(Debug)]
struct Known {
    open: u32,
    second: u64,
    came: u32,
    meter: Arc<Meter>,
}

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

/// One connection's place inside; given back when dropped.
#[derive(Debug)]
pub(super) struct Pass {
    keeper: Arc<Gatekeeper>,
    /// It is one of the places that are limited.
    is_limited: bool,
    address: Option<IpAddr>,
    meter: Option<(Arc<Meter>, u32)>,
}

/// What one address has sent in this second: the second above, messages below.
#[derive(Debug, Default)]
struct Meter(AtomicU64);

impl Gatekeeper {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits: Mutex::new(Arc::new(limits)),
            inside: AtomicU32::new(0),
            addresses: Mutex::default(),
            turned_away: Default::default(),
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

    /// Asks for a place.
    pub(super) fn admit(
        self: &Arc<Self>,
        now: Time,
        peer: Peer,
        address: IpAddr,
    ) -> Result<Pass, Refusal> {
        let limits = self.limits();
        let admitted = self.try_admit(&limits, now, peer, address);
        if let Err(why) = admitted {
            self.turned_away[why as usize].fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// A pass for somebody who may not be where they say, and whom another
    /// table limits: it takes no place of those who are.
    pub(super) fn unproven(self: &Arc<Self>) -> Pass {
        Pass {
            keeper: Arc::clone(self),
            is_limited: false,
            address: None,
            meter: None,
        }
    }

    /// Whether an address is banned by the settings; it is then counted.
    pub(super) fn turns_away(&self, address: IpAddr) -> bool {
        let limits = self.limits();
        let is_banned = limits.banned.iter().any(|range| range.contains(address));
        if is_banned {
            self.turned_away[Refusal::Banned as usize].fetch_add(1, Ordering::Relaxed);
        }
        is_banned
    }

    fn try_admit(
        self: &Arc<Self>,
        limits: &Limits,
        now: Time,
        peer: Peer,
        address: IpAddr,
    ) -> Result<Pass, Refusal> {
        if limits.banned.iter().any(|range| range.contains(address)) {
            return Err(Refusal::Banned);
        }
        let of_address = limits.connections_per_address.is_some()
            || limits.connects_per_second.is_some()
            || limits.messages_per_second.is_some();
        let mut pass = self.unproven();
        pass.is_limited = true;
        // From here on dropping the pass gives the place back.
        if self.inside.fetch_add(1, Ordering::Relaxed) >= limits.connections {
            return Err(Refusal::Full);
        }
        if peer == Peer::Client && of_address {
            let address = household(address);
            let meter = self.count(limits, now, address)?;
            pass.meter = limits.messages_per_second.map(|most| (meter, most));
            pass.address = Some(address);
        }
        Ok(pass)
    }

    fn count(&self, limits: &Limits, now: Time, address: IpAddr) -> Result<Arc<Meter>, Refusal> {
        let second = now.as_millis() / 1000;
        let mut addresses = lock(&self.addresses);
        if addresses.swept != second {
            addresses.swept = second;
            addresses
                .known
                .retain(|_, known| known.open > 0 || known.second == second);
        }
        let known = addresses.known.entry(address).or_insert_with(|| Known {
            open: 0,
            second,
            came: 0,
            meter: Arc::default(),
        });
        if known.second != second {
            (known.second, known.came) = (second, 0);
        }
        known.came = known.came.saturating_add(1);
        if limits
            .connects_per_second
            .is_some_and(|most| known.came > most)
        {
            return Err(Refusal::AddressTooFast);
        }
        if limits
            .connections_per_address
            .is_some_and(|most| known.open >= most)
        {
            return Err(Refusal::AddressFull);
        }
        known.open += 1;
        Ok(Arc::clone(&known.meter))
    }
}

impl Pass {
    /// Whether messages of the connection are counted.
    pub(super) fn is_metered(&self) -> bool {
        self.meter.is_some()
    }

    /// So many messages have come. Returns whether that is too many.
    pub(super) fn sent(&self, now: Time, messages: u64) -> bool {
        let Some((meter, most)) = &self.meter else {
            return false;
        };
        let second = now.as_millis() / 1000;
        let add = |old: u64| {
            let before = if old >> 32 == second {
                old & 0xffff_ffff
            } else {
                0
            };
            second << 32 | (before + messages).min(0xffff_ffff)
        };
        let sent = match meter
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(add(old)))
        {
            Ok(old) | Err(old) => add(old) & 0xffff_ffff,
        };
        sent > u64::from(*most)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_limited {
            self.keeper.inside.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(address) = self.address
            && let Some(known) = lock(&self.keeper.addresses).known.get_mut(&address)
        {
            known.open -= 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No step under these locks can stop half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn keeper(change: impl FnOnce(&mut Limits)) -> Arc<Gatekeeper> {
        let mut limits = Limits {
            connections: 3,
            connections_per_address: None,
            connects_per_second: None,
            messages_per_second: None,
            login_within: Duration::from_secs(1),
            banned: Vec::new(),
        };
        change(&mut limits);
        Gatekeeper::new(limits)
    }

    #[test]
    fn a_place_is_given_back() {
        let keeper = keeper(|_| {});
        let now = Time::ZERO;
        let admit = || keeper.admit(now, Peer::Client, HERE);
        let passes: Vec<Pass> = (0..3).map(|_| admit().unwrap()).collect();
        assert_eq!(admit().unwrap_err(), Refusal::Full);
        assert_eq!(keeper.turned_away(Refusal::Full), 1);
        drop(passes);
        admit().unwrap();
    }

    #[test]
    fn an_address_has_its_own_limits_and_servers_have_none() {
        let keeper = keeper(|limits| {
            limits.connections = 100;
            limits.connections_per_address = Some(2);
            limits.connects_per_second = Some(4);
        });
        let at = Time::from_millis;
        let first = keeper.admit(at(0), Peer::Client, HERE).unwrap();
        let _second = keeper.admit(at(0), Peer::Client, HERE).unwrap();
        let third = keeper.admit(at(0), Peer::Client, HERE);
        assert_eq!(third.unwrap_err(), Refusal::AddressFull);
        drop(first);
        let _fourth = keeper.admit(at(0), Peer::Client, HERE).unwrap();
        let fifth = keeper.admit(at(999), Peer::Client, HERE);
        assert_eq!(fifth.unwrap_err(), Refusal::AddressTooFast);
        let mapped = "::ffff:127.0.0.1".parse().unwrap();
        let sixth = keeper.admit(at(1000), Peer::Client, mapped);
        assert_eq!(sixth.unwrap_err(), Refusal::AddressFull);
        keeper.admit(at(1000), Peer::Server, HERE).unwrap();
    }

    #[test]
    fn messages_are_counted_by_address_and_second() {
        let keeper = keeper(|limits| limits.messages_per_second = Some(10));
        let at = Time::from_millis;
        let one = keeper.admit(at(0), Peer::Client, HERE).unwrap();
        let other = keeper.admit(at(0), Peer::Client, HERE).unwrap();
        assert!(!one.sent(at(5), 6));
        assert!(!other.sent(at(6), 4));
        assert!(other.sent(at(7), 1));
        assert!(!one.sent(at(1000), 10));
    }

    #[test]
    fn ranges_are_turned_away() {
        let keeper = keeper(|limits| limits.banned = vec!["127.0.0.0/8".parse().unwrap()]);
        let refused = keeper.admit(Time::ZERO, Peer::Server, HERE);
        assert_eq!(refused.unwrap_err(), Refusal::Banned);
    }

    #[test]
    fn addresses_that_went_are_forgotten() {
        let keeper = keeper(|limits| limits.connects_per_second = Some(1));
        for n in 0..1000_u32 {
            let address = IpAddr::V4(n.to_be_bytes().into());
            let _ = keeper.admit(Time::from_secs(u64::from(n)), Peer::Client, address);
        }
        assert!(lock(&keeper.addresses).known.len() <= 2);
    }
}
