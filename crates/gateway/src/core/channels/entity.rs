//! Entity channels: their making, who is shown them, and what is asked of the
//! [groups](super::entities) they are in.

use lagometer_protocol::FromGateway;
use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelSubscriptionOptions, ChannelType, CreateChannelResultMessage,
    CreateEntityChannelMessage, EntityGroupType, RemoveEntityGroupMessage,
};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::ClientRights;

use super::ChannelManager;
use super::dispatch::Request;
use super::entities::Bond;
use super::outgoing::Envelope;
use super::tables::Tables;

/// How long a new client is given to make itself ready for the entities that
/// everyone knows, milliseconds.
const WELL_KNOWN_DELAY_MS: i32 = 1000;

/// What an entity's channel has beside what every channel has.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Entity {
    /// The client that moved it last, or on whose behalf it was moved.
    pub(super) context: u32,
}

impl ChannelManager {
    pub(super) fn create_entity(&mut self, request: &Request, message: CreateEntityChannelMessage) {
        let id = ChannelId(message.entity_id);
        let on_global = request.channel == ChannelId::GLOBAL;
        let allowed = on_global
            || self
                .tables
                .is_of_kind(request.channel, ChannelType::Spatial);
        if !allowed || id.0 < self.tables.settings.entity_channels_from {
            self.tables.drop_message(
                request,
                "entities have high numbers, and are made on GLOBAL or in a cell",
            );
            return;
        }
        let Some(data_bytes) = self.room_for_entity(request, &message) else {
            return;
        };
        let limits = MergeLimits {
            max_encoded_bytes: data_bytes,
        };
        let kind = ChannelType::Entity as i32;
        let content = self
            .tables
            .initial_content(kind, message.data.as_ref(), limits);
        self.make_channel(id, ChannelType::Entity as i32, Some(request.from));
        if let Some(channel) = self.tables.channels.get_mut(id) {
            channel.metadata.clone_from(&message.metadata);
        }
        self.begin_entity(id);
        self.tables.note_made(request, id, data_bytes);
        if content.is_err() {
            self.tables.drop_message(
                request,
                "its data is malformed or too large: the entity has none",
            );
        }
        let content = content.or_else(|_| self.tables.initial_content(kind, None, limits));
        self.tables
            .begin_data(id, content.ok().flatten(), message.merge_options);
        let mut owner = request.from;
        let mut envelope = request.envelope;
        if on_global && let Some((cell, server)) = self.server_at(id) {
            owner = server;
            envelope = envelope.of_channel(cell);
            self.tables.set_owner(id, Some(owner));
            self.note_in_cell(cell, id);
        }
        let result = FromGateway::CreateEntityChannel(CreateChannelResultMessage {
            channel_type: ChannelType::Entity as i32,
            metadata: message.metadata,
            owner_conn_id: owner.0,
            channel_id: id.0,
        });
        self.tables.send(owner, envelope, &result);
        if message.is_well_known && self.tables.may_act_for_others(request) {
            self.show_to_all(request.now, id);
        }
        let options = message.sub_options.unwrap_or_default();
        self.subscriptions
            .subscribe_by_request(&mut self.tables, request, id, owner, &options);
        self.tables
            .send_subscribed(owner, envelope.copy(), id, owner);
    }

    /// How many bytes of data an entity's channel may have, where it may be made; otherwise
    /// the message has been dropped or refused.
    fn room_for_entity(
        &mut self,
        request: &Request,
        message: &CreateEntityChannelMessage,
    ) -> Option<usize> {
        let tables = &mut self.tables;
        if tables.channels.contains_key(ChannelId(message.entity_id)) {
            tables.drop_message(request, "the entity has a channel");
            return None;
        }
        if message.metadata.len() > tables.budgets_of(request).metadata_bytes {
            tables.refuse(request, Budget::Metadata);
            return None;
        }
        if !tables.pays_for_making(request, message.data.as_ref()) {
            return None;
        }
        let data_len = message.data.as_ref().map_or(0, |data| data.value.len());
        tables.may_make(request, true, data_len)
    }

    /// Shows an entity to every client, those that come later among them.
    fn show_to_all(&mut self, now: Time, id: ChannelId) {
        self.entities.show_to_all(id);
        let clients: Vec<ConnId> = self.tables.connections.clients().collect();
        for client in clients {
            self.show_entity(now, id, client, &ChannelSubscriptionOptions::default());
        }
    }

    /// A new client is shown the entities that everyone knows.
    pub(super) fn show_well_known(&mut self, now: Time, client: ConnId) {
        let options = ChannelSubscriptionOptions {
            fan_out_delay_ms: Some(WELL_KNOWN_DELAY_MS),
            ..ChannelSubscriptionOptions::default()
        };
        let entities: Vec<ChannelId> = self.entities.well_known().collect();
        for id in entities {
            self.show_entity(now, id, client, &options);
        }
    }

    pub(super) fn group_add(&mut self, request: &Request, message: &AddEntityGroupMessage) {
        let Some(bond) = self.group_kind(request, message.r#type) else {
            return;
        };
        if !self.tables.pays(request, 1) {
            return;
        }
        let ids = self.groupable(request, &message.entities_to_add);
        let most = self.tables.budgets_of(request).group_size;
        let grouped = self.entities.group(request.channel, bond, ids, most);
        self.tables.worked(request, grouped.looked_at as u64);
        if grouped.is_full {
            self.tables.refuse(request, Budget::GroupSize);
        }
    }

    /// Those of the entities that the sender may group: clients only their own.
    /// The request is cut to what a group may hold.
    fn groupable(&mut self, request: &Request, ids: &[u32]) -> Vec<ChannelId> {
        let most = self.tables.budgets_of(request).group_size;
        if ids.len() > most {
            self.tables.over_budget(request, Budget::GroupSize);
        }
        let all = self.tables.may_act_for_others(request);
        ids.iter()
            .take(most)
            .copied()
            .map(ChannelId)
            .filter(|&id| all || self.tables.owner(id) == Some(request.from))
            .collect()
    }

    pub(super) fn group_remove(&mut self, request: &Request, message: &RemoveEntityGroupMessage) {
        let Some(bond) = self.group_kind(request, message.r#type) else {
            return;
        };
        if !self.tables.pays(request, 1) {
            return;
        }
        let ids = self.groupable(request, &message.entities_to_remove);
        self.tables.worked(request, ids.len() as u64);
        if !self.entities.ungroup(request.channel, bond, ids) {
            self.tables
                .drop_message(request, "the entity is in no such group");
        }
    }

    /// A channel that was made is an entity's.
    pub(super) fn begin_entity(&mut self, id: ChannelId) {
        if let Some(channel) = self.tables.channels.get_mut(id) {
            channel.entity = Some(Entity::default());
            self.entities.add(id);
        }
    }

    /// An entity's channel goes.
    pub(super) fn forget_entity(&mut self, id: ChannelId) {
        self.entities.remove(id);
    }

    fn show_entity(
        &mut self,
        now: Time,
        id: ChannelId,
        client: ConnId,
        options: &ChannelSubscriptionOptions,
    ) {
        if self
            .subscriptions
            .subscribe(&mut self.tables, now, id, client, options)
        {
            self.tables
                .send_subscribed(client, Envelope::from(id), id, client);
        }
    }

    /// What kind of group a message is about, if it is in order.
    fn group_kind(&mut self, request: &Request, number: i32) -> Option<Bond> {
        let is_owner = self.tables.owner(request.channel) == Some(request.from);
        if !is_owner || !self.tables.is_of_kind(request.channel, ChannelType::Entity) {
            self.tables
                .drop_message(request, "only an entity's owner groups it");
            return None;
        }
        match EntityGroupType::try_from(number) {
            Ok(EntityGroupType::Handover) => Some(Bond::Handover),
            Ok(EntityGroupType::Lock) => Some(Bond::Lock),
            Err(_) => {
                self.tables
                    .drop_message(request, "there is no such kind of group");
                None
            }
        }
    }
}

impl Tables {
    /// Whether what the sender asks may concern entities of others and show its
    /// own to everyone: servers, and with [`ClientRights::All`] anybody.
    fn may_act_for_others(&self, request: &Request) -> bool {
        let peer = self
            .connections
            .get(request.from)
            .map(|connection| connection.peer);
        peer == Some(Peer::Server) || self.settings.client_rights == ClientRights::All
    }

    pub(super) fn is_of_kind(&self, id: ChannelId, kind: ChannelType) -> bool {
        self.channels
            .get(id)
            .is_some_and(|channel| channel.is(kind))
    }
}
