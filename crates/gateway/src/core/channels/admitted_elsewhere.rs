//! What a shard learns of another: who was let in at home, and who owns GLOBAL there.
//!
//! Logins are decided at home. The edge of a connection that was let in there makes it known
//! to all shards, and only once all have [answered](ToConnections::Known) does anybody learn
//! of the login: whoever names the connection to a shard finds it there.

use std::collections::BTreeSet;

use lagometer_units::Time;

use crate::core::bus::{AdmittedConnection, HomeVersion, ToConnections};
use crate::core::by_number::ByNumber;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};

use super::ChannelManager;
use super::accounts::Account;
use super::connection_table::{ConnectionInfo, Introduction};
use super::tables::Tables;

impl ChannelManager {
    /// A connection was let in at home.
    pub(super) fn admitted(&mut self, now: Time, side: SideId, connection: AdmittedConnection) {
        let AdmittedConnection { id, key, peer, .. } = connection;
        // One edge may say that a number is another's now before its old one says that the
        // connection which had it is gone, or even that it was there.
        if let Some(known) = self.tables.connections.any(id) {
            if known.version > connection.version {
                return;
            }
            self.leave(now, id, true);
            self.tables.connections.remove(id);
        }
        let recovers = connection.recovers && self.recoveries.claim_number(id, &connection.player);
        if !recovers {
            // Home gives out a number that is another's still once it has lost all it had.
            self.abandon_recovery(id);
        }
        let is_address_forgeable = connection.is_address_forgeable;
        let info = ConnectionInfo {
            side,
            key,
            peer,
            admitted: true,
            player: connection.player,
            leaving: false,
            subscribed: ByNumber::default(),
            owned: BTreeSet::new(),
            account: Account::default(),
            address: connection.address,
            is_address_forgeable,
            undelivered_bytes: 0,
            introduction: Some(Introduction {
                broadcast: 0,
                recovers,
            }),
            version: connection.version,
        };
        self.tables.connections.insert(id, info);
        if peer == Peer::Client {
            self.logins.came(connection.address);
            self.take_over_work(now, id);
        }
        self.tables.out.push(side, ToConnections::Known { key });
    }

    /// All shards know of a connection, and it has its answer.
    pub(super) fn introduced(&mut self, now: Time, side: SideId, key: ConnKey) {
        let Some(id) = self.tables.connections.find(side, key) else {
            return;
        };
        if self.tables.settings.shard.is_home() {
            self.all_shards_know(now, id);
            return;
        }
        let Some(connection) = self.tables.connections.any_mut(id) else {
            return;
        };
        let (peer, introduction) = (connection.peer, connection.introduction.take());
        if let Some(introduction) = introduction
            && !connection.leaving
        {
            self.welcome(now, id, peer, introduction.recovers);
        }
    }

    /// Who owns GLOBAL, as far as its rights here go. Edges may say so out of turn.
    pub(super) fn global_owner_is(&mut self, owner: Option<ConnId>, version: HomeVersion) {
        let newest = &mut self.tables.home_version;
        if !self.tables.settings.shard.is_home() && *newest < version {
            *newest = version;
            let owner = owner.filter(|&owner| self.tables.connections.get(owner).is_some());
            self.tables.set_owner(ChannelId::GLOBAL, owner);
        }
    }
}

impl Tables {
    /// GLOBAL has another owner: all edges are to make that known to the other shards.
    pub(super) fn report_global_owner(&mut self) {
        if self.settings.shard.is_home_of_several() {
            self.home_version.number += 1;
            let sides: Vec<SideId> = self.out.sides().iter().copied().collect();
            for side in sides {
                self.report_global_owner_to(side);
            }
        }
    }

    /// Tells a connection manager who owns GLOBAL.
    pub(super) fn report_global_owner_to(&mut self, side: SideId) {
        if self.settings.shard.is_home_of_several() {
            let message = ToConnections::GlobalOwner {
                owner: self.owner(ChannelId::GLOBAL),
                number: self.home_version.number,
            };
            self.out.push(side, message);
        }
    }
}
