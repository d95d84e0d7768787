//! Making, removing and listing channels; owners.

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::list_channel_result_message::ChannelInfo;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataMergeOptions, ChannelType, CreateChannelMessage, CreateChannelResultMessage,
    DisconnectMessage, ListChannelMessage, ListChannelResultMessage, RemoveChannelMessage,
};
use lagometer_protocol::{AnyView, FromGateway};
use prost_types::Any;

use crate::core::bus::CloseReason;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::AclLevel;

use super::ChannelSide;
use super::channel::{Channel, Content, Data};
use super::dispatch::Request;
use super::outgoing::{Envelope, encode};

/// The longest text that describes a channel.
const MAX_METADATA_BYTES: usize = 16 << 10;

impl ChannelSide {
    pub(super) fn create_channel(&mut self, request: &Request, message: CreateChannelMessage) {
        if request.channel != ChannelId::GLOBAL {
            self.drop_message(request, "channels are created on GLOBAL");
            return;
        }
        if message.metadata.len() > MAX_METADATA_BYTES {
            self.drop_message(request, "its metadata is too long");
            return;
        }
        let kind = message.channel_type;
        let id = match ChannelType::try_from(kind) {
            Ok(ChannelType::Unknown) => {
                self.drop_message(request, "a channel must have a type");
                return;
            }
            Ok(ChannelType::Spatial) => {
                self.create_spatial_channels(request, &message);
                return;
            }
            Ok(ChannelType::Entity) => {
                self.drop_message(request, "an entity has a message of its own");
                return;
            }
            Ok(ChannelType::Global) => {
                if self.owner(ChannelId::GLOBAL).is_some() {
                    self.drop_message(request, "GLOBAL has an owner");
                    return;
                }
                self.set_owner(ChannelId::GLOBAL, Some(request.from));
                if let Some(global) = self.channels.get_mut(&ChannelId::GLOBAL) {
                    global.owner_may_return = false;
                }
                ChannelId::GLOBAL
            }
            _ => {
                let Some(id) = self.free_channel() else {
                    self.drop_message(request, "all channel numbers are taken");
                    return;
                };
                self.make_channel(id, kind, Some(request.from));
                id
            }
        };
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.metadata.clone_from(&message.metadata);
        }
        if !self.init_data(id, message.data.as_ref(), message.merge_options) {
            self.drop_message(request, "its data is malformed or too large");
            return;
        }
        self.data_has_come(request.now, id);
        let result = FromGateway::CreateChannel(CreateChannelResultMessage {
            channel_type: kind,
            metadata: message.metadata,
            owner_conn_id: request.from.0,
            channel_id: id.0,
        });
        self.answer_and_tell_global_owner(request, &result);
        let options = message.sub_options.unwrap_or_default();
        self.subscribe(request.now, id, request.from, &options);
        self.send_subscribed(request.from, request.envelope.copy(), id, request.from);
    }

    pub(super) fn remove_channel(&mut self, request: &Request, message: RemoveChannelMessage) {
        let id = ChannelId(message.channel_id);
        let Some(channel) = self.channels.get(&id) else {
            self.drop_message(request, "there is no such channel to remove");
            return;
        };
        let level = self.settings.types.of(channel.kind).acl.remove;
        if id == ChannelId::GLOBAL || !self.has_right(request.from, id, level) {
            self.drop_message(request, "it may not remove the channel");
            return;
        }
        let message = FromGateway::RemoveChannel(message);
        self.tell_and_remove(id, &encode(request.envelope.copy(), &message).into());
    }

    /// Removes a channel whose owner is gone.
    pub(super) fn remove_ownerless(&mut self, id: ChannelId) {
        if id == ChannelId::GLOBAL {
            return;
        }
        let message = FromGateway::RemoveChannel(RemoveChannelMessage { channel_id: id.0 });
        self.tell_and_remove(
            id,
            &encode(Envelope::from(ChannelId::GLOBAL), &message).into(),
        );
    }

    pub(super) fn list_channels(&mut self, request: &Request, message: &ListChannelMessage) {
        if request.channel != ChannelId::GLOBAL {
            self.drop_message(request, "channels are listed on GLOBAL");
            return;
        }
        let filters = &message.metadata_filters;
        let channels = self
            .channels
            .values()
            .filter(|channel| {
                let is_of_type = message.type_filter == ChannelType::Unknown as i32
                    || message.type_filter == channel.kind;
                let has_text = |filter: &String| channel.metadata.contains(filter.as_str());
                is_of_type && (filters.is_empty() || filters.iter().any(has_text))
            })
            .map(|channel| ChannelInfo {
                channel_id: channel.id.0,
                channel_type: channel.kind,
                metadata: channel.metadata.clone(),
            })
            .collect();
        let result = FromGateway::ListChannel(ListChannelResultMessage { channels });
        self.send(request.from, request.envelope, &result);
    }

    pub(super) fn disconnect(&mut self, request: &Request, message: DisconnectMessage) {
        let id = ConnId(message.conn_id);
        if self.people.get(request.from).map(|person| person.peer) != Some(Peer::Server) {
            self.drop_message(request, "only servers disconnect others");
        } else if self.people.is_taken(id) {
            self.close_connection(id, CloseReason::Disconnected);
        } else {
            self.drop_message(request, "there is no such connection");
        }
    }

    /// Answers, and tells GLOBAL's owner if that is another.
    pub(super) fn answer_and_tell_global_owner(&mut self, request: &Request, result: &FromGateway) {
        self.send(request.from, request.envelope, result);
        if let Some(owner) = self.owner(ChannelId::GLOBAL)
            && owner != request.from
        {
            self.send(owner, request.envelope.copy(), result);
        }
    }

    /// Makes a channel of a number that is free.
    pub(super) fn make_channel(&mut self, id: ChannelId, kind: i32, owner: Option<ConnId>) {
        self.channels
            .insert(id, Box::new(Channel::new(id, kind, None)));
        self.counters.of_mut(kind).channels += 1;
        self.set_owner(id, owner);
        self.events.push(Event::ChannelMade {
            channel: id,
            channel_type: kind,
        });
    }

    /// Gives a channel its data: as given, or empty of its type's default.
    /// Returns whether that worked.
    pub(super) fn init_data(
        &mut self,
        id: ChannelId,
        data: Option<&Any>,
        options: Option<ChannelDataMergeOptions>,
    ) -> bool {
        let Some(channel) = self.channels.get_mut(&id) else {
            return false;
        };
        let (schema, limits) = (&self.settings.schema, self.settings.data);
        let content = match data {
            Some(data) => {
                let view = AnyView {
                    type_url: &data.type_url,
                    value: &data.value,
                };
                match Content::load(&view, schema, limits) {
                    Some(content) if !data.type_url.is_empty() => Some(content),
                    _ => return false,
                }
            }
            None => self
                .settings
                .types
                .of(channel.kind)
                .data_type
                .as_deref()
                .or_else(|| default_type(channel.kind, self.settings.unreal))
                .and_then(|name| Content::empty(name, schema, limits)),
        };
        channel.data = Some(Data {
            options: options.map(Into::into),
            content,
        });
        channel.fan_out.begin_anew();
        true
    }

    /// Whether a connection has a right in a channel.
    pub(super) fn has_right(&self, who: ConnId, id: ChannelId, level: AclLevel) -> bool {
        match level {
            AclLevel::Nobody => false,
            AclLevel::Owner => self.owner(id) == Some(who),
            AclLevel::OwnerAndGlobalOwner => {
                self.owner(id) == Some(who) || self.owner(ChannelId::GLOBAL) == Some(who)
            }
            AclLevel::Anyone => true,
        }
    }

    pub(super) fn set_owner(&mut self, id: ChannelId, owner: Option<ConnId>) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        let old = std::mem::replace(&mut channel.owner, owner);
        if let Some(person) = old.and_then(|old| self.people.any_mut(old)) {
            person.owned.remove(&id);
        }
        if let Some(person) = owner.and_then(|owner| self.people.any_mut(owner)) {
            person.owned.insert(id);
        }
    }

    /// Takes a channel away without a word to its subscribers.
    pub(super) fn take_channel_away(&mut self, id: ChannelId) {
        let Some(channel) = self.channels.get(&id) else {
            return;
        };
        let (kind, members): (i32, Vec<ConnId>) =
            (channel.kind, channel.subscriptions.keys().collect());
        for member in members {
            self.unsubscribe(id, member);
        }
        self.forget_entity(id);
        self.set_owner(id, None);
        self.channels.remove(&id);
        if kind == ChannelType::Spatial as i32 {
            self.release_empty_block(id);
        }
        self.counters.of_mut(kind).channels -= 1;
        if id.0 < self.settings.spatial_channels_from {
            self.next_channel = id.0;
        }
        self.events.push(Event::ChannelRemoved(id));
    }

    fn tell_and_remove(&mut self, id: ChannelId, message: &Bytes) {
        let Some(channel) = self.channels.get(&id) else {
            return;
        };
        let members: Vec<ConnId> = channel.subscriptions.keys().collect();
        self.send_to_all(members, id, message);
        self.take_channel_away(id);
    }

    /// The next free channel number, from the last one on.
    fn free_channel(&mut self) -> Option<ChannelId> {
        let end = self.settings.spatial_channels_from;
        let from = self.next_channel.clamp(1, end.saturating_sub(1).max(1));
        let id = (from..end)
            .chain(1..from)
            .map(ChannelId)
            .find(|id| !self.channels.contains_key(id))?;
        self.next_channel = id.0;
        Some(id)
    }
}

/// The type that a channel's data begins as where the settings name none: for
/// Unreal games a cell's is always the list of its entities.
fn default_type(kind: i32, unreal: bool) -> Option<&'static str> {
    (unreal && kind == ChannelType::Spatial as i32).then_some("unrealpb.SpatialChannelData")
}
