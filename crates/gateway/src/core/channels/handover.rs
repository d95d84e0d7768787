//! Entities that cross the edge of a cell.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lagometer_protocol::merge::State;
use lagometer_protocol::merge::{Key, Removal};
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelDataHandoverMessage, ChannelSubscriptionOptions, ChannelType,
};
use lagometer_protocol::messages::unrealpb::{
    SpatialChannelData, SpatialEntityState, UnrealObjectRef,
};
use lagometer_protocol::wire::{Value, WireType, find};
use lagometer_protocol::{FromGateway, MAX_MESSAGE_LEN};
use lagometer_units::Time;
use prost::Message;
use prost_types::Any;

use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::Position;

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::{Envelope, encode};
use super::tables::Tables;
use super::unreal::{ENTITIES, OBJ_REF};

const SPATIAL_DATA_URL: &str = "type.googleapis.com/unrealpb.SpatialChannelData";

/// Where an entity's location may be found in its data, by the names of the
/// fields; the first that is there counts.
const LOCATIONS: [&[&str]; 2] = [
    &["actorState", "replicatedMovement", "location"],
    &["sceneComponentState", "relativeLocation"],
];

/// The components of a location that lie on the ground. The game's y is the
/// ground's z.
const GROUND: [u32; 2] = [1, 2];

/// What a handover's message has beside its entities, and an entity beside its
/// state: their keys, lengths and numbers, and the URL above.
const ENVELOPE_BYTES: usize = 128;
const ENTRY_BYTES: usize = 16;

/// The longest data of an entity that goes into a handover: with it go the
/// reference to its object and the URL of its type.
const MAX_DATA_BYTES: usize = MAX_MESSAGE_LEN - 4096;

/// An entity's move, as an update reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    from: Position,
    to: Position,
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
        if let Some(moved) = moved {
            self.hand_over(request.now, request.channel, moved);
        }
        if !removed.is_empty()
            && self
                .tables
                .is_of_kind(request.channel, ChannelType::Spatial)
        {
            for removal in removed.iter().filter(|removal| removal.field == ENTITIES) {
                if let Key::Number(id) = removal.key
                    && let Ok(id) = u32::try_from(id)
                    && self.tables.is_of_kind(ChannelId(id), ChannelType::Entity)
                    && self.may_take_away(request, ChannelId(id))
                {
                    self.take_channel_away(ChannelId(id));
                }
            }
        }
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

    /// The cell an entity's data says it is in, and the server there. Only for
    /// types that the Unreal plugin generates: others do not say.
    pub(super) fn server_at(&self, id: ChannelId) -> Option<(ChannelId, ConnId)> {
        let grid = self.tables.settings.grid.as_ref()?;
        let state = &self.tables.channels.get(id)?.content()?.state;
        let data_type = state.data_type()?;
        if !data_type.name().starts_with("channeldgenpb.") {
            return None;
        }
        let position = LOCATIONS
            .iter()
            .filter_map(|names| data_type.path(names))
            .find_map(|path| stored(state, &path))?;
        let cell = self.tables.spatial_channel(grid.cell(position)?);
        Some((cell, self.tables.owner(cell)?))
    }

    /// Notes an entity in a cell's data.
    pub(super) fn note_in_cell(&mut self, cell: ChannelId, id: ChannelId) {
        if let Some(obj) = self.tables.object(id) {
            self.add_entity_to(cell, id.0, &obj);
        }
    }

    fn hand_over(&mut self, now: Time, id: ChannelId, moved: Move) {
        let Some(grid) = &self.tables.settings.grid else {
            return;
        };
        let (Some(from), Some(to)) = (grid.cell(moved.from), grid.cell(moved.to)) else {
            return;
        };
        let (from, to) = (
            self.tables.spatial_channel(from),
            self.tables.spatial_channel(to),
        );
        if from == to
            || !self.tables.channels.contains_key(from)
            || !self.tables.channels.contains_key(to)
        {
            return;
        }
        let together = self.entities.together(id);
        // Without its object's reference nobody could know what came over.
        let objects: BTreeMap<ChannelId, UnrealObjectRef> = together
            .iter()
            .filter_map(|&id| Some((id, self.tables.object(id)?)))
            .collect();
        if objects.is_empty() || !objects.contains_key(&id) {
            return;
        }
        self.tables.charge_cause(0, together.len());
        self.change_hands(from, to, &together);
        for (entity, obj) in &objects {
            self.remove_entity_from(from, entity.0);
            self.add_entity_to(to, entity.0, obj);
            self.tables.telemetry.counters.handovers += 1;
            self.tables.telemetry.event(Event::HandedOver {
                entity: *entity,
                from,
                to,
            });
        }
        let context = self
            .tables
            .channels
            .get(id)
            .and_then(|channel| channel.entity.as_ref());
        let handover = Handover {
            from,
            to,
            context: context.map_or(0, |entity| entity.context),
            objects: &objects,
        };
        let there: BTreeSet<ConnId> = self.tables.subscribers(to).collect();
        let only_here: Vec<ConnId> = self
            .tables
            .subscribers(from)
            .filter(|member| !there.contains(member))
            .collect();
        for plain in handover.messages(&BTreeMap::new()) {
            self.tables
                .send_to_all(only_here.iter().copied(), to, &plain);
        }
        self.show_to(now, &handover, there);
    }

    /// Between cells of different servers the entities get another owner, and
    /// so do those that lost theirs while a server was away.
    fn change_hands(&mut self, from: ChannelId, to: ChannelId, entities: &BTreeSet<ChannelId>) {
        let (old, new) = (self.tables.owner(from), self.tables.owner(to));
        // Cells that nobody has take nothing from whoever has the entities.
        if old.is_none() && new.is_none() {
            return;
        }
        let stays = old.is_some() && old == new;
        for &id in entities {
            let is_kept = stays && self.tables.owner(id).is_some();
            if is_kept || !self.tables.is_of_kind(id, ChannelType::Entity) {
                continue;
            }
            if let Some(old) = old
                && !stays
                && !self.tables.subscribers(to).any(|member| member == old)
                && self.subscriptions.unsubscribe(&mut self.tables, id, old)
            {
                self.tables
                    .send_unsubscribed(old, Envelope::from(id), id, old);
            }
            self.tables.set_owner(id, new);
        }
    }

    /// Subscribes those in the cell to the entities that come, and notifies them.
    fn show_to(&mut self, now: Time, handover: &Handover<'_>, there: BTreeSet<ConnId>) {
        // Members to whom the same entities are new get the same message.
        let mut messages: BTreeMap<Vec<ChannelId>, Vec<Bytes>> = BTreeMap::new();
        // Data that no one message can hold comes as a whole state instead.
        let too_long: BTreeSet<ChannelId> = handover
            .objects
            .keys()
            .copied()
            .filter(|&id| {
                let content = self
                    .tables
                    .channels
                    .get(id)
                    .and_then(|channel| channel.content());
                content.is_some_and(|content| content.state.encoded_len() > MAX_DATA_BYTES)
            })
            .collect();
        for member in there {
            let mut new = Vec::new();
            for &id in handover.objects.keys() {
                let access = if self.tables.owner(id) == Some(member) {
                    ChannelDataAccess::WriteAccess
                } else {
                    ChannelDataAccess::ReadAccess
                };
                let options = ChannelSubscriptionOptions {
                    data_access: Some(access as i32),
                    skip_self_update_fan_out: Some(true),
                    skip_first_fan_out: Some(!too_long.contains(&id)),
                    ..ChannelSubscriptionOptions::default()
                };
                if self
                    .subscriptions
                    .subscribe(&mut self.tables, now, id, member, &options)
                {
                    self.tables
                        .send_subscribed(member, Envelope::from(id), id, member);
                    if !too_long.contains(&id) {
                        new.push(id);
                    }
                }
            }
            let messages = messages.entry(new).or_insert_with_key(|new| {
                let data = new
                    .iter()
                    .filter_map(|&id| {
                        let content = self.tables.channels.get(id)?.content()?;
                        let data = Any {
                            type_url: content.type_url.to_string(),
                            value: content.state.to_bytes(),
                        };
                        Some((id, data))
                    })
                    .collect();
                handover.messages(&data)
            });
            for message in messages {
                self.tables
                    .send_encoded(member, handover.to, message.clone());
            }
        }
    }
}

impl Tables {
    fn subscribers(&self, id: ChannelId) -> impl Iterator<Item = ConnId> {
        self.channels
            .get(id)
            .into_iter()
            .flat_map(|channel| channel.subscribers.ids())
    }

    /// The reference in an entity's data.
    fn object(&self, id: ChannelId) -> Option<UnrealObjectRef> {
        let channel = self.channels.get(id)?;
        let encoded = channel.content()?.state.message(&[OBJ_REF])?;
        UnrealObjectRef::decode(&*encoded).ok()
    }
}

/// A handover that is to be announced.
struct Handover<'a> {
    from: ChannelId,
    to: ChannelId,
    context: u32,
    objects: &'a BTreeMap<ChannelId, UnrealObjectRef>,
}

impl Handover<'_> {
    /// The messages, with the data of some of the entities: one if it can hold
    /// them all.
    fn messages(&self, data: &BTreeMap<ChannelId, Any>) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let mut together = SpatialChannelData::default();
        let mut bytes = 0;
        for (id, obj) in self.objects {
            let state = SpatialEntityState {
                obj_ref: Some(obj.clone()),
                removed: false,
                entity_data: data.get(id).cloned(),
            };
            let more = state.encoded_len() + ENTRY_BYTES;
            if bytes + more > MAX_MESSAGE_LEN - ENVELOPE_BYTES && bytes > 0 {
                messages.push(self.message(&std::mem::take(&mut together)));
                bytes = 0;
            }
            bytes += more;
            together.entities.insert(id.0, state);
        }
        messages.push(self.message(&together));
        messages
    }

    fn message(&self, together: &SpatialChannelData) -> Bytes {
        let message = FromGateway::ChannelDataHandover(ChannelDataHandoverMessage {
            src_channel_id: self.from.0,
            dst_channel_id: self.to.0,
            context_conn_id: self.context,
            data: Some(Any {
                type_url: SPATIAL_DATA_URL.to_owned(),
                value: together.encode_to_vec(),
            }),
        });
        encode(Envelope::from(self.to), &message).into()
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
