//! Entities that cross the edge of a cell: how that is noticed, in the updates of their data.
//! What follows is a [crossing](super::crossing).

use lagometer_protocol::merge::State;
use lagometer_protocol::merge::{Key, Removal};
use lagometer_protocol::messages::channeldpb::ChannelType;
use lagometer_protocol::wire::{Value, WireType, find};
use serde::{Deserialize, Serialize};

use crate::core::ids::{ChannelId, Peer};
use crate::core::settings::Position;
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::dispatch::Request;
use super::shard_messages::ShardMessage;
use super::unreal::ENTITIES;

/// Where an entity's location may be found in its data, by the names of the
/// fields; the first that is there counts.
const LOCATIONS: [&[&str]; 2] = [
    &["actorState", "replicatedMovement", "location"],
    &["sceneComponentState", "relativeLocation"],
];

/// The components of a location that lie on the ground. The game's y is the
/// ground's z.
const GROUND: [u32; 2] = [1, 2];

/// An entity's move, as an update reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    from: Position,
    to: Position,
}

/// An entity's move from one cell to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CellChange {
    pub(super) from: ChannelId,
    pub(super) to: ChannelId,
    /// The client that has moved it, or on whose behalf it was.
    pub(super) context: u32,
}

impl ChannelManager {
    /// Looks in an update that is about to be merged for a move.
    pub(super) fn before_update(&self, request: &Request, value: &[u8]) -> Option<Move> {
        self.tables.settings.grid.as_ref()?;
        let channel = self.tables.channels.get(request.channel)?;
        let state = &channel.content()?.state;
        if !channel.is(ChannelType::Entity) {
            return None;
        }
        for names in LOCATIONS {
            let Some(path) = state.data_type()?.path(names) else {
                continue;
            };
            let Some(from) = stored(state, &path) else {
                continue;
            };
            let Ok(component) = moved(value, &path) else {
                continue;
            };
            if let [None, None] = component {
                continue;
            }
            let to = Position {
                x: component[0].unwrap_or(from.x),
                z: component[1].unwrap_or(from.z),
            };
            return (to != from).then_some(Move { from, to });
        }
        None
    }

    /// What an update leads to beside its being passed on.
    pub(super) fn after_update(
        &mut self,
        request: &Request,
        context: u32,
        moved: Option<Move>,
        removed: &[Removal],
    ) {
        let by_client = self
            .tables
            .connections
            .get(request.from)
            .map(|connection| connection.peer)
            == Some(Peer::Client);
        if let Some(channel) = self.tables.channels.get_mut(request.channel)
            && let Some(entity) = &mut channel.entity
        {
            entity.context = if by_client { request.from.0 } else { context };
        }
        if let Some(change) = moved.and_then(|moved| self.cell_change(request.channel, moved)) {
            let entity = request.channel;
            self.send_to_shard(ShardId::HOME, ShardMessage::Moved { entity, change });
        }
        if !removed.is_empty()
            && self
                .tables
                .is_of_kind(request.channel, ChannelType::Spatial)
        {
            for removal in removed.iter().filter(|removal| removal.field == ENTITIES) {
                if let Key::Number(id) = removal.key
                    && let Ok(id) = u32::try_from(id)
                {
                    let entity = ChannelId(id);
                    let request = *request;
                    let message = ShardMessage::RemovedFromCell { request, entity };
                    self.send_to_shard_of(entity, message);
                }
            }
        }
    }

    /// An entity was removed from a cell's data: its channel goes with it.
    pub(super) fn removed_from_cell(&mut self, request: &Request, entity: ChannelId) {
        if self.tables.is_of_kind(entity, ChannelType::Entity)
            && self.may_take_away(&request.at(self.tables.now), entity)
        {
            self.take_channel_away(entity);
        }
    }

    /// The cells between which an entity has moved, if it has left one.
    fn cell_change(&self, entity: ChannelId, moved: Move) -> Option<CellChange> {
        let grid = self.tables.settings.grid.as_ref()?;
        let (from, to) = (grid.cell(moved.from)?, grid.cell(moved.to)?);
        let channel = self.tables.channels.get(entity)?;
        let context = channel.entity.as_ref().map_or(0, |entity| entity.context);
        (from != to).then(|| CellChange {
            from: self.tables.spatial_channel(from),
            to: self.tables.spatial_channel(to),
            context,
        })
    }

    /// Whether who removes an entity from a cell's data takes its channel with it: a
    /// server does, a client where it may remove the channel.
    fn may_take_away(&mut self, request: &Request, id: ChannelId) -> bool {
        let Some(channel) = self.tables.channels.get(id) else {
            return false;
        };
        let level = self.tables.settings.types.of(channel.kind).acl.remove;
        let may =
            self.tables.is_server(request.from) || self.tables.has_right(request.from, id, level);
        if !may {
            self.tables
                .drop_message(request, "it may not remove the entity's channel");
        }
        may
    }

    /// One of several shards: an entity has left a cell before it was known which object it is.
    /// What spawned it may have come before, and be on its way from the cell's shard.
    pub(super) fn leaves_unknown(&mut self, id: ChannelId) {
        let is_whole = self.tables.settings.shard.is_whole();
        let channel = self.tables.channels.get_mut(id);
        if let Some(entity) = channel.and_then(|channel| channel.entity.as_mut()) {
            entity.left_unknown = !is_whole;
        }
    }

    /// It is known which object an entity is, that was spawned in a channel. If it has left that
    /// before, it crosses now.
    pub(super) fn is_known(&mut self, id: ChannelId, spawned_in: ChannelId) {
        let channel = self.tables.channels.get_mut(id);
        let Some(entity) = channel.and_then(|channel| channel.entity.as_mut()) else {
            return;
        };
        let context = entity.context;
        if std::mem::take(&mut entity.left_unknown)
            && let Some(to) = self.located_in(id)
            && to != spawned_in
            && self.tables.is_cell(spawned_in)
        {
            let change = CellChange {
                from: spawned_in,
                to,
                context,
            };
            let message = ShardMessage::Moved { entity: id, change };
            self.send_to_shard(ShardId::HOME, message);
        }
    }

    /// The cell an entity's data says it is in. Only for types that the Unreal plugin
    /// generates: others do not say.
    pub(super) fn cell_by_data(&self, id: ChannelId) -> Option<ChannelId> {
        let state = &self.tables.channels.get(id)?.content()?.state;
        if !state.data_type()?.name().starts_with("channeldgenpb.") {
            return None;
        }
        self.located_in(id)
    }

    /// The cell where an entity's location lies, if its data has one.
    fn located_in(&self, id: ChannelId) -> Option<ChannelId> {
        let grid = self.tables.settings.grid.as_ref()?;
        let state = &self.tables.channels.get(id)?.content()?.state;
        let data_type = state.data_type()?;
        let position = LOCATIONS
            .iter()
            .filter_map(|names| data_type.path(names))
            .find_map(|path| stored(state, &path))?;
        Some(self.tables.spatial_channel(grid.cell(position)?))
    }
}

/// The location that is stored, if any of it is.
fn stored(state: &State, path: &[u32]) -> Option<Position> {
    let component = |number| {
        let path: Vec<u32> = path.iter().copied().chain([number]).collect();
        match state.value(&path) {
            Some(Value::Fixed32(bits)) => Some(f64::from(f32::from_bits(bits))),
            _ => None,
        }
    };
    let [x, z] = GROUND.map(component);
    (x.is_some() || z.is_some()).then(|| Position {
        x: x.unwrap_or_default(),
        z: z.unwrap_or_default(),
    })
}

/// The components of a location that an update brings.
fn moved(
    value: &[u8],
    path: &[u32],
) -> Result<[Option<f64>; 2], lagometer_protocol::wire::WireError> {
    let mut components = [None; 2];
    for (component, number) in components.iter_mut().zip(GROUND) {
        let path: Vec<u32> = path.iter().copied().chain([number]).collect();
        if let Some(Value::Fixed32(bits)) = find(value, &path, WireType::Fixed32)? {
            *component = Some(f64::from(f32::from_bits(bits)));
        }
    }
    Ok(components)
}
