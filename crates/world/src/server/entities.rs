//! The entity channels of a server's players: asked for, open, closed.

use std::collections::BTreeMap;

use lagometer_client::{Outbox, SendError};
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, CreateEntityChannelMessage,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use prost::Message as _;

use crate::sim::crowd::EntityId;
use crate::wire::ids::EntityKind;
use crate::wire::messages;

/// Channels asked for and channels that are there.
#[derive(Debug, Default)]
pub(super) struct Entities {
    /// By entity: the owning connection, and whether the gateway has answered.
    known: BTreeMap<EntityId, Entity>,
}

#[derive(Debug)]
struct Entity {
    conn_id: u32,
    open: bool,
}

impl Entities {
    /// Asks for the channels of all of a player's parts, in GLOBAL or a cell's
    /// channel; `pawn` is what is to be known of the pawn at once.
    pub(super) fn ask_for(
        &mut self,
        in_channel_id: u32,
        player: u32,
        conn_id: u32,
        pawn: Option<&EntityChannelData>,
        outbox: &mut Outbox,
    ) -> Result<(), SendError> {
        for kind in EntityKind::ALL {
            let known = pawn.filter(|_| kind == EntityKind::Pawn).cloned();
            let data = EntityChannelData {
                obj_ref: Some(messages::object(player, kind, conn_id)),
                ..known.unwrap_or_default()
            };
            let entity = kind.of(player);
            outbox.create_entity_channel(
                in_channel_id,
                CreateEntityChannelMessage {
                    entity_id: entity.0,
                    sub_options: Some(ChannelSubscriptionOptions {
                        data_access: Some(ChannelDataAccess::WriteAccess.into()),
                        ..ChannelSubscriptionOptions::default()
                    }),
                    data: Some(messages::any(messages::ENTITY_TYPE, data.encode_to_vec())),
                    metadata: messages::entity_mark(player),
                    is_well_known: kind == EntityKind::PlayerState,
                    ..CreateEntityChannelMessage::default()
                },
            )?;
            let open = false;
            self.known.insert(entity, Entity { conn_id, open });
        }
        Ok(())
    }

    /// The gateway has opened a channel. Returns the connection it was asked
    /// for.
    pub(super) fn opened(&mut self, entity: EntityId) -> Option<u32> {
        let known = self.known.get_mut(&entity)?;
        known.open = true;
        Some(known.conn_id)
    }

    /// Whether the channels of all of a player's parts are there.
    pub(super) fn all_open(&self, player: u32) -> bool {
        let mut kinds = EntityKind::ALL.into_iter();
        kinds.all(|kind| self.is_open(kind.of(player)))
    }

    /// Channels that another server has made come with their player.
    pub(super) fn take_over(&mut self, player: u32, conn_id: u32) {
        for kind in EntityKind::ALL {
            let open = true;
            self.known.insert(kind.of(player), Entity { conn_id, open });
        }
    }

    /// A player's channels are another server's, or gone.
    pub(super) fn forget(&mut self, player: u32) {
        for kind in EntityKind::ALL {
            self.known.remove(&kind.of(player));
        }
    }

    /// Whether an entity's channel is there.
    pub(super) fn is_open(&self, entity: EntityId) -> bool {
        self.known.get(&entity).is_some_and(|known| known.open)
    }

    /// The channels that were asked for or are there.
    pub(super) fn all(&self) -> impl Iterator<Item = EntityId> {
        self.known.keys().copied()
    }

    /// Closes all channels of a player.
    pub(super) fn close(&mut self, player: u32, outbox: &mut Outbox) -> Result<(), SendError> {
        for kind in EntityKind::ALL {
            if self.known.remove(&kind.of(player)).is_some() {
                outbox.remove_channel(kind.of(player).0)?;
            }
        }
        Ok(())
    }
}
