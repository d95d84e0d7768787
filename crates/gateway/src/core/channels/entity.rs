//! Entity channels: their making, and who is shown them.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use lagometer_protocol::FromGateway;
use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelResultMessage, CreateEntityChannelMessage,
};
use lagometer_protocol::messages::unrealpb::UnrealObjectRef;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::ClientRights;
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::Envelope;
use super::shard_messages::ShardMessage;
use super::tables::Tables;

/// How long a new client is given to make itself ready for the entities that
/// everyone knows, milliseconds.
const WELL_KNOWN_DELAY_MS: i32 = 1000;

/// What an entity's channel has beside what every channel has.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Entity {
    /// The client that moved it last, or on whose behalf it was moved.
    pub(super) context: u32,
    /// It has left a cell before it was known which object it is.
    pub(super) left_unknown: bool,
    /// Which one it is of all that this shard had: a number may be used again.
    pub(super) serial: u64,
}

/// The reference to an entity's object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Object(#[serde(with = "super::protobuf")] pub(super) UnrealObjectRef);

/// An entity that was made: where, and what is left to be done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NewEntity {
    request: Request,
    entity: ChannelId,
    /// Which of all that had its number.
    serial: u64,
    /// The cell where its data says it is.
    cell: Option<ChannelId>,
    /// For the cell's data.
    object: Option<Object>,
    /// The cell's server.
    server: Option<ConnId>,
    metadata: String,
    is_well_known: bool,
    #[serde(with = "super::protobuf")]
    options: ChannelSubscriptionOptions,
}

/// This shard's entities.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Entities {
    /// Those that every client is shown.
    well_known: BTreeSet<ChannelId>,
    /// How many were made.
    made: u64,
    /// Objects of entities that are not made yet: a spawn may come before what it is of.
    early: VecDeque<EarlyObject>,
}

/// The object of an entity that is not made yet.
#[derive(Debug, Serialize, Deserialize)]
struct EarlyObject {
    entity: ChannelId,
    object: Vec<u8>,
    spawned_in: ChannelId,
    came_at: Time,
}

/// Early objects are kept for so long, and up to so many bytes.
const EARLY_FOR: Duration = Duration::from_secs(10);
const EARLY_BYTES: usize = 1 << 20;

impl Entities {
    /// The channels began in this epoch: no serial of an earlier one is used again.
    pub(super) fn began_in(&mut self, epoch: u64) {
        self.made = epoch << 32;
    }

    fn keep_early(&mut self, early: EarlyObject) {
        self.forget_early(early.entity);
        let now = early.came_at;
        self.early.push_back(early);
        let bytes = |it: &EarlyObject| it.object.len() + size_of::<EarlyObject>();
        let mut sum: usize = self.early.iter().map(bytes).sum();
        while let Some(oldest) = self.early.front()
            && (sum > EARLY_BYTES || oldest.came_at + EARLY_FOR < now)
        {
            sum -= bytes(oldest);
            self.early.pop_front();
        }
    }

    fn take_early(&mut self, now: Time, id: ChannelId) -> Option<EarlyObject> {
        let place = self.early.iter().position(|it| it.entity == id)?;
        let early = self.early.remove(place)?;
        (early.came_at + EARLY_FOR >= now).then_some(early)
    }

    /// An entity is destroyed that may not have been made.
    pub(super) fn forget_early(&mut self, id: ChannelId) {
        self.early.retain(|it| it.entity != id);
    }
}

impl ChannelManager {
    pub(super) fn create_entity(&mut self, request: &Request, message: CreateEntityChannelMessage) {
        let id = ChannelId(message.entity_id);
        let on_global = request.channel == ChannelId::GLOBAL;
        let is_entity = id.0 >= self.tables.settings.entity_channels_from;
        // An edge sends it to the entity's shard, unless it is malformed.
        if !(on_global || self.tables.is_cell(request.channel))
            || !is_entity
            || !self.tables.is_here(id)
        {
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
        if let Some(early) = self.entities.take_early(request.now, id) {
            self.set_object(id, &early.object, early.spawned_in);
        }
        let new = NewEntity {
            request: *request,
            entity: id,
            serial: self.tables.entity_serial(id).unwrap_or_default(),
            cell: if on_global {
                self.cell_by_data(id)
            } else {
                None
            },
            object: self.tables.object(id).map(Object),
            server: None,
            metadata: message.metadata,
            is_well_known: message.is_well_known,
            options: message.sub_options.unwrap_or_default(),
        };
        match new.cell {
            Some(cell) => {
                self.send_to_shard_of(cell, ShardMessage::PlaceEntity(new));
            }
            None => self.entity_placed(new),
        }
    }

    /// Notes an entity in the cell where it was made, and finds the server there.
    pub(super) fn place_entity(&mut self, mut new: NewEntity) {
        if let Some(cell) = new.cell {
            new.server = self.tables.owner(cell);
            if let (Some(_), Some(Object(object))) = (new.server, &new.object) {
                self.add_entity_to(cell, new.entity.0, object);
            }
        }
        self.send_to_shard_of(new.entity, ShardMessage::EntityPlaced(new));
    }

    /// Gives an entity that was made to the server of its cell, if there is one, and answers.
    pub(super) fn entity_placed(&mut self, new: NewEntity) {
        let request = new.request.at(self.tables.now);
        let id = new.entity;
        let serial = self.tables.entity_serial(id);
        if serial != Some(new.serial) {
            if let (None, Some(cell)) = (serial, new.cell) {
                self.forget_in_cell(cell, id);
            }
            return;
        }
        let mut owner = request.from;
        let mut envelope = request.envelope;
        if let (Some(cell), Some(server)) = (new.cell, new.server)
            && self.tables.connections.get(server).is_some()
            && self.tables.owner(id) == Some(request.from)
        {
            owner = server;
            envelope = envelope.of_channel(cell);
            self.tables.set_owner(id, Some(owner));
        }
        let result = FromGateway::CreateEntityChannel(CreateChannelResultMessage {
            channel_type: ChannelType::Entity as i32,
            metadata: new.metadata,
            owner_conn_id: owner.0,
            channel_id: id.0,
        });
        self.tables.send(owner, envelope, &result);
        if new.is_well_known && self.tables.may_act_for_others(&request) {
            self.show_to_all(request.now, id);
        }
        self.subscriptions.subscribe_by_request(
            &mut self.tables,
            &request,
            id,
            owner,
            &new.options,
        );
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

    /// One of several shards: an entity was spawned that is not there yet.
    pub(super) fn is_spawned_early(&mut self, entity: ChannelId, object: Vec<u8>, at: ChannelId) {
        let is_whole = self.tables.settings.shard.is_whole();
        if !is_whole && entity.0 >= self.tables.settings.entity_channels_from {
            self.entities.keep_early(EarlyObject {
                entity,
                object,
                spawned_in: at,
                came_at: self.tables.now,
            });
        }
    }

    /// Shows an entity to every client, those that come later among them.
    fn show_to_all(&mut self, now: Time, id: ChannelId) {
        self.entities.well_known.insert(id);
        // Those of whom not all shards know yet are shown it once they do.
        let clients: Vec<ConnId> = self.tables.connections.introduced_clients().collect();
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
        let entities: Vec<ChannelId> = self.entities.well_known.iter().copied().collect();
        for id in entities {
            self.show_entity(now, id, client, &options);
        }
    }

    /// A channel that was made is an entity's.
    pub(super) fn begin_entity(&mut self, id: ChannelId) {
        if let Some(channel) = self.tables.channels.get_mut(id) {
            self.entities.made += 1;
            channel.entity = Some(Entity {
                serial: self.entities.made,
                ..Entity::default()
            });
            self.send_to_shard(ShardId::HOME, ShardMessage::EntityMade(id));
        }
    }

    /// A channel goes, which may be an entity's.
    pub(super) fn forget_entity(&mut self, id: ChannelId) {
        self.entities.well_known.remove(&id);
        if self.tables.is_of_kind(id, ChannelType::Entity) {
            self.send_to_shard(ShardId::HOME, ShardMessage::EntityGone(id));
        }
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
}

impl Tables {
    /// Which of all that had its number an entity is, if there is one.
    pub(super) fn entity_serial(&self, id: ChannelId) -> Option<u64> {
        let entity = self.channels.get(id)?.entity.as_ref()?;
        Some(entity.serial)
    }

    /// This shard's entities, in order.
    pub(super) fn entities(&self) -> BTreeSet<ChannelId> {
        let entities = self.channels.iter();
        let entities = entities.filter(|(_, channel)| channel.entity.is_some());
        entities.map(|(id, _)| id).collect()
    }

    /// Whether a channel is a cell's: one of another shard need not be there.
    pub(super) fn is_cell(&self, id: ChannelId) -> bool {
        let Some(grid) = &self.settings.grid else {
            return false;
        };
        let cell = id.0.checked_sub(self.settings.spatial_channels_from);
        match cell.filter(|&cell| cell < grid.cells()) {
            Some(_) if self.is_here(id) => self.is_of_kind(id, ChannelType::Spatial),
            cell => cell.is_some(),
        }
    }

    /// Whether what the sender asks may concern entities of others and show its
    /// own to everyone: servers, and with [`ClientRights::All`] anybody.
    pub(super) fn may_act_for_others(&self, request: &Request) -> bool {
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
