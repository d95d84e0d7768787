//! Making and removing channels; owners.

use bytes::Bytes;
use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataMergeOptions, ChannelType, CreateChannelMessage, CreateChannelResultMessage,
    DisconnectMessage, RemoveChannelMessage,
};
use lagometer_protocol::{AnyView, FromGateway};
use prost_types::Any;

use crate::core::budget::Budget;
use crate::core::bus::CloseReason;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::{AclLevel, ClientRights};

use super::ChannelManager;
use super::channel::{Channel, Content, Data, GLOBAL_TYPE};
use super::dispatch::Request;
use super::outgoing::{Envelope, encode};
use super::subscriptions::Subscriptions;
use super::tables::Tables;

/// Clients leave so large a part of all channel numbers, one in so many, to
/// servers: those who are let in and hostile cannot take the last.
const LEFT_TO_SERVERS: u32 = 8;

/// What is given as a channel's data is malformed or larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadData;

impl ChannelManager {
    /// Everything that may be wrong with the request is looked for first: one
    /// that is refused leaves nothing behind, neither a channel nor an owner.
    pub(super) fn create_channel(&mut self, request: &Request, message: CreateChannelMessage) {
        if request.channel != ChannelId::GLOBAL {
            self.tables
                .drop_message(request, "channels are created on GLOBAL");
            return;
        }
        if message.metadata.len() > self.tables.budgets_of(request).metadata_bytes {
            self.tables.refuse(request, Budget::Metadata);
            return;
        }
        if !self.tables.pays_for_making(request, message.data.as_ref()) {
            return;
        }
        match ChannelType::try_from(message.channel_type) {
            Ok(ChannelType::Unknown) => self
                .tables
                .drop_message(request, "a channel must have a type"),
            Ok(ChannelType::Spatial) => self.create_spatial_channels(request, message),
            Ok(ChannelType::Global) => self.take_global(request, message),
            _ => self.create_numbered(request, message),
        }
    }

    /// Whoever makes GLOBAL, which always is, owns it.
    fn take_global(&mut self, request: &Request, message: CreateChannelMessage) {
        let is_server = self
            .tables
            .connections
            .get(request.from)
            .map(|connection| connection.peer)
            == Some(Peer::Server);
        if !is_server && self.tables.settings.client_rights == ClientRights::Own {
            self.tables
                .drop_message(request, "clients do not own GLOBAL");
            return;
        }
        if self.tables.owner(ChannelId::GLOBAL).is_some() {
            self.tables.drop_message(request, "GLOBAL has an owner");
            return;
        }
        let limits = self.tables.settings.data;
        let Ok(content) = self
            .tables
            .initial_content(GLOBAL_TYPE, message.data.as_ref(), limits)
        else {
            self.tables
                .drop_message(request, "its data is malformed or too large");
            return;
        };
        self.tables.set_owner(ChannelId::GLOBAL, Some(request.from));
        if let Some(global) = self.tables.channels.get_mut(ChannelId::GLOBAL) {
            global.owner_may_return = false;
        }
        self.finish_creation(request, ChannelId::GLOBAL, content, message);
    }

    /// Makes a channel that gets the next free number.
    fn create_numbered(&mut self, request: &Request, message: CreateChannelMessage) {
        let kind = message.channel_type;
        let data_len = message.data.as_ref().map_or(0, |data| data.value.len());
        let Some(data_bytes) = self.tables.may_make(request, false, data_len) else {
            return;
        };
        let limits = MergeLimits {
            max_encoded_bytes: data_bytes,
        };
        let Ok(content) = self
            .tables
            .initial_content(kind, message.data.as_ref(), limits)
        else {
            self.tables
                .drop_message(request, "its data is malformed or too large");
            return;
        };
        let Some(id) = self.free_channel(request) else {
            self.tables
                .drop_message(request, "all channel numbers are taken");
            return;
        };
        self.make_channel(id, kind, Some(request.from));
        // An entity that is made like other channels has a number like theirs.
        if kind == ChannelType::Entity as i32 {
            self.begin_entity(id);
        }
        self.tables.note_made(request, id, data_bytes);
        self.finish_creation(request, id, content, message);
    }

    /// Gives a channel that was made what the request brings, and answers.
    fn finish_creation(
        &mut self,
        request: &Request,
        id: ChannelId,
        content: Option<Content>,
        message: CreateChannelMessage,
    ) {
        if let Some(channel) = self.tables.channels.get_mut(id) {
            channel.metadata.clone_from(&message.metadata);
        }
        self.tables.begin_data(id, content, message.merge_options);
        Subscriptions::data_has_come(&mut self.tables, request.now, id);
        let result = FromGateway::CreateChannel(CreateChannelResultMessage {
            channel_type: message.channel_type,
            metadata: message.metadata,
            owner_conn_id: request.from.0,
            channel_id: id.0,
        });
        self.tables.answer_and_notify_global_owner(request, &result);
        let options = message.sub_options.unwrap_or_default();
        self.subscriptions.subscribe_by_request(
            &mut self.tables,
            request,
            id,
            request.from,
            &options,
        );
        self.tables
            .send_subscribed(request.from, request.envelope.copy(), id, request.from);
    }

    pub(super) fn remove_channel(&mut self, request: &Request, message: RemoveChannelMessage) {
        let id = ChannelId(message.channel_id);
        let Some(channel) = self.tables.channels.get(id) else {
            self.tables
                .drop_message(request, "there is no such channel to remove");
            return;
        };
        let level = self.tables.settings.types.of(channel.kind).acl.remove;
        if id == ChannelId::GLOBAL || !self.tables.has_right(request.from, id, level) {
            self.tables
                .drop_message(request, "it may not remove the channel");
            return;
        }
        // Everyone subscribed is notified and taken out.
        let units = 1 + self
            .tables
            .channels
            .get(id)
            .map_or(0, |it| it.subscribers.count());
        if !self.tables.pays(request, units) {
            return;
        }
        let message = FromGateway::RemoveChannel(message);
        self.notify_and_remove(id, &encode(request.envelope.copy(), &message).into());
    }

    /// Removes a channel whose owner is gone.
    pub(super) fn remove_ownerless(&mut self, id: ChannelId) {
        if id == ChannelId::GLOBAL {
            return;
        }
        let message = FromGateway::RemoveChannel(RemoveChannelMessage { channel_id: id.0 });
        self.notify_and_remove(
            id,
            &encode(Envelope::from(ChannelId::GLOBAL), &message).into(),
        );
    }

    pub(super) fn disconnect(&mut self, request: &Request, message: DisconnectMessage) {
        let id = ConnId(message.conn_id);
        if self
            .tables
            .connections
            .get(request.from)
            .map(|connection| connection.peer)
            != Some(Peer::Server)
        {
            self.tables
                .drop_message(request, "only servers disconnect others");
        } else if self.tables.connections.is_taken(id) {
            let why = if id == request.from {
                CloseReason::LeftByItself
            } else {
                CloseReason::Disconnected
            };
            self.tables.close_connection(id, why);
        } else {
            self.tables
                .drop_message(request, "there is no such connection");
        }
    }

    /// Makes a channel of a number that is free.
    pub(super) fn make_channel(&mut self, id: ChannelId, kind: i32, owner: Option<ConnId>) {
        let mut channel = Channel::new(id, kind, None);
        channel.max_data_bytes = self.tables.settings.data.max_encoded_bytes;
        self.tables.channels.insert(channel);
        if !self.tables.settings.shard.is_home() && id == ChannelId::GLOBAL {
            return;
        }
        self.tables.telemetry.of_type(kind).channels += 1;
        self.tables.set_owner(id, owner);
        self.tables.telemetry.event(Event::ChannelMade {
            channel: id,
            channel_type: kind,
        });
    }

    /// Takes a channel away without a word to its subscribers.
    pub(super) fn take_channel_away(&mut self, id: ChannelId) {
        let Some(channel) = self.tables.channels.get(id) else {
            return;
        };
        let (kind, members): (i32, Vec<ConnId>) =
            (channel.kind, channel.subscribers.ids().collect());
        for member in members {
            self.subscriptions.unsubscribe(&mut self.tables, id, member);
        }
        self.settle_account(id);
        self.forget_entity(id);
        self.tables.set_owner(id, None);
        self.tables.channels.remove(id);
        if kind == ChannelType::Spatial as i32 {
            self.release_empty_block(id);
        }
        self.tables.telemetry.of_type(kind).channels -= 1;
        self.tables.telemetry.event(Event::ChannelRemoved(id));
    }

    fn notify_and_remove(&mut self, id: ChannelId, message: &Bytes) {
        let Some(channel) = self.tables.channels.get(id) else {
            return;
        };
        let members: Vec<ConnId> = channel.subscribers.ids().collect();
        self.tables.send_to_all(members, id, message);
        self.take_channel_away(id);
    }

    /// The next free channel number, from the last one on.
    fn free_channel(&mut self, request: &Request) -> Option<ChannelId> {
        let is_server = self.tables.is_server(request.from);
        let left_to_others = (!is_server).then_some(LEFT_TO_SERVERS);
        self.tables.channels.free_number(left_to_others)
    }
}

impl Tables {
    /// Answers, and notifies GLOBAL's owner if that is another.
    pub(super) fn answer_and_notify_global_owner(
        &mut self,
        request: &Request,
        result: &FromGateway,
    ) {
        self.send(request.from, request.envelope, result);
        if let Some(owner) = self.owner(ChannelId::GLOBAL)
            && owner != request.from
        {
            self.send(owner, request.envelope.copy(), result);
        }
    }

    /// The data that a new channel of a type has: as given, or empty of its
    /// type's default, or none.
    pub(super) fn initial_content(
        &self,
        kind: i32,
        data: Option<&Any>,
        limits: MergeLimits,
    ) -> Result<Option<Content>, BadData> {
        let schema = &self.settings.schema;
        if let Some(data) = data {
            let view = AnyView {
                type_url: &data.type_url,
                value: &data.value,
            };
            let is_named = !data.type_url.is_empty();
            let content = Content::load(&view, schema, limits).filter(|_| is_named);
            return content.map(Some).ok_or(BadData);
        }
        let types = &self.settings.types;
        let name = types
            .of(kind)
            .data_type
            .as_deref()
            .or_else(|| default_type(kind, self.settings.unreal));
        Ok(name.and_then(|name| Content::empty(name, schema, limits)))
    }

    /// Gives a channel its data, in the place of what it had.
    pub(super) fn begin_data(
        &mut self,
        id: ChannelId,
        content: Option<Content>,
        options: Option<ChannelDataMergeOptions>,
    ) {
        if let Some(channel) = self.channels.get_mut(id) {
            channel.data = Some(Data {
                options: options.map(Into::into),
                content,
            });
            channel.subscribers.data_begins_anew();
        }
    }

    /// Whether a connection that was let in is a game server's.
    pub(super) fn is_server(&self, who: ConnId) -> bool {
        let connection = self.connections.get(who);
        connection.is_some_and(|connection| connection.peer == Peer::Server)
    }

    /// Whether a connection has a right in a channel.
    pub(super) fn has_right(&self, who: ConnId, id: ChannelId, level: AclLevel) -> bool {
        match level {
            AclLevel::Nobody => false,
            AclLevel::Owner => self.owner(id) == Some(who),
            AclLevel::OwnerAndGlobalOwner => {
                self.owner(id) == Some(who) || self.owner(ChannelId::GLOBAL) == Some(who)
            }
            AclLevel::AnyServer => self.is_server(who),
            AclLevel::Anyone => true,
        }
    }

    pub(super) fn set_owner(&mut self, id: ChannelId, owner: Option<ConnId>) {
        let Some(channel) = self.channels.get_mut(id) else {
            return;
        };
        let old = std::mem::replace(&mut channel.owner, owner);
        if let Some(connection) = old.and_then(|old| self.connections.any_mut(old)) {
            connection.owned.remove(&id);
        }
        if let Some(connection) = owner.and_then(|owner| self.connections.any_mut(owner)) {
            connection.owned.insert(id);
        }
        if id == ChannelId::GLOBAL && old != owner {
            self.report_global_owner();
        }
    }
}

/// The type that a channel's data begins as where the settings name none: for
/// Unreal games a cell's is always the list of its entities.
fn default_type(kind: i32, unreal: bool) -> Option<&'static str> {
    (unreal && kind == ChannelType::Spatial as i32).then_some("unrealpb.SpatialChannelData")
}
