//! Entity channels: their making, and the groups of entities that change hands
//! together or not at all.

use std::collections::{BTreeMap, BTreeSet};

use lagometer_protocol::FromGateway;
use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelSubscriptionOptions, ChannelType, CreateChannelResultMessage,
    CreateEntityChannelMessage, EntityGroupType, RemoveEntityGroupMessage,
};
use lagometer_units::Time;

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::ClientRights;

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::Envelope;

/// How long a new client is given to make itself ready for the entities that
/// everyone knows, milliseconds.
const WELL_KNOWN_DELAY_MS: i32 = 1000;

/// What an entity's channel has beside what every channel has.
#[derive(Debug, Default)]
pub(super) struct Entity {
    /// The client that moved it last, or on whose behalf it was moved.
    pub(super) context: u32,
    handover: Option<GroupKey>,
    lock: Option<GroupKey>,
}

/// Names a group that entities share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey(u64);

/// Groups of entities. Several entities share one group object: what is added
/// through one is seen by all.
#[derive(Debug, Default)]
pub(super) struct EntityGroups {
    groups: BTreeMap<GroupKey, Shared>,
    last: u64,
}

#[derive(Debug, Default)]
struct Shared {
    members: BTreeSet<ChannelId>,
    /// How many entities have it as theirs.
    holders: usize,
}

impl EntityGroups {
    fn add(&mut self) -> GroupKey {
        self.last += 1;
        let key = GroupKey(self.last);
        self.groups.insert(key, Shared::default());
        key
    }

    fn hold(&mut self, key: GroupKey) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.holders += 1;
        }
    }

    fn release(&mut self, key: GroupKey) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.holders -= 1;
            if group.holders == 0 {
                self.groups.remove(&key);
            }
        }
    }

    fn members(&self, key: Option<GroupKey>) -> BTreeSet<ChannelId> {
        key.and_then(|key| self.groups.get(&key))
            .map(|group| group.members.clone())
            .unwrap_or_default()
    }

    /// How many members a group has.
    fn len(&self, key: Option<GroupKey>) -> usize {
        key.and_then(|key| self.groups.get(&key))
            .map_or(0, |group| group.members.len())
    }

    /// At most how many it would have with one more, and those who come along.
    fn len_with(&self, key: GroupKey, id: ChannelId, along: Option<GroupKey>) -> usize {
        let is_new = self
            .groups
            .get(&key)
            .is_some_and(|group| !group.members.contains(&id));
        self.len(Some(key)) + usize::from(is_new) + self.len(along)
    }

    fn insert(&mut self, key: GroupKey, members: impl IntoIterator<Item = ChannelId>) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.members.extend(members);
        }
    }
}

impl ChannelManager {
    pub(super) fn create_entity(&mut self, request: &Request, message: CreateEntityChannelMessage) {
        let id = ChannelId(message.entity_id);
        let on_global = request.channel == ChannelId::GLOBAL;
        let allowed = on_global || self.is_of_kind(request.channel, ChannelType::Spatial);
        if !allowed || id.0 < self.settings.entity_channels_from {
            self.drop_message(
                request,
                "entities have high numbers, and are made on GLOBAL or in a cell",
            );
            return;
        }
        if self.channels.contains_key(&id) {
            self.drop_message(request, "the entity has a channel");
            return;
        }
        if message.metadata.len() > self.budgets_of(request).metadata_bytes {
            self.refuse(request, Budget::Metadata);
            return;
        }
        let data_len = message.data.as_ref().map_or(0, |data| data.value.len());
        if !self.pays(request, self.cost_of(request.channel, data_len)) {
            return;
        }
        let Some(data_bytes) = self.may_make(request, true, data_len) else {
            return;
        };
        let limits = MergeLimits {
            max_encoded_bytes: data_bytes,
        };
        let kind = ChannelType::Entity as i32;
        let content = self.initial_content(kind, message.data.as_ref(), limits);
        self.make_channel(id, ChannelType::Entity as i32, Some(request.from));
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.metadata.clone_from(&message.metadata);
            channel.entity = Some(Box::default());
        }
        self.note_made(request, id, data_bytes);
        if content.is_err() {
            self.drop_message(
                request,
                "its data is malformed or too large: the entity has none",
            );
        }
        let content = content.or_else(|_| self.initial_content(kind, None, limits));
        self.begin_data(id, content.ok().flatten(), message.merge_options);
        let mut owner = request.from;
        let mut envelope = request.envelope;
        if on_global && let Some((cell, server)) = self.server_at(id) {
            owner = server;
            envelope = envelope.of_channel(cell);
            self.set_owner(id, Some(owner));
            self.note_in_cell(cell, id);
        }
        let result = FromGateway::CreateEntityChannel(CreateChannelResultMessage {
            channel_type: ChannelType::Entity as i32,
            metadata: message.metadata,
            owner_conn_id: owner.0,
            channel_id: id.0,
        });
        self.send(owner, envelope, &result);
        if message.is_well_known && self.may_act_for_others(request) {
            self.well_known.insert(id);
            let clients: Vec<ConnId> = self.connections.clients().collect();
            for client in clients {
                self.show_entity(
                    request.now,
                    id,
                    client,
                    &ChannelSubscriptionOptions::default(),
                );
            }
        }
        let options = message.sub_options.unwrap_or_default();
        self.subscribe_by_request(request, id, owner, &options);
        self.send_subscribed(owner, envelope.copy(), id, owner);
    }

    /// Whether what the sender asks may concern entities of others and show its
    /// own to everyone: servers, and with [`ClientRights::All`] anybody.
    fn may_act_for_others(&self, request: &Request) -> bool {
        let peer = self
            .connections
            .get(request.from)
            .map(|connection| connection.peer);
        peer == Some(Peer::Server) || self.settings.client_rights == ClientRights::All
    }

    /// A new client is shown the entities that everyone knows.
    pub(super) fn show_well_known(&mut self, now: Time, client: ConnId) {
        let options = ChannelSubscriptionOptions {
            fan_out_delay_ms: Some(WELL_KNOWN_DELAY_MS),
            ..ChannelSubscriptionOptions::default()
        };
        let entities: Vec<ChannelId> = self.well_known.iter().copied().collect();
        for id in entities {
            self.show_entity(now, id, client, &options);
        }
    }

    pub(super) fn group_add(&mut self, request: &Request, message: &AddEntityGroupMessage) {
        let Some(is_lock) = self.group_kind(request, message.r#type) else {
            return;
        };
        if !self.pays(request, 1) {
            return;
        }
        let ids = self.groupable(request, &message.entities_to_add);
        let most = self.budgets_of(request).group_size;
        let own = self.group_of(request.channel, is_lock);
        for id in ids {
            let along = self.joins(id, own);
            // Those who come along are looked at one by one.
            self.worked(request, 1 + self.entity_groups.len(along) as u64);
            if self.entity_groups.len_with(own, id, along) > most {
                self.refuse(request, Budget::GroupSize);
                return;
            }
            self.entity_groups.insert(own, [id]);
            self.adopt(id, own, is_lock);
        }
    }

    /// Those of the entities that the sender may group: clients only their own.
    /// The request is cut to what a group may hold.
    fn groupable(&mut self, request: &Request, ids: &[u32]) -> Vec<ChannelId> {
        let most = self.budgets_of(request).group_size;
        if ids.len() > most {
            self.over_budget(request, Budget::GroupSize);
        }
        let all = self.may_act_for_others(request);
        ids.iter()
            .take(most)
            .copied()
            .map(ChannelId)
            .filter(|&id| all || self.owner(id) == Some(request.from))
            .collect()
    }

    /// The group whose members an entity would bring along into another.
    fn joins(&self, id: ChannelId, group: GroupKey) -> Option<GroupKey> {
        self.entity(id)?.handover.filter(|&own| own != group)
    }

    pub(super) fn group_remove(&mut self, request: &Request, message: &RemoveEntityGroupMessage) {
        let Some(is_lock) = self.group_kind(request, message.r#type) else {
            return;
        };
        if !self.pays(request, 1) {
            return;
        }
        let ids = self.groupable(request, &message.entities_to_remove);
        self.worked(request, ids.len() as u64);
        if !self.remove_from_group(request.channel, is_lock, ids) {
            self.drop_message(request, "the entity is in no such group");
        }
    }

    /// The entities that go where one goes; none if one of them is locked.
    pub(super) fn handover_set(&self, id: ChannelId) -> BTreeSet<ChannelId> {
        let Some(entity) = self.entity(id) else {
            return BTreeSet::new();
        };
        if entity.handover.is_none() {
            return [id].into();
        }
        let together = self.entity_groups.members(entity.handover);
        let locked = self.entity_groups.members(entity.lock);
        if together.is_disjoint(&locked) {
            together
        } else {
            BTreeSet::new()
        }
    }

    /// An entity's channel goes.
    pub(super) fn forget_entity(&mut self, id: ChannelId) {
        self.well_known.remove(&id);
        for is_lock in [false, true] {
            self.remove_from_group(id, is_lock, [id]);
            self.set_group(id, is_lock, None);
        }
    }

    pub(super) fn is_of_kind(&self, id: ChannelId, kind: ChannelType) -> bool {
        self.channels
            .get(&id)
            .is_some_and(|channel| channel.is(kind))
    }

    fn show_entity(
        &mut self,
        now: Time,
        id: ChannelId,
        client: ConnId,
        options: &ChannelSubscriptionOptions,
    ) {
        if self.subscribe(now, id, client, options) {
            self.send_subscribed(client, Envelope::from(id), id, client);
        }
    }

    /// Whether a group message is about locking, if it is in order.
    fn group_kind(&mut self, request: &Request, number: i32) -> Option<bool> {
        let is_owner = self.owner(request.channel) == Some(request.from);
        if !is_owner || self.entity(request.channel).is_none() {
            self.drop_message(request, "only an entity's owner groups it");
            return None;
        }
        match EntityGroupType::try_from(number) {
            Ok(EntityGroupType::Handover) => Some(false),
            Ok(EntityGroupType::Lock) => Some(true),
            Err(_) => {
                self.drop_message(request, "there is no such kind of group");
                None
            }
        }
    }

    /// An entity takes a group for its own, bringing along those it was with.
    /// One that is locked stays as it is.
    fn adopt(&mut self, id: ChannelId, group: GroupKey, is_lock: bool) {
        let Some(entity) = self.entity(id) else {
            return;
        };
        let (handover, lock) = (entity.handover, entity.lock);
        if self.entity_groups.len(lock) > 0 {
            return;
        }
        // Its own group has them already: copying it into itself at every
        // entity would be quadratic.
        if handover != Some(group) {
            let along = self.entity_groups.members(handover);
            self.entity_groups.insert(group, along);
        }
        self.set_group(id, is_lock, Some(group));
    }

    /// The group of a channel, made if it has none.
    fn group_of(&mut self, id: ChannelId, is_lock: bool) -> GroupKey {
        let has = self.entity(id).and_then(|entity| {
            if is_lock {
                entity.lock
            } else {
                entity.handover
            }
        });
        has.unwrap_or_else(|| {
            let key = self.entity_groups.add();
            self.set_group(id, is_lock, Some(key));
            key
        })
    }

    fn remove_from_group(
        &mut self,
        id: ChannelId,
        is_lock: bool,
        ids: impl IntoIterator<Item = ChannelId>,
    ) -> bool {
        let group = self.entity(id).and_then(|entity| {
            if is_lock {
                entity.lock
            } else {
                entity.handover
            }
        });
        let Some(group) = group else {
            return false;
        };
        for removed in ids {
            if let Some(shared) = self.entity_groups.groups.get_mut(&group) {
                shared.members.remove(&removed);
            }
            if self.entity(removed).is_some() {
                // Alone from now on, and handed over with nobody.
                let fresh = self.entity_groups.add();
                self.set_group(removed, is_lock, Some(fresh));
            }
        }
        true
    }

    fn set_group(&mut self, id: ChannelId, is_lock: bool, group: Option<GroupKey>) {
        let Some(entity) = self
            .channels
            .get_mut(&id)
            .and_then(|channel| channel.entity.as_mut())
        else {
            return;
        };
        let place = if is_lock {
            &mut entity.lock
        } else {
            &mut entity.handover
        };
        let old = std::mem::replace(place, group);
        if let Some(group) = group {
            self.entity_groups.hold(group);
        }
        if let Some(old) = old {
            self.entity_groups.release(old);
        }
    }

    fn entity(&self, id: ChannelId) -> Option<&Entity> {
        self.channels.get(&id)?.entity.as_deref()
    }
}
