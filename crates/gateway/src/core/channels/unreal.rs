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

use crate::core::ids::ChannelId;
use crate::core::settings::Position;

use super::ChannelManager;
use super::dispatch::Request;

/// The map of entities in `unrealpb.SpatialChannelData`.
pub(super) const ENTITIES: u32 = 1;

/// The reference in every type of entity data.
pub(super) const OBJ_REF: u32 = 1;

/// The most objects that one channel remembers.
const MAX_OBJECTS: usize = 100_000;

impl ChannelManager {
    /// Reads a spawn or a destruction. Returns the channel whose message it
    /// is, and its payload if that had to be changed; `None` if it is to be
    /// dropped.
    pub(super) fn look_into(
        &mut self,
        request: &Request,
        forward: &ServerForward<'_>,
    ) -> Option<(ChannelId, Option<Vec<u8>>)> {
        if request.msg_type == MessageType::Spawn as u32 {
            return self.spawn(request, forward);
        }
        if request.msg_type == MessageType::Destroy as u32 {
            let destroyed = DestroyObjectMessage::decode(forward.payload).ok()?;
            if let Some(channel) = self.tables.channels.get_mut(request.channel) {
                channel.objects.remove(&destroyed.net_id);
            }
            self.remove_entity_from(request.channel, destroyed.net_id);
        }
        Some((request.channel, None))
    }

    /// What is left to do once the message is passed on.
    pub(super) fn after_passing(&mut self, request: &Request, forward: &ServerForward<'_>) {
        if request.msg_type == MessageType::Spawn as u32 {
            let obj = SpawnObjectMessage::decode(forward.payload)
                .ok()
                .and_then(|spawn| spawn.obj);
            if let Some(obj) = obj
                && let Some(content) = obj
                    .net_guid
                    .and_then(|id| self.tables.channels.get_mut(ChannelId(id)))
                    .filter(|channel| channel.is(ChannelType::Entity))
                    .and_then(|channel| channel.content_mut())
                && content.state.set_message(OBJ_REF, &obj.encode_to_vec()) == Ok(true)
            {
                content.changed();
            }
        } else if request.msg_type == MessageType::Destroy as u32
            && let Ok(destroyed) = DestroyObjectMessage::decode(forward.payload)
        {
            let id = ChannelId(destroyed.net_id);
            if self.tables.is_of_kind(id, ChannelType::Entity) {
                self.take_channel_away(id);
            }
        }
    }

    fn spawn(
        &mut self,
        request: &Request,
        forward: &ServerForward<'_>,
    ) -> Option<(ChannelId, Option<Vec<u8>>)> {
        let mut spawn = SpawnObjectMessage::decode(forward.payload).ok()?;
        let obj = spawn.obj.clone()?;
        let net_id = obj.net_guid.filter(|&id| id != 0)?;
        let mut at = request.channel;
        let mut rewritten = None;
        if let (Some(grid), Some(location)) = (&self.tables.settings.grid, &spawn.location) {
            // The game's y is the ground's z.
            let position = Position {
                x: location.x.unwrap_or_default().into(),
                z: location.y.unwrap_or_default().into(),
            };
            let cell = grid.cell(position)?;
            let there = ChannelId(self.tables.settings.spatial_channels_from + cell);
            if spawn.channel_id != Some(there.0) {
                spawn.channel_id = Some(there.0);
                rewritten = Some(spawn.encode_to_vec());
            }
            if self.tables.channels.contains_key(there) {
                at = there;
            }
        }
        let channel = self.tables.channels.get_mut(at)?;
        if channel.is(ChannelType::Spatial) {
            self.add_entity_to(at, net_id, &obj);
        } else if (channel.is(ChannelType::Global) || channel.is(ChannelType::Subworld))
            && channel.objects.len() < MAX_OBJECTS
        {
            let object = Bytes::from(obj.encode_to_vec());
            channel.objects.insert(net_id, object);
        }
        Some((at, rewritten))
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
