//! What shards of one gateway ask of each other.
//!
//! Where something concerns channels of several shards, each does its own part and hands the
//! rest on. What is [sent](ChannelManager::send_to_shard) to the shard that sends it is done at
//! once: so a gateway of one shard goes the same way, without leaving the call.
//!
//! Nodes of two versions do not read each other's: whoever changes one raises
//! [`PROTOCOL`](crate::nodes::PROTOCOL).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::core::bus::ToConnections;
use crate::core::ids::{ChannelId, ConnId, SideId};
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::adjacent::AdjacentForward;
use super::crossing::Crossing;
use super::dispatch::Request;
use super::entity::NewEntity;
use super::grouping::GroupChange;
use super::handover::CellChange;
use super::shard_links::Outgoing;
use super::spatial::NewBlock;
use super::tables::Tables;
use super::unreal::Spawn;

/// What one shard asks of another, or answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ShardMessage {
    /// To the shard of a block: a server is to have its cells.
    MakeBlock(NewBlock),
    /// Home is notified: the block's cells are there.
    BlockMade(NewBlock),
    /// Home is notified: none of the cells that a server had of a block is left.
    BlockEmpty { block: u32, server: ConnId },
    /// To all in turn, once every block is made: servers see their borders from now on.
    ShowBorders {
        last: NewBlock,
        servers: Vec<ConnId>,
    },
    /// Home is notified: they do.
    BordersShown { servers: Vec<ConnId> },
    /// To the shard of a cell: an entity was made in it.
    PlaceEntity(NewEntity),
    /// The answer, to the entity's shard.
    EntityPlaced(NewEntity),
    /// Home is notified: there is such an entity.
    EntityMade(ChannelId),
    /// Home is notified: there is no such entity any more.
    EntityGone(ChannelId),
    /// To all in turn, at last to home: entities are to be grouped, or no longer.
    ChangeGroup(GroupChange),
    /// Home is notified: an entity has crossed the edge of a cell.
    Moved {
        entity: ChannelId,
        change: CellChange,
    },
    /// To the shards of the entities that go along, in turn: which objects are they?
    CollectObjects(Crossing),
    /// To the shard of the cell that they leave: who sees them?
    LeaveCell(Crossing),
    /// To the shard of the cell that they enter.
    EnterCell(Crossing),
    /// To the shard of the cell that they have left.
    RemoveFromCell(Crossing),
    /// To the shard of a cell: an entity is gone that it may list.
    ForgetInCell { cell: ChannelId, entity: ChannelId },
    /// To the shards of the entities, in turn: they have another owner, and the last shows
    /// them to those who see the cell.
    ShowCrossing(Crossing),
    /// To all but the last of them: they have been shown.
    SubscribeToCrossed(Crossing),
    /// Home is notified: a shard has done its part of a handover, after which these are in the
    /// new cell; or nothing more comes of it.
    Crossed {
        number: u64,
        went: BTreeSet<ChannelId>,
        is_over: bool,
    },
    /// To the shard of a cell: something is spawned there. Comes back where there is no such
    /// cell.
    Spawn(Spawn),
    /// To an entity's shard: which object it is.
    SetObject {
        entity: ChannelId,
        object: Vec<u8>,
        spawned_in: ChannelId,
    },
    /// To an entity's shard: it was destroyed.
    Destroyed(ChannelId),
    /// To an entity's shard: it was removed from a cell's data.
    RemovedFromCell { request: Request, entity: ChannelId },
    /// To all: a server did not come back in time for what it left.
    RecoveryOver(ConnId),
    /// To the other shards around a cell, in turn: a message for those who see it.
    ForwardAdjacent(AdjacentForward),
}

/// A message, and whose request it comes of: what follows is at the cost of that connection,
/// whichever shard does it.
type Caused = (Option<ConnId>, ShardMessage);

impl ChannelManager {
    /// Sends a message to a shard; one to itself is handled before this returns.
    pub(super) fn send_to_shard(&mut self, to: ShardId, message: ShardMessage) {
        if to == self.tables.settings.shard.id {
            self.on_shard_message(message);
        } else {
            self.tables.send_to_other_shard(to, &message);
        }
    }

    /// Sends a message to the shard that has a channel.
    pub(super) fn send_to_shard_of(&mut self, channel: ChannelId, message: ShardMessage) {
        let shard = self.tables.settings.shard_map().shard_of(channel);
        self.send_to_shard(shard, message);
    }

    /// A connection manager has passed on what another shard has for this one.
    pub(super) fn relayed(&mut self, edge: SideId, from: ShardId, frame: &[u8]) {
        let tables = &mut self.tables;
        let count = tables.settings.shard.count;
        if from == tables.settings.shard.id || from.0 >= count.get() {
            return;
        }
        let edges = tables.out.sides();
        let taken = tables.links.take(tables.now, from, edge, frame, edges);
        tables.relay(taken.frames);
        if taken.begun_anew {
            self.shard_begins_anew(from);
        }
        for lost in taken.lost {
            if let Ok((_, message)) = postcard::from_bytes::<Caused>(&lost) {
                self.lost_with_shard(from, message);
            }
        }
        // One that cannot be read is of no shard of this version.
        if let Some(message) = taken.message
            && let Ok((cause, message)) = postcard::from_bytes::<Caused>(&message)
        {
            match cause {
                Some(cause) => {
                    let now = self.tables.now;
                    self.because_of(now, cause, |side| side.on_shard_message(message));
                }
                None => self.on_shard_message(message),
            }
        }
    }

    /// Another shard has lost all it had.
    fn shard_begins_anew(&mut self, shard: ShardId) {
        let map = self.tables.settings.shard_map();
        if self.tables.settings.shard.is_home() {
            self.groups.forget(|id| map.shard_of(id) == shard);
            self.blocks.forget(|block| map.of_block(block) == shard);
            self.handovers.forget(|id| map.shard_of(id) == shard);
            self.begin_crossings();
        }
        if shard == ShardId::HOME {
            self.abandon_recoveries();
            for id in self.tables.entities() {
                self.send_to_shard(ShardId::HOME, ShardMessage::EntityMade(id));
            }
        }
    }

    /// An entity is gone, and with it a move that waits.
    fn entity_gone(&mut self, id: ChannelId) {
        self.groups.remove_entity(id);
        if let Some(cell) = self.handovers.cancel(id) {
            self.forget_in_cell(cell, id);
        }
    }

    /// What was sent to a shard is lost with it. Whoever waits for what comes of it learns that
    /// nothing does.
    fn lost_with_shard(&mut self, lost_shard: ShardId, message: ShardMessage) {
        match message {
            ShardMessage::CollectObjects(crossing)
            | ShardMessage::LeaveCell(crossing)
            | ShardMessage::EnterCell(crossing)
            | ShardMessage::RemoveFromCell(crossing)
            | ShardMessage::ShowCrossing(crossing)
            | ShardMessage::SubscribeToCrossed(crossing) => self.ends_early(&crossing),
            ShardMessage::PlaceEntity(entity) => self.entity_placed(entity),
            // Those who have their turn after it are to have it all the same.
            ShardMessage::ShowBorders { last, servers } => {
                self.show_next_borders(lost_shard, last, servers);
            }
            ShardMessage::ForwardAdjacent(forward) => self.forward_on(forward),
            // As where there is no such cell.
            ShardMessage::Spawn(spawn) => self.spawned_without_cell(spawn),
            _ => {}
        }
    }

    fn on_shard_message(&mut self, message: ShardMessage) {
        match message {
            ShardMessage::MakeBlock(block) => self.make_block(block),
            ShardMessage::BlockMade(block) => self.block_made(block),
            ShardMessage::BlockEmpty { block, server } => self.blocks.empty(block, server),
            ShardMessage::ShowBorders { last, servers } => self.show_borders(last, servers),
            ShardMessage::BordersShown { servers } => self.borders_shown(&servers),
            ShardMessage::PlaceEntity(entity) => self.place_entity(entity),
            ShardMessage::EntityPlaced(entity) => self.entity_placed(entity),
            ShardMessage::EntityMade(id) => self.groups.add_entity(id),
            ShardMessage::EntityGone(id) => self.entity_gone(id),
            ShardMessage::ChangeGroup(change) => self.change_group(change),
            ShardMessage::Moved { entity, change } => self.moved(entity, change),
            ShardMessage::CollectObjects(crossing) => self.collect_objects(crossing),
            ShardMessage::LeaveCell(crossing) => self.leave_cell(crossing),
            ShardMessage::EnterCell(crossing) => self.enter_cell(crossing),
            ShardMessage::ForgetInCell { cell, entity } => self.remove_entity_from(cell, entity.0),
            ShardMessage::RemoveFromCell(crossing) => self.remove_from_cell(&crossing),
            ShardMessage::ShowCrossing(crossing) => self.show_crossing(crossing),
            ShardMessage::SubscribeToCrossed(crossing) => self.subscribe_to_crossed(&crossing),
            ShardMessage::Crossed {
                number,
                went,
                is_over,
            } => self.crossed(number, went, is_over),
            ShardMessage::Spawn(spawn) => self.spawned(spawn),
            ShardMessage::SetObject {
                entity,
                object,
                spawned_in,
            } if self.tables.channels.contains_key(entity) => {
                self.set_object(entity, &object, spawned_in);
            }
            ShardMessage::SetObject {
                entity,
                object,
                spawned_in,
            } => self.is_spawned_early(entity, object, spawned_in),
            ShardMessage::Destroyed(id) => self.destroyed(id),
            ShardMessage::RemovedFromCell { request, entity } => {
                self.removed_from_cell(&request, entity);
            }
            ShardMessage::RecoveryOver(id) => self.abandon_recovery(id),
            ShardMessage::ForwardAdjacent(forward) => self.forward_adjacent(forward),
        }
    }
}

impl Tables {
    fn send_to_other_shard(&mut self, to: ShardId, message: &ShardMessage) {
        let caused = (self.cause_id(), message);
        // Writing to memory does not fail.
        let message = postcard::to_allocvec(&caused).unwrap_or_default();
        self.charge_cause(message.len(), 0);
        let frame = (self.links).send(self.now, to, message.into(), self.out.sides());
        self.relay(frame);
    }

    /// An edge takes part from now on: it can pass on what shards have for each other.
    pub(super) fn greet_shards_through(&mut self, edge: SideId) {
        let shard = self.settings.shard;
        for to in shard.count.all().filter(|&to| to != shard.id) {
            let greeting = self.links.greeting(self.now, to, edge);
            self.relay([greeting]);
        }
    }

    /// Hands frames for other shards to the edges that are to pass them on.
    pub(super) fn relay(&mut self, frames: impl IntoIterator<Item = Outgoing>) {
        for (edge, to, frame) in frames {
            self.out.push(edge, ToConnections::Relay { to, frame });
        }
    }
}
