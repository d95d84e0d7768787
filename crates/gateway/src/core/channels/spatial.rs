//! Spatial channels: the cells of the grid, given out to servers in blocks.

use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelType, CreateChannelMessage, CreateSpatialChannelsResultMessage,
    QuerySpatialChannelMessage, QuerySpatialChannelResultMessage, SpatialChannelsReadyMessage,
    SpatialRegionsUpdateMessage,
};

use serde::{Deserialize, Serialize};

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::Position;
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::Envelope;
use super::shard_messages::ShardMessage;
use super::subscriptions::Subscriptions;
use super::tables::Tables;

/// A block that is to have its cells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NewBlock {
    pub(super) block: u32,
    /// Of the server that is to have it.
    pub(super) request: Request,
    #[serde(with = "super::protobuf")]
    pub(super) message: CreateChannelMessage,
}

/// Places whose cells are found for a unit of work.
const PLACES_PER_UNIT: usize = 4;

impl ChannelManager {
    /// Gives a server the first block that nobody has.
    pub(super) fn create_spatial_channels(
        &mut self,
        request: &Request,
        message: CreateChannelMessage,
    ) {
        let is_server = self
            .tables
            .connections
            .get(request.from)
            .map(|connection| connection.peer)
            == Some(Peer::Server);
        if request.channel != ChannelId::GLOBAL
            || message.channel_type != ChannelType::Spatial as i32
            || !is_server
        {
            self.tables
                .drop_message(request, "only servers create spatial channels, on GLOBAL");
            return;
        }
        if message.metadata.len() > self.tables.budgets_of(request).metadata_bytes {
            self.tables.refuse(request, Budget::Metadata);
            return;
        }
        // Before anything is owned: a request that is refused leaves nothing.
        let (kind, limits) = (ChannelType::Spatial as i32, self.tables.settings.data);
        if self
            .tables
            .initial_content(kind, message.data.as_ref(), limits)
            .is_err()
        {
            self.tables
                .drop_message(request, "its data is malformed or too large");
            return;
        }
        let Some(grid) = self.tables.settings.grid else {
            self.tables.drop_message(request, "there is no grid");
            return;
        };
        let Some(block) = self.blocks.take(grid.servers(), request.from) else {
            self.tables
                .drop_message(request, "every part of the grid has its server");
            return;
        };
        let shard = self.tables.settings.shard_map().of_block(block);
        let new = NewBlock {
            block,
            request: *request,
            message,
        };
        self.send_to_shard(shard, ShardMessage::MakeBlock(new));
    }

    /// Makes the cells of a block for the server that has got it.
    pub(super) fn make_block(&mut self, new: NewBlock) {
        let request = new.request.at(self.tables.now);
        let (block, server) = (new.block, request.from);
        if self.tables.connections.get(server).is_none() {
            self.send_to_shard(ShardId::HOME, ShardMessage::BlockEmpty { block, server });
            return;
        }
        let Some(grid) = self.tables.settings.grid else {
            return;
        };
        let channels: Vec<ChannelId> = grid
            .cells_of(block)
            .map(|cell| self.tables.spatial_channel(cell))
            .collect();
        self.blocks.made_for(block, server);
        for &id in &channels {
            self.make_spatial_channel(&request, id, &new.message);
        }
        let options = new.message.sub_options.clone().unwrap_or_default();
        let result = FromGateway::CreateSpatialChannel(CreateSpatialChannelsResultMessage {
            spatial_channel_id: channels.iter().map(|id| id.0).collect(),
            metadata: new.message.metadata.clone(),
            owner_conn_id: server.0,
        });
        self.send_to_shard(ShardId::HOME, ShardMessage::BlockMade(new));
        self.tables
            .answer_and_notify_global_owner(&request, &result);
        for &id in &channels {
            self.subscriptions
                .subscribe(&mut self.tables, request.now, id, server, &options);
            self.tables
                .send_subscribed(server, request.envelope.copy(), id, server);
        }
        let regions = self.regions();
        self.tables.send(server, request.envelope.copy(), &regions);
    }

    pub(super) fn query_spatial(&mut self, request: &Request, asked: &QuerySpatialChannelMessage) {
        if self.tables.settings.grid.is_none() {
            self.tables.drop_message(request, "there is no grid");
            return;
        }
        if request.channel != ChannelId::GLOBAL {
            self.tables
                .drop_message(request, "places are asked for on GLOBAL");
            return;
        }
        if asked.spatial_info.len() > self.tables.budgets_of(request).places {
            self.tables.refuse(request, Budget::Places);
            return;
        }
        if !self
            .tables
            .pays(request, 1 + asked.spatial_info.len() / PLACES_PER_UNIT)
        {
            return;
        }
        let Some(grid) = &self.tables.settings.grid else {
            return;
        };
        let channel_id = asked
            .spatial_info
            .iter()
            .map(|info| {
                let position = Position {
                    x: info.x,
                    z: info.z,
                };
                grid.cell(position)
                    .map_or(0, |cell| self.tables.spatial_channel(cell).0)
            })
            .collect();
        let result =
            FromGateway::QuerySpatialChannel(QuerySpatialChannelResultMessage { channel_id });
        self.tables.send(request.from, request.envelope, &result);
    }

    pub(super) fn debug_regions(&mut self, request: &Request) {
        if self.tables.settings.development
            && self.tables.settings.grid.is_some()
            && request.channel == ChannelId::GLOBAL
        {
            if !self.tables.pays(request, 1) {
                return;
            }
            let regions = self.regions();
            self.tables.send(request.from, request.envelope, &regions);
        } else {
            self.tables
                .drop_message(request, "the grid is shown in development only");
        }
    }

    /// A server's block may go to another.
    pub(super) fn release_server(&mut self, id: ConnId) {
        self.blocks.release(id);
    }

    /// A cell's channel is gone: a block of which none is left has no server
    /// any more, and may go to another or to the same again.
    pub(super) fn release_empty_block(&mut self, gone: ChannelId) {
        let (Some(grid), Some(cell)) = (
            self.tables.settings.grid,
            gone.0
                .checked_sub(self.tables.settings.spatial_channels_from),
        ) else {
            return;
        };
        let block = grid.server_of(cell);
        let is_left = |cell| {
            self.tables
                .channels
                .contains_key(self.tables.spatial_channel(cell))
        };
        if !grid.cells_of(block).any(is_left)
            && let Some(server) = self.blocks.none_is_left(block)
        {
            self.send_to_shard(ShardId::HOME, ShardMessage::BlockEmpty { block, server });
        }
    }

    /// Makes one cell's channel. One that is there, because its server died,
    /// keeps its subscribers and gets another owner. Its data begins anew: the
    /// entities of the old server may be gone.
    fn make_spatial_channel(
        &mut self,
        request: &Request,
        id: ChannelId,
        message: &CreateChannelMessage,
    ) {
        if self.tables.channels.contains_key(id) {
            self.tables.set_owner(id, Some(request.from));
        } else {
            self.make_channel(id, ChannelType::Spatial as i32, Some(request.from));
        }
        let Some(channel) = self.tables.channels.get_mut(id) else {
            return;
        };
        channel.owner_may_return = false;
        channel.metadata.clone_from(&message.metadata);
        let (kind, limits) = (ChannelType::Spatial as i32, self.tables.settings.data);
        let content = self
            .tables
            .initial_content(kind, message.data.as_ref(), limits);
        self.tables
            .begin_data(id, content.ok().flatten(), message.merge_options);
        Subscriptions::data_has_come(&mut self.tables, request.now, id);
    }

    /// A block's cells are there. Once those of all are, servers are shown their borders.
    pub(super) fn block_made(&mut self, last: NewBlock) {
        if self.blocks.are_made(last.block, last.request.from) {
            let servers = self.blocks.servers().collect();
            let message = ShardMessage::ShowBorders { last, servers };
            self.send_to_shard(ShardId::HOME, message);
        }
    }

    /// Subscribes servers to this shard's cells beyond their own, then has the next shard do so.
    pub(super) fn show_borders(&mut self, last: NewBlock, servers: Vec<ConnId>) {
        let Some(grid) = self.tables.settings.grid else {
            return;
        };
        let now = self.tables.now;
        let options = last.message.sub_options.clone().unwrap_or_default();
        for (block, &server) in (0..).zip(&servers) {
            for cell in grid.border_of(block) {
                let id = self.tables.spatial_channel(cell);
                if self
                    .subscriptions
                    .subscribe(&mut self.tables, now, id, server, &options)
                {
                    self.tables
                        .send_subscribed(server, Envelope::from(id), id, server);
                }
            }
        }
        self.show_next_borders(self.tables.settings.shard.id, last, servers);
    }

    /// Has the shard after one show its borders, if there is one.
    pub(super) fn show_next_borders(
        &mut self,
        after: ShardId,
        last: NewBlock,
        servers: Vec<ConnId>,
    ) {
        match self.tables.settings.shard.count.after(after) {
            Some(next) => self.send_to_shard(next, ShardMessage::ShowBorders { last, servers }),
            None => self.send_to_shard(ShardId::HOME, ShardMessage::BordersShown { servers }),
        }
    }

    /// Servers see their borders: they are notified that the world is ready.
    pub(super) fn borders_shown(&mut self, servers: &[ConnId]) {
        let Some(grid) = self.tables.settings.grid else {
            return;
        };
        let owner = self.tables.owner(ChannelId::GLOBAL);
        let owner = owner.filter(|owner| !servers.contains(owner));
        for (index, &server) in servers.iter().chain(&owner).enumerate() {
            let ready = FromGateway::SpatialChannelsReady(SpatialChannelsReadyMessage {
                server_index: index as u32,
                server_count: grid.servers(),
            });
            self.tables
                .send(server, Envelope::from(ChannelId::GLOBAL), &ready);
        }
    }

    fn regions(&self) -> FromGateway {
        let first = self.tables.settings.spatial_channels_from;
        FromGateway::SpatialRegionsUpdate(SpatialRegionsUpdateMessage {
            regions: self
                .tables
                .settings
                .grid
                .as_ref()
                .map_or(Vec::new(), |grid| grid.regions(first)),
        })
    }
}

impl Tables {
    /// The channel of a cell.
    pub(super) fn spatial_channel(&self, cell: u32) -> ChannelId {
        ChannelId(self.settings.spatial_channels_from + cell)
    }
}
