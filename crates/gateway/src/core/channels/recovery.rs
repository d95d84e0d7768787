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

use super::ChannelManager;
use super::outgoing::{Envelope, encode};
use super::subscription::SubOptions;
use super::timers::Due;

/// How long after its login a recovering server is told that this was all.
const ALL_SENT_AFTER: Duration = Duration::from_secs(1);

/// Room for a recovery message's other parts beside the data.
const OTHER_PARTS_BYTES: usize = 4096;

/// What servers that broke off have left, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Recoveries(BTreeMap<ConnId, Handle>);

#[derive(Debug)]
struct Handle {
    player: String,
    /// Somebody has come back for it.
    taken: bool,
    /// When the time allowed is over, or, once somebody has come back, when
    /// they are told that this was all. Timers of an earlier handle of the same
    /// number, which broke off again before that, are of other instants.
    due: Option<Time>,
    channels: BTreeMap<ChannelId, Left>,
}

/// What a server left in one channel.
#[derive(Debug)]
struct Left {
    was_owner: bool,
    subscription: Option<(Time, SubOptions)>,
}

impl Recoveries {
    /// Whether something of a handle is due then.
    pub(super) fn is_due(&self, id: ConnId, at: Time) -> bool {
        self.0.get(&id).is_some_and(|handle| handle.due == Some(at))
    }

    /// The numbers that were left.
    pub(super) fn ids(&self) -> impl Iterator<Item = ConnId> {
        self.0.keys().copied()
    }

    /// Whether a server has come back and has not been told yet that this was
    /// all.
    pub(super) fn is_returning(&self, id: ConnId) -> bool {
        self.0.get(&id).is_some_and(|handle| handle.taken)
    }
}

impl ChannelManager {
    /// A connection goes: its subscriptions end, its channels lose their
    /// owner.
    pub(super) fn leave(&mut self, now: Time, id: ConnId, broke_off: bool) {
        let Some(connection) = self.connections.any_mut(id) else {
            return;
        };
        connection.leaving = true;
        if !connection.admitted {
            return;
        }
        if connection.peer == Peer::Client {
            self.admission.went(connection.address);
        }
        let recovery = self
            .settings
            .recovery
            .filter(|_| connection.peer == Peer::Server && broke_off);
        let player = connection.player.clone();
        let subscribed = connection.subscribed.keys();
        let channels: BTreeSet<ChannelId> =
            subscribed.chain(connection.owned.iter().copied()).collect();
        // Each subscription ends, its owner is told, groups are looked through.
        self.leave_work(now, id, 2 * channels.len() as u64);
        let mut handle = Handle {
            player,
            taken: false,
            due: None,
            channels: BTreeMap::new(),
        };
        for channel in channels {
            let left = self.leave_channel(channel, id, recovery.is_some());
            handle.channels.extend(left.map(|left| (channel, left)));
        }
        self.orphan_channels(id);
        let Some(recovery) = recovery else {
            self.release_server(id);
            return;
        };
        self.connections.reserve(id);
        handle.due = recovery.within.map(|within| now + within);
        if let Some(due) = handle.due {
            self.timers.add(due, Due::RecoveryTimeout { id });
        }
        self.recoveries.0.insert(id, handle);
    }

    fn leave_channel(&mut self, id: ChannelId, who: ConnId, recovers: bool) -> Option<Left> {
        let channel = self.channels.get_mut(&id)?;
        let settings = self.settings.types.of(channel.kind);
        let (send_lost, remove) = (settings.send_owner_lost, settings.remove_after_owner);
        let was_owner = channel.owner == Some(who);
        let left = Left {
            was_owner,
            subscription: channel
                .subscriptions
                .get(&who)
                .map(|subscription| (subscription.since, subscription.options.clone())),
        };
        self.unsubscribe(id, who);
        if was_owner {
            self.set_owner(id, None);
            self.events.push(Event::OwnerLost {
                channel: id,
                owner: who,
            });
            if recovers {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.owner_may_return = true;
                }
                if send_lost {
                    let lost = FromGateway::ChannelOwnerLost(ChannelOwnerLostMessage {});
                    self.tell_subscribers(id, &lost);
                }
            } else if remove {
                self.remove_ownerless(id);
            }
        } else if let Some(owner) = self.owner(id) {
            self.send_unsubscribed(owner, Envelope::from(id), id, who);
        }
        Some(left)
    }

    /// Gives a server that came back the number it had. Returns whether it did
    /// come back.
    pub(super) fn take_over_number(&mut self, attempt: &AuthAttempt, id: &mut ConnId) -> bool {
        if attempt.peer != Peer::Server || self.settings.recovery.is_none() {
            return false;
        }
        let mut handles = self.recoveries.0.iter_mut();
        let Some((&old, handle)) =
            handles.find(|(_, handle)| !handle.taken && handle.player == attempt.player)
        else {
            return false;
        };
        handle.taken = true;
        self.connections.renumber(*id, old);
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

    fn recover(&mut self, now: Time, id: ConnId) {
        let Some(handle) = self.recoveries.0.get_mut(&id) else {
            return;
        };
        let ends_at = now + ALL_SENT_AFTER;
        handle.due = Some(ends_at);
        for (channel_id, left) in std::mem::take(&mut handle.channels) {
            let Some(channel) = self.channels.get_mut(&channel_id) else {
                continue;
            };
            if left.was_owner && channel.owner.is_none() {
                channel.owner_may_return = false;
                channel.owner_returned = true;
                self.set_owner(channel_id, Some(id));
            }
            let Some((since, options)) = left.subscription else {
                continue;
            };
            self.recover_subscription(now, channel_id, id, since, &options);
        }
        self.timers.add(ends_at, Due::RecoveryEnd { id });
    }

    fn recover_subscription(
        &mut self,
        now: Time,
        channel_id: ChannelId,
        id: ConnId,
        since: Time,
        options: &SubOptions,
    ) {
        let sub_time = self.unix_ns(since);
        let Some(channel) = self.channels.get(&channel_id) else {
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
        self.subscribe(now, channel_id, id, &asked);
        self.send(id, Envelope::from(channel_id), &message);
    }

    /// A recovering server has been sent everything.
    pub(super) fn recovery_end(&mut self, id: ConnId, due: Time) {
        let handle = self.recoveries.0.get(&id);
        if handle.is_none_or(|handle| !handle.taken || handle.due != Some(due)) {
            return;
        }
        self.recoveries.0.remove(&id);
        self.connections.unreserve(id);
        let end = FromGateway::RecoveryEnd(EndRecoveryMesssage {});
        self.send(id, Envelope::from(ChannelId::GLOBAL), &end);
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        let owned: Vec<ChannelId> = connection.owned.iter().copied().collect();
        for channel_id in owned {
            let Some(channel) = self.channels.get_mut(&channel_id) else {
                continue;
            };
            let returned = std::mem::take(&mut channel.owner_returned);
            if returned && self.settings.types.of(channel.kind).send_owner_lost {
                let back = FromGateway::ChannelOwnerRecovered(ChannelOwnerRecoveredMessage {});
                self.tell_subscribers(channel_id, &back);
            }
        }
    }

    /// A server did not come back in time.
    pub(super) fn recovery_timeout(&mut self, id: ConnId, due: Time) {
        let handle = self.recoveries.0.get(&id);
        if handle.is_none_or(|handle| handle.taken || handle.due != Some(due)) {
            return;
        }
        let Some(handle) = self.recoveries.0.remove(&id) else {
            return;
        };
        self.connections.unreserve(id);
        self.release_server(id);
        for (channel_id, left) in handle.channels {
            let Some(channel) = self.channels.get_mut(&channel_id) else {
                continue;
            };
            if left.was_owner && channel.owner.is_none() {
                channel.owner_may_return = false;
                if self.settings.types.of(channel.kind).remove_after_owner {
                    self.remove_ownerless(channel_id);
                }
            }
        }
    }

    /// Tells all subscribers but the owner.
    fn tell_subscribers(&mut self, id: ChannelId, message: &FromGateway) {
        let Some(channel) = self.channels.get(&id) else {
            return;
        };
        let owner = channel.owner;
        let to: Vec<ConnId> = channel
            .subscriptions
            .keys()
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
