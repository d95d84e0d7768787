//! Who is not let in: bans, and the failures that lead to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The most players and addresses whose failures are remembered; beyond that
/// the count begins anew, so that a flood of names cannot fill the memory.
const REMEMBERED: usize = 100_000;

/// Bans, for as long as the gateway lives.
#[derive(Debug, Default)]
pub(super) struct Admission {
    players: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
    failed_players: BTreeMap<String, u32>,
    failed_addresses: BTreeMap<IpAddr, u32>,
}

impl Admission {
    pub(super) fn bars(&self, player: &str, address: Option<IpAddr>) -> bool {
        self.players.contains(player)
            || address.is_some_and(|address| self.addresses.contains(&address))
    }

    /// Counts a wrong login token. Returns whether the player is now banned.
    pub(super) fn wrong_login(&mut self, player: &str, most: u32) -> bool {
        let failed = count(&mut self.failed_players, player.to_owned());
        most > 0 && failed >= most && self.ban_player(player.to_owned())
    }

    /// Counts a wrong player token. Returns whether the address is now banned.
    pub(super) fn wrong_player(&mut self, address: IpAddr, most: u32) -> bool {
        let failed = count(&mut self.failed_addresses, address);
        most > 0 && failed >= most && self.ban_address(address)
    }

    /// Returns whether the player was not banned before.
    pub(super) fn ban_player(&mut self, player: String) -> bool {
        self.players.len() < REMEMBERED && self.players.insert(player)
    }

    /// Returns whether the address was not banned before.
    pub(super) fn ban_address(&mut self, address: IpAddr) -> bool {
        self.addresses.len() < REMEMBERED && self.addresses.insert(address)
    }
}

fn count<K: Ord>(failures: &mut BTreeMap<K, u32>, who: K) -> u32 {
    if failures.len() >= REMEMBERED && !failures.contains_key(&who) {
        failures.clear();
    }
    let failed = failures.entry(who).or_insert(0);
    *failed += 1;
    *failed
}
