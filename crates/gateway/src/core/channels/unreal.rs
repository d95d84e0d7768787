//! What Unreal games' spawns and destructions announce to the gateway.
//!
//! An object's reference is kept where new subscribers and recovering servers
//! will look for it: in a spatial channel's data, among GLOBAL's or a
//! sub-world's objects, in its entity channel's data.

use bytes::Bytes;
use lagometer_protocol::ServerForward;
use lagometer_protocol::merge::Key;
use lagometer_protocol::messages::channeldpb::ChannelType;
use lagometer_protocol::messages::unrealpb::{
    DestroyObjectMessage, MessageType, SpatialEntityState, SpawnObjectMessage, UnrealObjectRef,
};
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::core::ids::ChannelId;
use crate::core::settings::Position;

use super::ChannelManager;
use super::dispatch::Request;
use super::shard_messages::ShardMessage;

/// The map of entities in `unrealpb.SpatialChannelData`.
pub(super) const ENTITIES: u32 = 1;

/// The reference in every type of entity data.
pub(super) const OBJ_REF: u32 = 1;

/// The most objects that one channel remembers.
const MAX_OBJECTS: usize = 100_000;

/// Something that a game spawns.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spawn {
    request: Request,
    /// The channel whose message it is: the one of the cell where it is, if there is one.
    at: ChannelId,
    /// The message, encoded as a `ServerForward`.
    body: Bytes,
}

impl ChannelManager {
    /// Passes a server's message on, and notes what it says of an object. Returns whether it
    /// is sound.
    pub(super) fn pass_unreal(&mut self, request: &Request, forward: ServerForward<'_>) -> bool {
        if request.msg_type == MessageType::Spawn as u32 {
            return self.spawn(request, forward).is_some();
        }
        let mut body = Vec::new();
        forward.encode(&mut body);
        if request.msg_type != MessageType::Destroy as u32 {
            self.pass_on(request, forward, &body);
            return true;
        }
        let Ok(destroyed) = DestroyObjectMessage::decode(forward.payload) else {
            return false;
        };
        let id = destroyed.net_id;
        if let Some(channel) = self.tables.channels.get_mut(request.channel) {
            channel.objects.remove(&id);
        }
        self.remove_entity_from(request.channel, id);
        self.pass_on(request, forward, &body);
        let id = ChannelId(id);
        self.send_to_shard_of(id, ShardMessage::Destroyed(id));
        true
    }

    /// Has the shard of the cell where something is spawned pass that on.
    fn spawn(&mut self, request: &Request, forward: ServerForward<'_>) -> Option<()> {
        let mut spawn = SpawnObjectMessage::decode(forward.payload).ok()?;
        net_id(&spawn)?;
        let mut at = request.channel;
        let mut rewritten = None;
        if let (Some(grid), Some(location)) = (&self.tables.settings.grid, &spawn.location) {
            // The game's y is the ground's z.
            let position = Position {
                x: location.x.unwrap_or_default().into(),
                z: location.y.unwrap_or_default().into(),
            };
            at = self.tables.spatial_channel(grid.cell(position)?);
            if spawn.channel_id != Some(at.0) {
                spawn.channel_id = Some(at.0);
                rewritten = Some(spawn.encode_to_vec());
            }
        }
        let mut body = Vec::new();
        let forward = ServerForward {
            payload: rewritten.as_deref().unwrap_or(forward.payload),
            ..forward
        };
        forward.encode(&mut body);
        let spawn = Spawn {
            request: *request,
            at,
            body: body.into(),
        };
        self.send_to_shard_of(at, ShardMessage::Spawn(spawn));
        Some(())
    }

    /// What was spawned is a message of the channel on which it came.
    pub(super) fn spawned_without_cell(&mut self, spawn: Spawn) {
        let at = spawn.request.channel;
        if spawn.at != at {
            self.send_to_shard_of(at, ShardMessage::Spawn(Spawn { at, ..spawn }));
        }
    }

    /// Something is spawned in a channel. Where there is no such cell it is a message of the
    /// channel on which it came.
    pub(super) fn spawned(&mut self, spawn: Spawn) {
        let Spawn { request, at, .. } = spawn;
        if !self.tables.channels.contains_key(at) {
            self.spawned_without_cell(spawn);
            return;
        }
        let request = Request {
            channel: at,
            ..request.at(self.tables.now)
        };
        // It was sound when it was handed over.
        if let Ok(forward) = ServerForward::parse(&spawn.body)
            && let Ok(message) = SpawnObjectMessage::decode(forward.payload)
            && let Some(net_id) = net_id(&message)
            && let Some(object) = message.obj
        {
            self.note_object(at, net_id, &object);
            self.pass_on(&request, forward, &spawn.body);
            let entity = ChannelId(net_id);
            let message = ShardMessage::SetObject {
                entity,
                object: object.encode_to_vec(),
                spawned_in: at,
            };
            self.send_to_shard_of(entity, message);
        }
    }

    /// Notes an object where new subscribers and recovering servers will look for it.
    fn note_object(&mut self, at: ChannelId, net_id: u32, object: &UnrealObjectRef) {
        let Some(channel) = self.tables.channels.get_mut(at) else {
            return;
        };
        if channel.is(ChannelType::Spatial) {
            self.add_entity_to(at, net_id, object);
        } else if (channel.is(ChannelType::Global) || channel.is(ChannelType::Subworld))
            && channel.objects.len() < MAX_OBJECTS
        {
            let object = Bytes::from(object.encode_to_vec());
            channel.objects.insert(net_id, object);
        }
    }

    /// An entity that was spawned in a channel is this object.
    pub(super) fn set_object(&mut self, entity: ChannelId, object: &[u8], spawned_in: ChannelId) {
        let channel = self.tables.channels.get_mut(entity);
        if let Some(content) = channel
            .filter(|channel| channel.is(ChannelType::Entity))
            .and_then(|channel| channel.content_mut())
            && content.state.set_message(OBJ_REF, object) == Ok(true)
        {
            content.changed();
        }
        self.is_known(entity, spawned_in);
    }

    /// An entity was destroyed, if it is one.
    pub(super) fn destroyed(&mut self, id: ChannelId) {
        self.entities.forget_early(id);
        if self.tables.is_of_kind(id, ChannelType::Entity) {
            self.take_channel_away(id);
        }
    }

    /// Notes in a spatial channel's data that an entity is there, for those
    /// who get the whole state later.
    pub(super) fn add_entity_to(&mut self, at: ChannelId, net_id: u32, obj: &UnrealObjectRef) {
        let state = SpatialEntityState {
            obj_ref: Some(obj.clone()),
            ..SpatialEntityState::default()
        };
        let key = Key::Number(net_id.into());
        if let Some(content) = self.spatial_content(at)
            && content
                .state
                .insert_entry(ENTITIES, key, &state.encode_to_vec())
                == Ok(true)
        {
            content.changed();
        }
    }

    pub(super) fn remove_entity_from(&mut self, at: ChannelId, net_id: u32) {
        if let Some(content) = self.spatial_content(at)
            && content
                .state
                .remove_entry(ENTITIES, &Key::Number(net_id.into()))
        {
            content.changed();
        }
    }

    fn spatial_content(&mut self, at: ChannelId) -> Option<&mut super::channel::Content> {
        self.tables
            .channels
            .get_mut(at)
            .filter(|channel| channel.is(ChannelType::Spatial))?
            .content_mut()
    }
}

/// The number of what is spawned, unless it has none.
fn net_id(spawn: &SpawnObjectMessage) -> Option<u32> {
    spawn.obj.as_ref()?.net_guid.filter(|&id| id != 0)
}
