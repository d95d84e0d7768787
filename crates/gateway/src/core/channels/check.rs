//! What must hold of the channel manager's tables between any two steps.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use lagometer_protocol::messages::channeldpb::ChannelType;

use crate::core::check::{Admitted, BrokenInvariant, Members, hold};
use crate::core::counters::ChannelCounters;
use crate::core::ids::{ChannelId, ConnId, Peer, SideId, source_prefix};

use super::ChannelManager;
use super::channel::{Channel, GLOBAL_TYPE};

impl ChannelManager {
    /// Whether the tables agree with each other: owners and subscribers are
    /// connections that were let in and have not gone, each knows of what it
    /// has, groups hold whom subscriptions say, numbers are unique, counters
    /// are right.
    ///
    /// # Errors
    ///
    /// [`BrokenInvariant`]: what does not hold.
    pub fn check_invariants(&self) -> Result<(), BrokenInvariant> {
        hold!(
            self.tables.channels.contains_key(ChannelId::GLOBAL),
            "there is no GLOBAL"
        );
        let mut groups = BTreeSet::new();
        for (id, channel) in self.tables.channels.iter() {
            hold!(channel.id == id, "{id} lies where {} should", channel.id);
            hold!(
                (channel.kind == GLOBAL_TYPE) == (id == ChannelId::GLOBAL),
                "{id} is of type {}",
                channel.kind
            );
            hold!(
                channel.is(ChannelType::Entity) == channel.entity.is_some(),
                "{id} of type {} is half an entity",
                channel.kind
            );
            self.check_owner(channel)?;
            channel
                .subscribers
                .check(id, &self.tables.connections, &mut groups)?;
        }
        if self.tables.settings.shard.is_home() {
            let (tables, entities) = (&self.tables, self.tables.entities());
            self.groups.check(&entities, |id| tables.is_here(id))?;
        }
        self.subscriptions.check(&self.tables.channels)?;
        self.check_connections()?;
        self.check_recoveries()?;
        self.check_counters()
    }

    /// Who owns GLOBAL, and from which listener it came.
    #[must_use]
    pub fn global_owner(&self) -> Option<(ConnId, Peer)> {
        let owner = self.tables.owner(ChannelId::GLOBAL)?;
        Some((owner, self.tables.connections.get(owner)?.peer))
    }

    /// The connections of a side that were let in and have not gone.
    pub(in crate::core) fn admitted_on(&self, side: SideId) -> Admitted {
        self.tables
            .connections
            .iter()
            .filter(|(_, connection)| {
                connection.side == side && connection.admitted && !connection.leaving
            })
            .map(|(id, connection)| (id, connection.key))
            .collect()
    }

    /// The members of groups by their subscriptions, as far as they are on a
    /// side.
    pub(in crate::core) fn members_on(&self, side: SideId) -> Members {
        let mut members = Members::new();
        for channel in self.tables.channels.values() {
            for (group, id) in channel.subscribers.members() {
                let connection = self.tables.connections.get(id);
                if connection.is_some_and(|connection| connection.side == side) {
                    members.entry(group).or_default().push(id);
                }
            }
        }
        members
    }

    fn check_owner(&self, channel: &Channel) -> Result<(), BrokenInvariant> {
        let id = channel.id;
        let Some(owner) = channel.owner else {
            return Ok(());
        };
        let Some(connection) = self.tables.connections.get(owner) else {
            hold!(false, "{id} is owned by {owner}, who is not there");
            return Ok(());
        };
        hold!(
            connection.owned.contains(&id),
            "{owner} does not know that it owns {id}"
        );
        hold!(
            !channel.owner_may_return,
            "{id} awaits its owner and has one, {owner}"
        );
        Ok(())
    }

    fn check_connections(&self) -> Result<(), BrokenInvariant> {
        let mut numbered = 0;
        let mut playing: BTreeMap<Option<IpAddr>, u32> = BTreeMap::new();
        for (id, connection) in self.tables.connections.iter() {
            numbered += 1;
            hold!(
                self.tables
                    .connections
                    .find(connection.side, connection.key)
                    == Some(id),
                "{id} is not found by its key"
            );
            for channel in connection.subscribed.keys() {
                let there = self.tables.channels.get(channel);
                hold!(
                    there.is_some_and(|there| there.subscribers.contains(id)),
                    "{id} thinks that it is subscribed to {channel}"
                );
            }
            for &channel in &connection.owned {
                hold!(
                    self.tables.owner(channel) == Some(id),
                    "{id} thinks that it owns {channel}"
                );
            }
            let is_entity = |channel| self.tables.is_of_kind(channel, ChannelType::Entity);
            hold!(
                connection.account.is_sound(is_entity),
                "the account of {id} is not what its channels come to"
            );
            for channel in connection.account.made() {
                let there = self.tables.channels.get(channel);
                hold!(
                    there.is_some_and(|there| there.maker == Some(id)),
                    "{id} thinks that it made {channel}"
                );
            }
            if connection.admitted && !connection.leaving && connection.peer == Peer::Client {
                let address = connection.address.map(source_prefix);
                *playing.entry(address).or_default() += 1;
            }
            let has_nothing =
                connection.subscribed.keys().next().is_none() && connection.owned.is_empty();
            hold!(
                has_nothing || (connection.admitted && !connection.leaving),
                "{id} has channels but was not let in or has gone"
            );
        }
        playing.remove(&None);
        hold!(
            self.logins.are_playing(&playing),
            "clients that play are counted by address other than they are: {playing:?}"
        );
        hold!(
            self.tables.connections.keys() == numbered,
            "{} connections have keys, {numbered} have numbers",
            self.tables.connections.keys()
        );
        Ok(())
    }

    fn check_recoveries(&self) -> Result<(), BrokenInvariant> {
        let left: BTreeSet<ConnId> = self.recoveries.ids().collect();
        hold!(
            *self.tables.connections.reserved() == left,
            "numbers kept for {:?}, but handles left by {left:?}",
            self.tables.connections.reserved()
        );
        for server in self.blocks.servers() {
            hold!(
                self.tables.connections.get(server).is_some() || left.contains(&server),
                "a block of the grid is {server}'s, who is not there"
            );
        }
        Ok(())
    }

    fn check_counters(&self) -> Result<(), BrokenInvariant> {
        let mut counted = ChannelCounters::default();
        let is_home = self.tables.settings.shard.is_home();
        for channel in self.tables.channels.values() {
            // Elsewhere GLOBAL stands for the one at home.
            if channel.kind == GLOBAL_TYPE && !is_home {
                continue;
            }
            let of_type = counted.of_mut(channel.kind);
            of_type.channels += 1;
            of_type.subscriptions += channel.subscribers.count() as u64;
        }
        for (here, there) in self
            .tables
            .telemetry
            .counters
            .types
            .iter()
            .zip(&counted.types)
        {
            hold!(
                (here.channels, here.subscriptions) == (there.channels, there.subscriptions),
                "counted {} channels and {} subscriptions where there are {} and {}",
                here.channels,
                here.subscriptions,
                there.channels,
                there.subscriptions
            );
        }
        Ok(())
    }
}
