//! Spatial channels: the cells of the grid, given out to servers in blocks.

use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
    CreateSpatialChannelsResultMessage, QuerySpatialChannelMessage,
    QuerySpatialChannelResultMessage, SpatialChannelsReadyMessage, SpatialRegionsUpdateMessage,
};

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::Place;

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::Envelope;

/// Places whose cells are found for a unit of work.
const PLACES_PER_UNIT: usize = 4;

/// Which server has which block of the grid.
#[derive(Debug, Default)]
pub(super) struct Servers(Vec<Option<ConnId>>);

impl Servers {
    /// The servers that have a block.
    pub(super) fn all(&self) -> impl Iterator<Item = &ConnId> {
        self.0.iter().flatten()
    }
}

impl ChannelManager {
    /// Gives a server the first block that nobody has.
    pub(super) fn create_spatial_channels(
        &mut self,
        request: &Request,
        message: &CreateChannelMessage,
    ) {
        let is_server = self
            .connections
            .get(request.from)
            .map(|connection| connection.peer)
            == Some(Peer::Server);
        if request.channel != ChannelId::GLOBAL
            || message.channel_type != ChannelType::Spatial as i32
            || !is_server
        {
            self.drop_message(request, "only servers create spatial channels, on GLOBAL");
            return;
        }
        if message.metadata.len() > self.budgets_of(request).metadata_bytes {
            self.refuse(request, Budget::Metadata);
            return;
        }
        // Before anything is owned: a request that is refused leaves nothing.
        let (kind, limits) = (ChannelType::Spatial as i32, self.settings.data);
        if self
            .initial_content(kind, message.data.as_ref(), limits)
            .is_err()
        {
            self.drop_message(request, "its data is malformed or too large");
            return;
        }
        let Some(grid) = self.settings.grid.clone() else {
            self.drop_message(request, "there is no grid");
            return;
        };
        self.servers.0.resize(grid.servers() as usize, None);
        let Some(slot) = self.servers.0.iter().position(Option::is_none) else {
            self.drop_message(request, "every part of the grid has its server");
            return;
        };
        let channels: Vec<ChannelId> = grid
            .cells_of(slot as u32)
            .map(|cell| self.spatial_channel(cell))
            .collect();
        self.servers.0[slot] = Some(request.from);
        for &id in &channels {
            self.make_spatial_channel(request, id, message);
        }
        let options = message.sub_options.clone().unwrap_or_default();
        if self.servers.0.iter().all(Option::is_some) {
            self.grid_is_full(request, &options);
        }
        let result = FromGateway::CreateSpatialChannel(CreateSpatialChannelsResultMessage {
            spatial_channel_id: channels.iter().map(|id| id.0).collect(),
            metadata: message.metadata.clone(),
            owner_conn_id: request.from.0,
        });
        self.answer_and_tell_global_owner(request, &result);
        for &id in &channels {
            self.subscribe(request.now, id, request.from, &options);
            self.send_subscribed(request.from, request.envelope.copy(), id, request.from);
        }
        let regions = self.regions();
        self.send(request.from, request.envelope.copy(), &regions);
    }

    pub(super) fn query_spatial(&mut self, request: &Request, asked: &QuerySpatialChannelMessage) {
        if self.settings.grid.is_none() {
            self.drop_message(request, "there is no grid");
            return;
        }
        if request.channel != ChannelId::GLOBAL {
            self.drop_message(request, "places are asked for on GLOBAL");
            return;
        }
        if asked.spatial_info.len() > self.budgets_of(request).places {
            self.refuse(request, Budget::Places);
            return;
        }
        if !self.pays(request, 1 + asked.spatial_info.len() / PLACES_PER_UNIT) {
            return;
        }
        let Some(grid) = &self.settings.grid else {
            return;
        };
        let channel_id = asked
            .spatial_info
            .iter()
            .map(|info| {
                let place = Place {
                    x: info.x,
                    z: info.z,
                };
                grid.cell(place)
                    .map_or(0, |cell| self.spatial_channel(cell).0)
            })
            .collect();
        let result =
            FromGateway::QuerySpatialChannel(QuerySpatialChannelResultMessage { channel_id });
        self.send(request.from, request.envelope, &result);
    }

    pub(super) fn debug_regions(&mut self, request: &Request) {
        if self.settings.development
            && self.settings.grid.is_some()
            && request.channel == ChannelId::GLOBAL
        {
            if !self.pays(request, 1) {
                return;
            }
            let regions = self.regions();
            self.send(request.from, request.envelope, &regions);
        } else {
            self.drop_message(request, "the grid is shown in development only");
        }
    }

    /// A server's block may go to another.
    pub(super) fn release_server(&mut self, id: ConnId) {
        for slot in &mut self.servers.0 {
            if *slot == Some(id) {
                *slot = None;
            }
        }
    }

    /// A cell's channel is gone: a block of which none is left has no server
    /// any more, and may go to another or to the same again.
    pub(super) fn release_empty_block(&mut self, gone: ChannelId) {
        let (Some(grid), Some(cell)) = (
            &self.settings.grid,
            gone.0.checked_sub(self.settings.spatial_channels_from),
        ) else {
            return;
        };
        let slot = grid.server_of(cell);
        let is_left = |cell| self.channels.contains_key(&self.spatial_channel(cell));
        if !grid.cells_of(slot).any(is_left)
            && let Some(server) = self.servers.0.get_mut(slot as usize)
        {
            *server = None;
        }
    }

    /// The channel of a cell.
    pub(super) fn spatial_channel(&self, cell: u32) -> ChannelId {
        ChannelId(self.settings.spatial_channels_from + cell)
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
        if self.channels.contains_key(&id) {
            self.set_owner(id, Some(request.from));
        } else {
            self.make_channel(id, ChannelType::Spatial as i32, Some(request.from));
        }
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        channel.owner_may_return = false;
        channel.metadata.clone_from(&message.metadata);
        let (kind, limits) = (ChannelType::Spatial as i32, self.settings.data);
        let content = self.initial_content(kind, message.data.as_ref(), limits);
        self.begin_data(id, content.ok().flatten(), message.merge_options);
        self.data_has_come(request.now, id);
    }

    /// Every block has its server: they are shown their borders and told.
    fn grid_is_full(&mut self, request: &Request, options: &ChannelSubscriptionOptions) {
        let Some(grid) = self.settings.grid.clone() else {
            return;
        };
        let servers: Vec<ConnId> = self.servers.0.iter().copied().flatten().collect();
        for (slot, &server) in servers.iter().enumerate() {
            for cell in grid.border_of(slot as u32) {
                let id = self.spatial_channel(cell);
                if self.subscribe(request.now, id, server, options) {
                    self.send_subscribed(server, Envelope::from(id), id, server);
                }
            }
        }
        let owner = self.owner(ChannelId::GLOBAL);
        let owner = owner.filter(|owner| !servers.contains(owner));
        for (index, &server) in servers.iter().chain(&owner).enumerate() {
            let ready = FromGateway::SpatialChannelsReady(SpatialChannelsReadyMessage {
                server_index: index as u32,
                server_count: grid.servers(),
            });
            self.send(server, Envelope::from(ChannelId::GLOBAL), &ready);
        }
    }

    fn regions(&self) -> FromGateway {
        let first = self.settings.spatial_channels_from;
        FromGateway::SpatialRegionsUpdate(SpatialRegionsUpdateMessage {
            regions: self
                .settings
                .grid
                .as_ref()
                .map_or(Vec::new(), |grid| grid.regions(first)),
        })
    }
}
