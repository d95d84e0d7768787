//! Handles `LIST_CHANNEL`: which channels there are, by type and by metadata.

use bytes::Bytes;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::list_channel_result_message::ChannelInfo;
use lagometer_protocol::messages::channeldpb::{
    ChannelType, ListChannelMessage, ListChannelResultMessage,
};
use prost::Message;

use crate::core::budget::Budget;
use crate::core::bus::ToConnections;
use crate::core::channel_list;
use crate::core::ids::ChannelId;

use super::ChannelManager;
use super::accounts::BYTES_PER_UNIT;
use super::dispatch::Request;
use super::tables::Tables;

/// The channels that a list is to name.
#[derive(Debug, Default)]
struct Found {
    channels: Vec<ChannelInfo>,
    units: u64,
    /// More than the answer may hold, or than may be looked for.
    is_cut: bool,
}

impl ChannelManager {
    /// Answers with what fits a message. Where that is not all, further
    /// messages follow, without the stub number: whoever waits for one answer
    /// gets one.
    pub(super) fn list_channels(&mut self, request: &Request, message: &ListChannelMessage) {
        let Some(found) = self.list(request, message) else {
            return;
        };
        let mut envelope = request.envelope;
        for channels in channel_list::divide(found.channels) {
            let result = FromGateway::ListChannel(ListChannelResultMessage { channels });
            self.tables.send(request.from, envelope, &result);
            envelope = envelope.copy();
        }
    }

    /// A shard's part of the answer, which the edge puts together once it has all: there is
    /// one even for whoever is refused. It costs what an answer does.
    pub(super) fn list_part(&mut self, request: &Request, message: Option<&ListChannelMessage>) {
        let found = message.and_then(|message| self.list(request, message));
        let channels = found.map(|found| {
            let channels = found.channels;
            Bytes::from(ListChannelResultMessage { channels }.encode_to_vec())
        });
        self.tables
            .charge_cause(channels.as_ref().map_or(0, Bytes::len), 1);
        let Some(connection) = self.tables.connections.get(request.from) else {
            return;
        };
        let part = ToConnections::ListPart {
            to: request.from,
            channels,
        };
        self.tables.out.push(connection.side, part);
    }

    fn list(&mut self, request: &Request, message: &ListChannelMessage) -> Option<Found> {
        if request.channel != ChannelId::GLOBAL {
            self.tables
                .drop_message(request, "channels are listed on GLOBAL");
            return None;
        }
        let budgets = self.tables.budgets_of(request);
        let filters = &message.metadata_filters;
        // Counting bytes alone would let empty filters through by the thousand.
        let is_too_much = filters.len() > budgets.filters
            || filters.iter().map(String::len).sum::<usize>() > budgets.filter_bytes;
        if is_too_much {
            self.tables.refuse(request, Budget::Filters);
            return None;
        }
        let units = self.tables.may_list(request)?;
        let found = self
            .tables
            .find_channels(message, budgets.list_answer_bytes, units);
        self.tables.listed(request, found.units);
        if found.is_cut {
            self.tables.over_budget(request, Budget::ListAnswer);
        }
        Some(found)
    }
}

impl Tables {
    fn find_channels(&self, asked: &ListChannelMessage, most_bytes: usize, units: u64) -> Found {
        let mut found = Found::default();
        let mut bytes = 0;
        let is_home = self.settings.shard.is_home();
        for channel in self.channels.values() {
            if !is_home && channel.id == ChannelId::GLOBAL {
                continue;
            }
            if found.units >= units {
                found.is_cut = true;
                break;
            }
            found.units += 1;
            let is_of_type = asked.type_filter == ChannelType::Unknown as i32
                || asked.type_filter == channel.kind;
            if !is_of_type {
                continue;
            }
            let filters = &asked.metadata_filters;
            let text_units = 1 + channel.metadata.len() / BYTES_PER_UNIT;
            found.units += (text_units * filters.len()) as u64;
            let has_text = |filter: &String| channel.metadata.contains(filter.as_str());
            if !filters.is_empty() && !filters.iter().any(has_text) {
                continue;
            }
            let info = ChannelInfo {
                channel_id: channel.id.0,
                channel_type: channel.kind,
                metadata: channel.metadata.clone(),
            };
            let more = channel_list::entry_bytes(&info);
            if bytes + more > most_bytes {
                found.is_cut = true;
                break;
            }
            bytes += more;
            found.channels.push(info);
        }
        found
    }
}
