//! Messages for those who see a cell or one around it, each once.
//!
//! The cells around one may be of several shards: each sends to those who see its own and
//! have not been sent it yet, and hands the rest on to the next.

use std::collections::BTreeSet;

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::ChannelType;
use lagometer_protocol::{Audience, Broadcast, Excluded};
use serde::{Deserialize, Serialize};

use crate::core::ids::{ChannelId, ConnId};
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::dispatch::Request;
use super::shard_messages::ShardMessage;
use super::tables::Tables;

/// A message for those who see the cells around one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AdjacentForward {
    /// On the cell in the middle.
    request: Request,
    message: Bytes,
    /// Who does not get it.
    addressee: ConnId,
    /// Who was sent it by other shards.
    sent: BTreeSet<ConnId>,
    /// The shards that have not had their turn.
    left: Vec<ShardId>,
}

impl ChannelManager {
    /// Forwards a server's message on a cell to those who see it or one around it.
    pub(super) fn forward_around(&mut self, request: &Request, addressee: ConnId, message: Bytes) {
        if !(self.tables).is_of_kind(request.channel, ChannelType::Spatial) {
            return;
        }
        let map = self.tables.settings.shard_map();
        let here = self.tables.settings.shard.id;
        let around = self.tables.around(request.channel).into_iter();
        let shards: BTreeSet<ShardId> = around.map(|cell| map.shard_of(cell)).collect();
        let forward = AdjacentForward {
            request: *request,
            message,
            addressee,
            sent: BTreeSet::new(),
            left: shards.into_iter().filter(|&shard| shard != here).collect(),
        };
        self.forward_adjacent(forward);
    }

    /// Does this shard's part.
    pub(super) fn forward_adjacent(&mut self, mut forward: AdjacentForward) {
        let request = forward.request.at(self.tables.now);
        let flags = Broadcast(request.envelope.broadcast);
        let Audience::Adjacent(excluded) = flags.audience() else {
            return;
        };
        let mut to = self.tables.adjacent(&request, excluded, forward.addressee);
        to.retain(|id| !forward.sent.contains(id));
        forward.sent.extend(&to);
        let to = to.into_iter().collect();
        self.tables.forward(&request, to, &forward.message);
        self.forward_on(forward);
    }

    /// Hands the rest on to the next shard.
    pub(super) fn forward_on(&mut self, mut forward: AdjacentForward) {
        if let Some(next) = forward.left.pop() {
            self.send_to_shard(next, ShardMessage::ForwardAdjacent(forward));
        }
    }
}

impl Tables {
    /// The cells around one.
    fn around(&self, cell: ChannelId) -> Vec<ChannelId> {
        let first = self.settings.spatial_channels_from;
        let (Some(grid), Some(cell)) = (&self.settings.grid, cell.0.checked_sub(first)) else {
            return Vec::new();
        };
        let around = grid.neighbours(cell);
        around.map(|cell| ChannelId(first + cell)).collect()
    }

    /// The subscribers of this shard's cells around one.
    fn adjacent(
        &self,
        request: &Request,
        excluded: Excluded,
        addressee: ConnId,
    ) -> BTreeSet<ConnId> {
        let centre = (!excluded.owner).then_some(request.channel);
        let cells = self.around(request.channel).into_iter().chain(centre);
        cells
            .filter_map(|id| self.channels.get(id))
            .flat_map(|channel| channel.subscribers.ids())
            .filter(|&id| {
                id != addressee
                    && !(excluded.sender && id == request.from)
                    && !self.is_excluded(id, excluded)
            })
            .collect()
    }
}
