//! A world on a grid, whose cells and entities are spread over all shards: what the game's
//! server does with it, and what players see of it.
//!
//! The server has four blocks of a cell each and makes three entities, which walk from cell to
//! cell. The first two go together, and each says where it is. The third is destroyed now and
//! then, and made anew.

use std::collections::{BTreeMap, BTreeSet};

use lagometer_gateway::core::Grid;
use lagometer_protocol::ServerForward;
use lagometer_protocol::any::type_url;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataHandoverMessage, ChannelDataUpdateMessage,
    CreateChannelMessage, CreateChannelResultMessage, CreateEntityChannelMessage,
    CreateSpatialChannelsResultMessage, EntityGroupType, SubscribedToChannelMessage,
    UnsubscribedFromChannelMessage,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{
    ActorState, DestroyObjectMessage, FRepMovement, FVector, SpatialChannelData,
    SpatialEntityState, SpawnObjectMessage, UnrealObjectRef,
};
use prost::Message;
use prost_types::Any;

use crate::peers::{CREATE, GLOBAL, SUB, UPDATE, options};
use crate::recovering::Recovering;

const UNSUB: u32 = 7;
const CREATE_SPATIAL: u32 = 10;
const HANDOVER: u32 = 12;
const CREATE_ENTITY: u32 = 15;
const GROUP: u32 = 16;
const SPAWN: u32 = 103;
const DESTROY: u32 = 104;

const SPATIAL: i32 = 4;
const CELLS: u32 = 4;
const FIRST_CELL: u32 = 0x0001_0000;
const FIRST_ENTITY: u32 = 0x0008_0000;

/// The one that takes another along, that one, and one that walks alone.
const LEADER: u32 = FIRST_ENTITY;
const COMPANION: u32 = FIRST_ENTITY + 1;
const WANDERER: u32 = FIRST_ENTITY + 2;
const ENTITIES: [u32; 3] = [LEADER, COMPANION, WANDERER];

/// That entities are grouped is not answered, and the shard that does it may be gone on with by
/// another node first: they begin to walk after so many looks, of a second each.
const WALKS_AFTER: u32 = 5;

/// The one that walks alone is destroyed after so many steps.
const DESTROYED_EVERY: u32 = 37;

/// Each cell is so wide.
const WIDTH: f32 = 10.0;

pub(crate) fn grid() -> Grid {
    let text = r#"{ "Config": { "WorldOffsetX": 0, "WorldOffsetZ": -5, "GridWidth": 10,
        "GridHeight": 10, "GridCols": 4, "GridRows": 1, "ServerCols": 4, "ServerRows": 1,
        "ServerInterestBorderSize": 1 } }"#;
    Grid::from_json(text).expect("a grid")
}

/// A message to be sent: on which channel, of which type, and its body.
pub(crate) type Said = (u32, u32, Vec<u8>);

/// To all subscribers, as the flags of a message have it.
pub(crate) const TO_ALL: u32 = 32;

/// What a peer knows of the world, in this session.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// There is none: its shards would be one.
    pub(crate) is_absent: bool,
    /// A server's: what is there.
    cells: BTreeSet<u32>,
    made: BTreeSet<u32>,
    /// So often it has looked since it has grouped them.
    grouped: Option<u32>,
    steps: u32,
    /// Where each entity is.
    places: BTreeMap<u32, f32>,
    /// A player's: where its data says that each is.
    pub(crate) seen_at: BTreeMap<u32, f32>,
    /// The cell into which each was handed over last.
    handed_to: BTreeMap<u32, u32>,
    /// Which are in a cell by its whole state.
    listed: BTreeMap<u32, BTreeSet<u32>>,
    pub(crate) handovers: u64,
    /// Handovers that do not begin where the last one ended.
    pub(crate) torn: u64,
}

impl World {
    /// What is known of it in a new session.
    pub(crate) fn begun_anew(&self) -> Self {
        Self {
            is_absent: self.is_absent,
            ..Self::default()
        }
    }

    /// A server's channels of the world.
    pub(crate) fn has_made(&self) -> impl Iterator<Item = u32> {
        self.cells.iter().chain(&self.made).copied()
    }

    /// A server that comes back goes on with what it is given. Returns what it says to that.
    pub(crate) fn recover(&mut self, given: &Recovering) -> Vec<Said> {
        let mut said = Vec::new();
        for (&channel, given) in &given.channels {
            if (FIRST_CELL..FIRST_ENTITY).contains(&channel) {
                self.cells.insert(channel);
            } else if channel >= FIRST_ENTITY {
                let data = given.channel_data.as_ref().expect("an entity has data");
                let x = place(&data.value).expect("an entity is somewhere");
                self.made.insert(channel);
                self.places.insert(channel, x);
                let data = EntityChannelData::decode(&*data.value).expect("data of the type");
                // What was to make it an object was lost.
                said.extend(data.obj_ref.is_none().then(|| spawn(channel)));
            }
        }
        said
    }

    /// Whether a server has all it needs.
    fn is_ready(&self) -> bool {
        self.cells.len() == CELLS as usize
            && self.made.len() == ENTITIES.len()
            && self.grouped >= Some(WALKS_AFTER)
    }

    /// What there is of it, where that is not all. While they walk, the one that is destroyed
    /// now and then need not be there.
    pub(crate) fn unfinished(&self, walk: bool) -> Option<String> {
        let (cells, made) = (&self.cells, &self.made);
        let mut needed = ENTITIES.iter().filter(|id| !(walk && **id == WANDERER));
        let is_there = cells.len() == CELLS as usize && needed.all(|id| made.contains(id));
        (!is_there && !self.is_absent)
            .then(|| format!("of the world cells {cells:?} and entities {made:?}"))
    }

    /// A server makes what is not there yet.
    pub(crate) fn build(&mut self) -> Vec<Said> {
        if self.is_absent {
            return Vec::new();
        }
        if self.cells.len() < CELLS as usize {
            let message = CreateChannelMessage {
                channel_type: SPATIAL,
                ..CreateChannelMessage::default()
            };
            return vec![(GLOBAL, CREATE, message.encode_to_vec())];
        }
        let missing = ENTITIES.into_iter().filter(|id| !self.made.contains(id));
        let making = missing.map(|entity_id| {
            let message = CreateEntityChannelMessage {
                entity_id,
                data: Some(located(0.0)),
                ..CreateEntityChannelMessage::default()
            };
            (FIRST_CELL, CREATE_ENTITY, message.encode_to_vec())
        });
        let mut said: Vec<Said> = making.collect();
        if let Some(looks) = &mut self.grouped {
            *looks += 1;
        } else if said.is_empty() {
            self.grouped = Some(0);
            let message = AddEntityGroupMessage {
                r#type: EntityGroupType::Handover as i32,
                entities_to_add: vec![LEADER, COMPANION],
            };
            said.push((LEADER, GROUP, message.encode_to_vec()));
        }
        said
    }

    /// A server has its entities walk on.
    pub(crate) fn walk(&mut self) -> Vec<Said> {
        if !self.is_ready() {
            return Vec::new();
        }
        self.steps += 1;
        let steps = self.steps;
        let walkers = [
            (LEADER, steps % CELLS),
            (COMPANION, steps % CELLS),
            (WANDERER, steps / 3 % CELLS),
        ];
        let moves = walkers.map(|(entity, cell)| {
            let x = cell as f32 * WIDTH + (steps % 64) as f32 / 8.0;
            self.places.insert(entity, x);
            let message = ChannelDataUpdateMessage {
                data: Some(located(x)),
                context_conn_id: 0,
            };
            (entity, UPDATE, message.encode_to_vec())
        });
        let mut said: Vec<Said> = moves.into();
        if steps.is_multiple_of(DESTROYED_EVERY) {
            said.push(self.destroy(WANDERER));
        }
        said
    }

    /// A server destroys an entity, in the cell to which it has just walked.
    fn destroy(&mut self, entity: u32) -> Said {
        self.made.remove(&entity);
        let at = self.places.remove(&entity).unwrap_or_default();
        let message = DestroyObjectMessage {
            net_id: entity,
            ..DestroyObjectMessage::default()
        };
        (
            FIRST_CELL + (at / WIDTH) as u32,
            DESTROY,
            forward(&message.encode_to_vec()),
        )
    }

    /// A player looks for what it does not see yet. An observer looks at the cells again, each
    /// time with their whole state.
    pub(crate) fn look(&self, me: u32, subscribed: &BTreeSet<u32>, observes: bool) -> Vec<Said> {
        if self.is_absent {
            return Vec::new();
        }
        let cells = FIRST_CELL..FIRST_CELL + CELLS;
        let mut said = Vec::new();
        for channel in cells.chain(ENTITIES) {
            let is_there = subscribed.contains(&channel);
            let looks_again = observes && channel < FIRST_ENTITY;
            if is_there && looks_again {
                let message = UnsubscribedFromChannelMessage { conn_id: me };
                said.push((channel, UNSUB, message.encode_to_vec()));
            }
            if !is_there || looks_again {
                let message = SubscribedToChannelMessage {
                    conn_id: me,
                    sub_options: Some(options()),
                };
                said.push((channel, SUB, message.encode_to_vec()));
            }
        }
        said
    }

    /// A server's answers. Returns what it says to them.
    pub(crate) fn on_answer(&mut self, of_type: u32, me: u32, body: &[u8]) -> Vec<Said> {
        if of_type == CREATE_SPATIAL {
            let result = CreateSpatialChannelsResultMessage::decode(body).expect("a result");
            if result.owner_conn_id == me {
                self.cells.extend(result.spatial_channel_id);
            }
        } else if of_type == CREATE_ENTITY {
            let result = CreateChannelResultMessage::decode(body).expect("a result");
            let id = result.channel_id;
            if result.owner_conn_id == me && self.made.insert(id) {
                self.places.insert(id, 0.0);
                return vec![spawn(id)];
            }
        } else if of_type == HANDOVER {
            // One that an earlier session had moved is handed over to whoever has the cell now.
            let handover = ChannelDataHandoverMessage::decode(body).expect("a handover");
            for (entity, state) in entities_of(&handover) {
                if let Some(x) = state.entity_data.and_then(|data| place(&data.value))
                    && self.made.insert(entity)
                {
                    self.places.insert(entity, x);
                }
            }
        }
        Vec::new()
    }

    /// What a player gets of the world. Whether a handover goes on where the last one ended
    /// is looked at where it sees all cells all the time.
    pub(crate) fn on_message(
        &mut self,
        (channel, of_type, body): (u32, u32, &[u8]),
        subscribed: &mut BTreeSet<u32>,
        observes: bool,
    ) {
        if of_type == HANDOVER {
            let handover = ChannelDataHandoverMessage::decode(body).expect("a handover");
            let sees_all = !observes && Self::is_seen(subscribed);
            for (entity, state) in entities_of(&handover) {
                // One that is destroyed may be handed over still.
                if !subscribed.contains(&entity) {
                    continue;
                }
                self.handovers += 1;
                let (from, to) = (handover.src_channel_id, handover.dst_channel_id);
                // Each of those that go together reports the border, and all may go once more. A
                // number that is used again may be its former entity's for a while.
                let before = self.handed_to.insert(entity, to);
                let is_torn = entity != WANDERER
                    && before.is_some_and(|before| before != from && before != to);
                self.torn += u64::from(is_torn && sees_all);
                if let Some(shown) = state.entity_data {
                    self.on_place(entity, &shown.value);
                }
            }
        } else if of_type == DESTROY {
            let payload = ServerForward::parse(body).expect("a message").payload;
            let destroyed = DestroyObjectMessage::decode(payload).expect("a destruction");
            subscribed.remove(&destroyed.net_id);
            self.forget(destroyed.net_id);
        } else if of_type == UPDATE && (FIRST_CELL..FIRST_ENTITY).contains(&channel) {
            let data = value_of(body);
            let data = SpatialChannelData::decode(&*data).expect("data of the type");
            self.listed
                .insert(channel, data.entities.keys().copied().collect());
        } else if of_type == UPDATE && channel >= FIRST_ENTITY {
            self.on_place(channel, &value_of(body));
        }
    }

    /// A channel is gone, or begins anew.
    pub(crate) fn forget(&mut self, channel: u32) {
        self.seen_at.remove(&channel);
        self.handed_to.remove(&channel);
    }

    fn on_place(&mut self, entity: u32, data: &[u8]) {
        if let Some(x) = place(data) {
            self.seen_at.insert(entity, x);
        }
    }

    /// Whether a channel is of the world.
    pub(crate) fn has(channel: u32) -> bool {
        channel >= FIRST_CELL
    }

    /// Whether who is subscribed to these channels sees all cells.
    fn is_seen(subscribed: &BTreeSet<u32>) -> bool {
        (FIRST_CELL..FIRST_CELL + CELLS).all(|cell| subscribed.contains(&cell))
    }

    /// What a player sees otherwise than it is, if it sees something otherwise.
    pub(crate) fn differs_from(&self, truth: &Self, observes: bool) -> Option<String> {
        for (entity, &x) in &truth.places {
            let seen = self.seen_at.get(entity);
            if seen != Some(&x) {
                return Some(format!("entity {entity} at {seen:?}, not at {x}"));
            }
            let cell = FIRST_CELL + (x / WIDTH) as u32;
            let handed_to = self.handed_to.get(entity);
            if !observes && handed_to.is_some_and(|&to| to != cell) {
                return Some(format!(
                    "entity {entity} handed to {handed_to:?}, not {cell}"
                ));
            }
            let cells = self
                .listed
                .iter()
                .filter(|(_, listed)| listed.contains(entity));
            let cells: Vec<u32> = cells.map(|(&cell, _)| cell).collect();
            if observes && cells != [cell] {
                return Some(format!(
                    "entity {entity} listed in {cells:?}, not in {cell}"
                ));
            }
        }
        None
    }
}

fn value_of(update: &[u8]) -> Vec<u8> {
    let update = ChannelDataUpdateMessage::decode(update).expect("an update");
    update.data.expect("data").value
}

fn entities_of(handover: &ChannelDataHandoverMessage) -> BTreeMap<u32, SpatialEntityState> {
    let data = handover.data.as_ref().expect("data");
    let data = SpatialChannelData::decode(&*data.value).expect("data of the type");
    data.entities.into_iter().collect()
}

/// Where an entity is by its data, if that says it.
fn place(data: &[u8]) -> Option<f32> {
    let data = EntityChannelData::decode(data).expect("data of the type");
    let movement = data.actor_state?.replicated_movement?;
    movement.location?.x
}

fn object(entity: u32) -> UnrealObjectRef {
    UnrealObjectRef {
        net_guid: Some(entity),
        ..UnrealObjectRef::default()
    }
}

/// The data of an entity at a place. The game's y is the ground's z.
fn located(x: f32) -> Any {
    let data = EntityChannelData {
        actor_state: Some(ActorState {
            replicated_movement: Some(FRepMovement {
                location: Some(ground(x)),
                ..FRepMovement::default()
            }),
            ..ActorState::default()
        }),
        ..EntityChannelData::default()
    };
    Any {
        type_url: type_url("tpspb.EntityChannelData"),
        value: data.encode_to_vec(),
    }
}

fn ground(x: f32) -> FVector {
    FVector {
        x: Some(x),
        y: Some(0.0),
        z: Some(0.0),
    }
}

/// What makes an entity an object, in the first cell.
fn spawn(entity: u32) -> Said {
    let spawn = SpawnObjectMessage {
        obj: Some(object(entity)),
        channel_id: Some(FIRST_CELL),
        location: Some(ground(0.0)),
        ..SpawnObjectMessage::default()
    };
    (FIRST_CELL, SPAWN, forward(&spawn.encode_to_vec()))
}

fn forward(payload: &[u8]) -> Vec<u8> {
    let forward = ServerForward {
        client_conn_id: 0,
        payload,
    };
    let mut body = Vec::new();
    forward.encode(&mut body);
    body
}
