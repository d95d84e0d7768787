//! Connections that leave, and servers that come back for what they had.
//!
//! A server that breaks off leaves a handle: its number, its subscriptions,
//! what it owned. Whoever logs in as the same player within the time allowed
//! takes all that over, number included, and is sent the data of every channel
//! before a word that this was all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lagometer_protocol::FromGateway;
use lagometer_protocol::MAX_MESSAGE_LEN;
use lagometer_protocol::messages::channeldpb::{
    BroadcastType, ChannelDataRecoveryMessage, ChannelOwnerLostMessage,
    ChannelOwnerRecoveredMessage, ChannelSubscriptionOptions, ChannelType, EndRecoveryMesssage,
};
use lagometer_protocol::messages::unrealpb::{ChannelRecoveryData, UnrealObjectRef};
use lagometer_units::Time;
use prost::Message;
use prost_types::Any;

use crate::core::bus::AuthAttempt;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::outgoing::{Envelope, encode};
use super::recoveries::Left;
use super::shard_messages::ShardMessage;
use super::subscriptions::SubOptions;
use super::tables::Tables;
use super::timers::Due;

/// How long after its login a recovering server is notified that this was all.
const ALL_SENT_AFTER: Duration = Duration::from_secs(1);

/// Other shards wait twice as long as home for a server that may come back, and so much longer:
/// home decides when it is too late for that, and notifies them. It may have missed the server
/// later, by as much as it takes another node to go on with home, and to miss an edge.
const HOME_DECIDES_WITHIN: Duration = Duration::from_secs(30);

/// Room for a recovery message's other parts beside the data.
const OTHER_PARTS_BYTES: usize = 4096;

impl ChannelManager {
    /// A connection goes: its subscriptions end, its channels lose their
    /// owner.
    pub(super) fn leave(&mut self, now: Time, id: ConnId, broke_off: bool) {
        let Some(connection) = self.tables.connections.any_mut(id) else {
            return;
        };
        connection.leaving = true;
        if !connection.admitted {
            return;
        }
        if connection.peer == Peer::Client {
            self.logins.went(connection.address);
        }
        let is_server = connection.peer == Peer::Server;
        let let_in_by = connection.version.epoch;
        let is_home = self.tables.settings.shard.is_home();
        let is_known_at_home = is_home || let_in_by >= self.tables.links.epoch_of(ShardId::HOME);
        let recovery = self.tables.settings.recovery;
        let recovery = recovery.filter(|_| is_server && broke_off && is_known_at_home);
        let player = connection.player.clone();
        let subscribed = connection.subscribed.keys();
        let channels: BTreeSet<ChannelId> =
            subscribed.chain(connection.owned.iter().copied()).collect();
        // Each subscription ends, its owner is notified, groups are looked through.
        self.leave_work(now, id, 2 * channels.len() as u64);
        let mut all_left = BTreeMap::new();
        for channel in channels {
            let left = self.leave_channel(channel, id, recovery.is_some());
            all_left.extend(left.map(|left| (channel, left)));
        }
        self.orphan_channels(id);
        let Some(recovery) = recovery else {
            self.release_server(id);
            if self.recoveries.give_up(id, now) {
                self.tables.timers.add(now, Due::RecoveryTimeout { id });
            }
            if is_server && self.tables.settings.recovery.is_some() {
                // Another shard may have it that it broke off.
                self.end_recovery_elsewhere(id);
            }
            return;
        };
        self.tables.connections.reserve(id);
        let due = recovery.within.map(|within| {
            let left = now + within;
            // It may have come back and broken off again without this shard's knowledge.
            if is_home {
                left
            } else {
                left + within + HOME_DECIDES_WITHIN
            }
        });
        if let Some(due) = due {
            self.tables.timers.add(due, Due::RecoveryTimeout { id });
        }
        self.recoveries.leave(id, player, due, all_left);
    }

    fn leave_channel(&mut self, id: ChannelId, who: ConnId, recovers: bool) -> Option<Left> {
        if id == ChannelId::GLOBAL && !self.tables.settings.shard.is_home() {
            // Whose it is, and whether they come back for it, is home's to say.
            self.tables.set_owner(id, None);
            return None;
        }
        let channel = self.tables.channels.get_mut(id)?;
        let settings = self.tables.settings.types.of(channel.kind);
        let (send_lost, remove) = (settings.send_owner_lost, settings.remove_after_owner);
        let was_owner = channel.owner == Some(who);
        let left = Left {
            was_owner,
            subscription: channel
                .subscribers
                .subscription(who)
                .map(|subscription| (subscription.since(), subscription.options().clone())),
        };
        self.subscriptions.unsubscribe(&mut self.tables, id, who);
        if was_owner {
            self.tables.set_owner(id, None);
            self.tables.telemetry.event(Event::OwnerLost {
                channel: id,
                owner: who,
            });
            if recovers {
                if let Some(channel) = self.tables.channels.get_mut(id) {
                    channel.owner_may_return = true;
                }
                if send_lost {
                    let lost = FromGateway::ChannelOwnerLost(ChannelOwnerLostMessage {});
                    self.tables.notify_subscribers(id, &lost);
                }
            } else if remove {
                self.remove_ownerless(id);
            }
        } else if let Some(owner) = self.tables.owner(id) {
            self.tables
                .send_unsubscribed(owner, Envelope::from(id), id, who);
        }
        Some(left)
    }

    /// Gives a server that came back the number it had. Returns whether it did
    /// come back.
    pub(super) fn take_over_number(&mut self, attempt: &AuthAttempt, id: &mut ConnId) -> bool {
        if attempt.peer != Peer::Server || self.tables.settings.recovery.is_none() {
            return false;
        }
        let Some(old) = self.recoveries.claim(&attempt.player) else {
            return false;
        };
        self.tables.connections.renumber(*id, old);
        *id = old;
        true
    }

    /// A connection was let in.
    pub(super) fn welcome(&mut self, now: Time, id: ConnId, peer: Peer, recovers: bool) {
        if recovers {
            self.recover(now, id);
        } else if peer == Peer::Client {
            self.show_well_known(now, id);
        }
    }

    pub(super) fn recover(&mut self, now: Time, id: ConnId) {
        let ends_at = now + ALL_SENT_AFTER;
        let Some(all_left) = self.recoveries.take_up(id, ends_at) else {
            return;
        };
        for (channel_id, left) in all_left {
            let Some(channel) = self.tables.channels.get_mut(channel_id) else {
                continue;
            };
            if left.was_owner && channel.owner.is_none() {
                channel.owner_may_return = false;
                channel.owner_returned = true;
                self.tables.set_owner(channel_id, Some(id));
            }
            let Some((since, options)) = left.subscription else {
                continue;
            };
            self.recover_subscription(now, channel_id, id, since, &options);
        }
        self.tables.timers.add(ends_at, Due::RecoveryEnd { id });
    }

    fn recover_subscription(
        &mut self,
        now: Time,
        channel_id: ChannelId,
        id: ConnId,
        since: Time,
        options: &SubOptions,
    ) {
        let sub_time = self.tables.unix_ns(since);
        let Some(channel) = self.tables.channels.get(channel_id) else {
            return;
        };
        let content = channel.content();
        // Data that no one message can hold comes as a whole state instead.
        let fits = content.is_none_or(|content| {
            content.state.encoded_len() <= MAX_MESSAGE_LEN - OTHER_PARTS_BYTES
        });
        let has_objects = channel.is(ChannelType::Global) || channel.is(ChannelType::Subworld);
        let asked = ChannelSubscriptionOptions {
            skip_first_fan_out: Some(fits),
            ..options.to_wire()
        };
        let message = FromGateway::RecoveryChannelData(ChannelDataRecoveryMessage {
            channel_id: channel_id.0,
            channel_type: channel.kind,
            metadata: channel.metadata.clone(),
            owner_conn_id: channel.owner.map_or(0, |owner| owner.0),
            sub_time,
            sub_options: Some(asked.clone()),
            channel_data: content.filter(|_| fits).map(|content| Any {
                type_url: content.type_url.to_string(),
                value: content.state.to_bytes(),
            }),
            recovery_data: has_objects.then(|| Any {
                type_url: "type.googleapis.com/unrealpb.ChannelRecoveryData".to_owned(),
                value: ChannelRecoveryData {
                    obj_refs: channel
                        .objects
                        .iter()
                        .filter_map(|(&id, object)| {
                            Some((id, UnrealObjectRef::decode(&**object).ok()?))
                        })
                        .collect(),
                }
                .encode_to_vec(),
            }),
        });
        self.subscriptions
            .subscribe(&mut self.tables, now, channel_id, id, &asked);
        self.tables.send(id, Envelope::from(channel_id), &message);
    }

    /// A recovering server has been sent everything.
    pub(super) fn recovery_end(&mut self, id: ConnId, due: Time) {
        if !self.recoveries.finish(id, due) {
            return;
        }
        self.tables.connections.unreserve(id);
        // That this was all is home's to say.
        if self.tables.settings.shard.is_home() {
            let end = FromGateway::RecoveryEnd(EndRecoveryMesssage {});
            self.tables
                .send(id, Envelope::from(ChannelId::GLOBAL), &end);
        }
        let Some(connection) = self.tables.connections.get(id) else {
            return;
        };
        let owned: Vec<ChannelId> = connection.owned.iter().copied().collect();
        for channel_id in owned {
            let Some(channel) = self.tables.channels.get_mut(channel_id) else {
                continue;
            };
            let returned = std::mem::take(&mut channel.owner_returned);
            if returned && self.tables.settings.types.of(channel.kind).send_owner_lost {
                let back = FromGateway::ChannelOwnerRecovered(ChannelOwnerRecoveredMessage {});
                self.tables.notify_subscribers(channel_id, &back);
            }
        }
    }

    /// A server did not come back in time.
    pub(super) fn recovery_timeout(&mut self, id: ConnId, due: Time) {
        let Some(all_left) = self.recoveries.expire(id, due) else {
            return;
        };
        self.end_recovery_elsewhere(id);
        self.recovery_is_over(id, all_left);
    }

    /// Home, of several shards: nobody is let in any more as whoever had that number.
    fn end_recovery_elsewhere(&mut self, id: ConnId) {
        let shard = self.tables.settings.shard;
        if shard.is_home_of_several() {
            for other in shard.count.all().filter(|&other| other != shard.id) {
                self.send_to_shard(other, ShardMessage::RecoveryOver(id));
            }
        }
    }

    /// Home has decided that it is too late for a server to come back.
    pub(super) fn abandon_recovery(&mut self, id: ConnId) {
        if let Some(all_left) = self.recoveries.abandon(id) {
            self.recovery_is_over(id, all_left);
        }
    }

    /// Home has lost all it had: nobody is let in any more as whoever has left something.
    pub(super) fn abandon_recoveries(&mut self) {
        let ids: Vec<ConnId> = self.recoveries.ids().collect();
        for id in ids {
            self.abandon_recovery(id);
        }
    }

    /// Nobody comes back for what was left.
    fn recovery_is_over(&mut self, id: ConnId, all_left: BTreeMap<ChannelId, Left>) {
        self.tables.connections.unreserve(id);
        self.release_server(id);
        for (channel_id, left) in all_left {
            let Some(channel) = self.tables.channels.get_mut(channel_id) else {
                continue;
            };
            if left.was_owner && channel.owner.is_none() {
                channel.owner_may_return = false;
                if self
                    .tables
                    .settings
                    .types
                    .of(channel.kind)
                    .remove_after_owner
                {
                    self.remove_ownerless(channel_id);
                }
            }
        }
    }
}

impl Tables {
    /// Notifies all subscribers but the owner.
    fn notify_subscribers(&mut self, id: ChannelId, message: &FromGateway) {
        let Some(channel) = self.channels.get(id) else {
            return;
        };
        let owner = channel.owner;
        let to: Vec<ConnId> = channel
            .subscribers
            .ids()
            .filter(|&member| Some(member) != owner)
            .collect();
        // channeld leaves in the message by which flag it was sent.
        let envelope = Envelope {
            broadcast: BroadcastType::AllButOwner as u32,
            ..Envelope::from(id)
        };
        self.send_to_all(to, id, &encode(envelope, message).into());
    }
}
