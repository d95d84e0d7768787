//! From a connection's messages to what each asks for.

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::MessageType;
use lagometer_protocol::{MessagePack, ToGateway};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::bus::CheckedMessages;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId};

use super::ChannelManager;
use super::outgoing::Envelope;
use super::tables::Tables;

/// Who asks, and how it is to be answered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) now: Time,
    pub(super) from: ConnId,
    pub(super) channel: ChannelId,
    pub(super) envelope: Envelope,
    pub(super) msg_type: u32,
}

impl Request {
    /// The same, taken up by another shard, which has a clock of its own.
    pub(super) fn at(self, now: Time) -> Self {
        Self { now, ..self }
    }
}

impl ChannelManager {
    pub(super) fn messages(&mut self, now: Time, from: ConnId, messages: &CheckedMessages) {
        self.because_of(now, from, |side| side.messages_of(now, from, messages));
    }

    fn messages_of(&mut self, now: Time, from: ConnId, messages: &CheckedMessages) {
        for message in messages.iter() {
            // One message may be what ends its sender.
            if self.tables.connections.get(from).is_none() {
                return;
            }
            self.message(now, from, messages.bodies(), &message);
        }
    }

    fn message(&mut self, now: Time, from: ConnId, bodies: &Bytes, message: &MessagePack<'_>) {
        let channel = ChannelId(message.channel_id);
        let request = Request {
            now,
            from,
            channel,
            envelope: Envelope {
                channel,
                stub_id: message.stub_id,
                broadcast: message.broadcast,
            },
            msg_type: message.msg_type,
        };
        // What is asked on a cell may concern channels of any shard: its own knows of the cell.
        if !self.tables.channels.contains_key(channel) && self.tables.is_here(channel) {
            self.tables
                .drop_message(&request, "there is no such channel");
            return;
        }
        if message.msg_type == MessageType::ChannelDataUpdate as u32 {
            self.data_update(&request, bodies, message.body);
            return;
        }
        if message.is_user_space() {
            self.user_space(&request, message.body);
            return;
        }
        let asked = self.decode(&request, message);
        // Only such lists are put together by an edge.
        let is_of_shards = channel == ChannelId::GLOBAL && !self.tables.settings.shard.is_whole();
        match asked {
            Some(ToGateway::ListChannel(asked)) if is_of_shards => {
                self.list_part(&request, Some(&asked));
            }
            Some(asked) => self.asked(&request, asked),
            None if is_of_shards && message.msg_type == MessageType::ListChannel as u32 => {
                self.list_part(&request, None);
            }
            None => {}
        }
    }

    /// What a message asks for; `None` if it may not, or asks for nothing there is.
    fn decode(&mut self, request: &Request, message: &MessagePack<'_>) -> Option<ToGateway> {
        let values = |most| ToGateway::count_values(message, most);
        if !self.tables.may_decode(request, message.body.len(), values) {
            return None;
        }
        let asked = ToGateway::decode(message);
        if asked.is_err() {
            let why = "there is no such message, or it is malformed";
            self.tables.drop_message(request, why);
        }
        asked.ok()
    }

    fn asked(&mut self, request: &Request, asked: ToGateway) {
        match asked {
            ToGateway::CreateChannel(message) => self.create_channel(request, message),
            ToGateway::RemoveChannel(message) => self.remove_channel(request, message),
            ToGateway::ListChannel(message) => self.list_channels(request, &message),
            ToGateway::SubToChannel(message) => self.sub_to_channel(request, &message),
            ToGateway::UnsubFromChannel(message) => self.unsub_from_channel(request, message),
            ToGateway::Disconnect(message) => self.disconnect(request, message),
            ToGateway::CreateSpatialChannel(message) => {
                self.create_spatial_channels(request, message);
            }
            ToGateway::QuerySpatialChannel(message) => self.query_spatial(request, &message),
            ToGateway::UpdateSpatialInterest(message) => self.update_interest(request, &message),
            ToGateway::CreateEntityChannel(message) => self.create_entity(request, message),
            ToGateway::EntityGroupAdd(message) => self.group_add(request, &message),
            ToGateway::EntityGroupRemove(message) => self.group_remove(request, &message),
            ToGateway::DebugGetSpatialRegions(_) => self.debug_regions(request),
            // Both went their own ways before.
            ToGateway::Auth(_) | ToGateway::ChannelDataUpdate(_) => {}
        }
    }
}

impl Tables {
    /// Whether a channel is this shard's, if it is there.
    pub(super) fn is_here(&self, channel: ChannelId) -> bool {
        let shard = self.settings.shard;
        channel == ChannelId::GLOBAL || self.settings.shard_map().shard_of(channel) == shard.id
    }

    /// Counts and reports a message that leads to nothing.
    pub(super) fn drop_message(&mut self, request: &Request, why: &'static str) {
        self.telemetry.counters.dropped += 1;
        self.telemetry.event(Event::Dropped {
            from: request.from,
            channel: request.channel,
            msg_type: request.msg_type,
            why,
        });
    }
}
