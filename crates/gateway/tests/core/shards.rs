//! Several shards, and what they have for each other under way for as long as a test wants.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use lagometer_gateway::core::bus::{
    AdmittedConnection, AuthAttempt, CheckedEnvelope, CheckedMessages, HomeVersion, ToChannels,
    ToConnections,
};
use lagometer_gateway::core::{
    AuthPolicy, ChannelManager, ChannelSettings, ConnId, ConnKey, ConnectionManager,
    ConnectionSettings, Grid, Peer, Recovery, Shard, ShardCount, ShardId, SideId,
};
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataUpdateMessage, CreateChannelMessage,
    CreateEntityChannelMessage, RemoveChannelMessage, SubscribedToChannelMessage,
};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use lagometer_protocol::messages::unrealpb::{
    DestroyObjectMessage, FVector, SpawnObjectMessage, UnrealObjectRef,
};
use lagometer_protocol::{MessagePack, ServerForward};
use lagometer_units::Time;
use prost::Message;

use crate::spatial::at;
use crate::world::{GLOBAL, any, types};

const ENTITY: &str = "tpspb.EntityChannelData";
const FIRST_CELL: u32 = 0x0001_0000;
pub(crate) const FIRST_ENTITY: u32 = 0x0008_0000;

const EDGE: SideId = SideId(0);

/// A server that broke off may come back for so long.
const RECOVERY: Duration = Duration::from_secs(10);

/// The shards of a gateway with one edge, which carries nothing by itself.
pub(crate) struct Shards {
    pub(crate) now: Time,
    count: ShardCount,
    managers: Vec<ChannelManager>,
    /// What shards have for each other, by from and to.
    links: BTreeMap<(usize, usize), VecDeque<Bytes>>,
    /// Where connections get their keys, and the last one's.
    pub(crate) keys: ConnectionManager,
    pub(crate) last_key: Option<ConnKey>,
    /// What was sent to connections.
    pub(crate) sent: Vec<ToConnections>,
}

impl Shards {
    /// So many, each with one cell of a row.
    pub(crate) fn new(count: u16) -> Self {
        let count = ShardCount::new(count).expect("a count");
        let mut shards = Self {
            now: Time::ZERO,
            count,
            managers: Vec::new(),
            links: BTreeMap::new(),
            keys: ConnectionManager::new(ConnectionSettings::default()),
            last_key: None,
            sent: Vec::new(),
        };
        shards.managers = count.all().map(|id| shards.begin(id, 1)).collect();
        shards
    }

    fn settings(&self, id: ShardId) -> ChannelSettings {
        let count = self.count.get();
        let grid = format!(
            r#"{{ "Config": {{ "WorldOffsetX": 0, "WorldOffsetZ": 0, "GridWidth": 10,
                "GridHeight": 10, "GridCols": {count}, "GridRows": 1, "ServerCols": {count},
                "ServerRows": 1, "ServerInterestBorderSize": 0 }} }}"#
        );
        ChannelSettings {
            auth: AuthPolicy::AdmitAll,
            recovery: Some(Recovery {
                within: Some(RECOVERY),
            }),
            grid: Some(Grid::from_json(&grid).expect("a grid")),
            shard: Shard {
                id,
                count: self.count,
            },
            ..ChannelSettings::default()
        }
    }

    fn begin(&self, id: ShardId, epoch: u64) -> ChannelManager {
        let mut manager = ChannelManager::new(self.settings(id));
        manager.begin_in_epoch(epoch);
        manager
    }

    pub(crate) fn handle(&mut self, shard: usize, message: ToChannels) {
        self.managers[shard].handle(self.now, EDGE, message);
        self.take(shard);
    }

    /// A shard does what is due by then.
    pub(crate) fn pass(&mut self, shard: usize, seconds: u64) {
        self.now = Time::from_secs(seconds);
        self.managers[shard].handle_deadline(self.now);
        self.take(shard);
    }

    /// Takes what a shard has for others.
    fn take(&mut self, shard: usize) {
        while let Some((_, message)) = self.managers[shard].poll_bus() {
            match message {
                ToConnections::Relay { to, frame } => {
                    let link = self.links.entry((shard, to.index())).or_default();
                    link.push_back(frame);
                }
                other => self.sent.push(other),
            }
        }
    }

    /// Hands over what one shard has for another. Returns whether there was anything.
    fn carry(&mut self, from: usize, to: usize) -> bool {
        let link = self.links.get_mut(&(from, to)).map(std::mem::take);
        let frames = link.unwrap_or_default();
        let any = !frames.is_empty();
        for frame in frames {
            let from = ShardId(from as u16);
            self.handle(to, ToChannels::Relayed { from, frame });
        }
        any
    }

    /// Hands over everything, until nobody has anything.
    pub(crate) fn settle(&mut self) {
        loop {
            let links: Vec<(usize, usize)> = self.links.keys().copied().collect();
            let carried = links.into_iter().map(|(from, to)| self.carry(from, to));
            // All of them, not up to the first.
            if !carried.fold(false, |any, carried| any | carried) {
                break;
            }
        }
    }

    /// Somebody logs in, and all shards know.
    fn join(&mut self, peer: Peer) -> ConnId {
        let key: ConnKey = self.keys.open(Time::ZERO, peer, None).expect("room");
        self.last_key = Some(key);
        let attempt = AuthAttempt {
            key,
            peer,
            address: None,
            is_address_forgeable: false,
            stub_id: 0,
            broadcast: 0,
            player: "player".to_owned(),
            login_token: String::new(),
        };
        self.handle(0, ToChannels::Auth(attempt));
        let answer = self.sent.iter().rev().find_map(|message| match message {
            ToConnections::AuthAnswer {
                id,
                number,
                recovers,
                ..
            } => Some((*id, *number, *recovers)),
            _ => None,
        });
        let (id, number, recovers) = answer.expect("an answer");
        for shard in 1..self.managers.len() {
            self.make_known(shard, key, id, peer, number, recovers);
        }
        for shard in 0..self.managers.len() {
            self.handle(shard, ToChannels::Introduced { key });
        }
        self.settle();
        id
    }

    /// A shard learns that home has let somebody in.
    pub(crate) fn make_known(
        &mut self,
        shard: usize,
        key: ConnKey,
        id: ConnId,
        peer: Peer,
        number: u64,
        recovers: bool,
    ) {
        let connection = AdmittedConnection {
            key,
            id,
            peer,
            address: None,
            is_address_forgeable: false,
            player: "player".to_owned(),
            version: HomeVersion { epoch: 1, number },
            recovers,
        };
        self.handle(shard, ToChannels::Admitted(connection));
    }

    /// A connection's message to a shard, whichever it is for.
    fn say(&mut self, shard: usize, from: ConnId, channel_id: u32, msg_type: u32, body: &[u8]) {
        let message = MessagePack {
            channel_id,
            msg_type,
            body,
            ..MessagePack::default()
        };
        let envelope = CheckedEnvelope::new(&message, body.len());
        let messages = CheckedMessages::new(&[envelope], Bytes::copy_from_slice(body));
        self.handle(shard, ToChannels::Messages { from, messages });
    }

    /// Makes an entity in a cell's middle, at the shard that has it.
    pub(crate) fn make_entity(&mut self, from: ConnId, entity_id: u32, cell: u32) {
        let object = at(entity_id, 0.0).obj_ref;
        self.make_entity_of(from, entity_id, cell, object);
    }

    /// Likewise, with this reference to an object in its data.
    fn make_entity_of(
        &mut self,
        from: ConnId,
        entity_id: u32,
        cell: u32,
        object: Option<UnrealObjectRef>,
    ) {
        let message = CreateEntityChannelMessage {
            entity_id,
            data: Some(any(ENTITY, &placed(entity_id, cell, object))),
            ..CreateEntityChannelMessage::default()
        };
        let shard = self.shard_of(entity_id);
        let body = message.encode_to_vec();
        self.say(shard, from, FIRST_CELL + cell, types::CREATE_ENTITY, &body);
    }

    /// An entity's owner says that it is in another cell.
    fn walk(&mut self, from: ConnId, entity: u32, cell: u32) {
        let object = at(entity, 0.0).obj_ref;
        self.walk_as(from, entity, cell, object);
    }

    fn walk_as(&mut self, from: ConnId, entity: u32, cell: u32, object: Option<UnrealObjectRef>) {
        let update = ChannelDataUpdateMessage {
            data: Some(any(ENTITY, &placed(entity, cell, object))),
            ..ChannelDataUpdateMessage::default()
        };
        let shard = self.shard_of(entity);
        self.say(shard, from, entity, types::UPDATE, &update.encode_to_vec());
    }

    fn shard_of(&self, entity: u32) -> usize {
        (entity - FIRST_ENTITY) as usize % self.managers.len()
    }

    /// A game server that has all cells.
    pub(crate) fn server_with_cells(&mut self) -> ConnId {
        let server = self.join(Peer::Server);
        for _ in 0..self.managers.len() {
            let message = CreateChannelMessage {
                channel_type: 4,
                ..CreateChannelMessage::default()
            };
            self.say(0, server, GLOBAL, types::CREATE, &message.encode_to_vec());
        }
        self.settle();
        server
    }

    fn handovers(&self) -> u64 {
        let managers = self.managers.iter();
        managers.map(|manager| manager.counters().handovers).sum()
    }

    /// All tables are sound, and can be written down and read back.
    pub(crate) fn check(&self) {
        for (id, manager) in self.count.all().zip(&self.managers) {
            manager.check_invariants().expect("sound tables");
            let written = manager.snapshot().expect("it can be written");
            ChannelManager::restore(self.settings(id), &written).expect("it can be read back");
        }
    }
}

/// An entity's data, in a cell's middle.
fn placed(entity: u32, cell: u32, object: Option<UnrealObjectRef>) -> EntityChannelData {
    EntityChannelData {
        obj_ref: object,
        ..at(entity, middle(cell))
    }
}

/// Three shards, a server that has all cells, and its entity in one of them, which is the third
/// shard's.
fn with_entity_in(cell: u32) -> (Shards, ConnId, u32) {
    let mut shards = Shards::new(3);
    let server = shards.server_with_cells();
    let entity = FIRST_ENTITY + 2;
    shards.make_entity(server, entity, cell);
    shards.settle();
    (shards, server, entity)
}

fn middle(cell: u32) -> f32 {
    cell as f32 * 10.0 + 5.0
}

#[test]
fn an_entity_crosses_to_another_shards_cell_and_on_while_that_is_under_way() {
    let (mut shards, server, entity) = with_entity_in(0);
    shards.walk(server, entity, 1);
    assert!(shards.carry(2, 0), "home is notified");
    assert_eq!(shards.managers[0].handovers_under_way(), 1);
    shards.walk(server, entity, 2);
    shards.walk(server, entity, 0);
    shards.settle();
    assert_eq!(shards.managers[0].handovers_under_way(), 0);
    assert_eq!(shards.handovers(), 2, "to the second, and from there back");
    shards.check();
}

#[test]
fn entities_that_go_together_go_at_once_though_their_shards_differ() {
    let mut shards = Shards::new(3);
    let server = shards.server_with_cells();
    let pair = [FIRST_ENTITY + 1, FIRST_ENTITY + 2];
    for entity in pair {
        shards.make_entity(server, entity, 0);
    }
    let group = AddEntityGroupMessage {
        entities_to_add: pair.to_vec(),
        ..AddEntityGroupMessage::default()
    };
    // The second is grouped before home knows of it.
    shards.say(1, server, pair[0], types::GROUP_ADD, &group.encode_to_vec());
    shards.carry(1, 0);
    shards.settle();
    shards.walk(server, pair[1], 1);
    shards.settle();
    assert_eq!(shards.handovers(), 2, "one for each");
    shards.check();
}

#[test]
fn an_entity_of_another_shard_is_not_made() {
    let mut shards = Shards::new(2);
    let client = shards.join(Peer::Client);
    let message = CreateEntityChannelMessage {
        entity_id: FIRST_ENTITY + 1,
        ..CreateEntityChannelMessage::default()
    };
    // A message that an edge cannot read goes home.
    let body = message.encode_to_vec();
    shards.say(0, client, GLOBAL, types::CREATE_ENTITY, &body);
    assert_eq!(shards.managers[0].counters().dropped, 1);
    shards.check();
}

#[test]
fn a_group_of_an_entity_that_has_gone_meanwhile_is_none() {
    let mut shards = Shards::new(2);
    let client = shards.join(Peer::Client);
    let entity = FIRST_ENTITY + 1;
    shards.make_entity(client, entity, 0);
    shards.settle();
    // What a client groups is looked through by all shards, its removal goes straight home.
    let group = AddEntityGroupMessage {
        entities_to_add: vec![entity],
        ..AddEntityGroupMessage::default()
    };
    shards.say(1, client, entity, types::GROUP_ADD, &group.encode_to_vec());
    let remove = RemoveChannelMessage { channel_id: entity };
    shards.say(1, client, GLOBAL, types::REMOVE, &remove.encode_to_vec());
    shards.settle();
    shards.check();
}

#[test]
fn a_handover_ends_whose_cell_is_lost_with_its_shard() {
    let (mut shards, server, entity) = with_entity_in(1);
    // The second shard is lost, and home knows; the third, which has the entity, does not.
    shards.managers[1] = shards.begin(ShardId(1), 2);
    // Any message of an edge: it is greeted through that.
    let key = shards.keys.open(Time::ZERO, Peer::Client, None);
    let key = key.expect("room");
    shards.handle(1, ToChannels::Introduced { key });
    shards.carry(1, 0);
    shards.walk(server, entity, 2);
    shards.carry(2, 0);
    assert_eq!(shards.managers[0].handovers_under_way(), 1);
    shards.settle();
    assert_eq!(shards.managers[0].handovers_under_way(), 0);
    shards.check();
}

#[test]
fn a_spawn_that_comes_before_its_entity_is_of_it_unless_it_was_destroyed() {
    for is_destroyed in [false, true] {
        let mut shards = Shards::new(3);
        let server = shards.server_with_cells();
        let entity = FIRST_ENTITY + 2;
        let spawn = SpawnObjectMessage {
            obj: at(entity, middle(0)).obj_ref,
            channel_id: Some(FIRST_CELL),
            location: Some(FVector {
                x: Some(middle(0)),
                y: Some(5.0),
                z: Some(0.0),
            }),
            ..SpawnObjectMessage::default()
        };
        let spawn = forward(&spawn.encode_to_vec());
        shards.say(0, server, FIRST_CELL, SPAWN, &spawn);
        shards.settle();
        if is_destroyed {
            shards.say(0, server, FIRST_CELL, DESTROY, &destruction(entity));
            shards.settle();
        }
        // It does not say which object it is.
        shards.make_entity_of(server, entity, 0, None);
        shards.walk_as(server, entity, 1, None);
        shards.settle();
        let handovers = u64::from(!is_destroyed);
        assert_eq!(shards.handovers(), handovers, "destroyed: {is_destroyed}");
        shards.check();
    }
}

#[test]
fn an_entity_that_is_destroyed_while_it_crosses_is_in_no_cell() {
    let (mut shards, server, entity) = with_entity_in(0);
    shards.walk(server, entity, 1);
    // Home has it begin, and the entity's shard says what it is.
    shards.carry(2, 0);
    shards.carry(0, 2);
    shards.say(1, server, FIRST_CELL + 1, DESTROY, &destruction(entity));
    // It goes before the cell that it enters has it.
    shards.carry(1, 2);
    shards.settle();
    assert_eq!(shards.managers[0].handovers_under_way(), 0);
    shards.sent.clear();
    let subscribe = SubscribedToChannelMessage {
        conn_id: server.0,
        sub_options: Some(crate::world::every(20)),
    };
    for cell in 0..3 {
        let body = subscribe.encode_to_vec();
        shards.say(cell, server, FIRST_CELL + cell as u32, types::UNSUB, &body);
        shards.say(cell, server, FIRST_CELL + cell as u32, types::SUB, &body);
        shards.managers[cell].handle_deadline(Time::from_millis(100));
        while let Some((_, message)) = shards.managers[cell].poll_bus() {
            if let ToConnections::State { messages, .. } = message {
                let bytes = messages.concat();
                let listed = bytes.windows(3).any(|it| it == varint(entity));
                assert!(!listed, "it is in cell {cell}: {bytes:?}");
            }
        }
    }
    shards.check();
}

const SPAWN: u32 = 103;
const DESTROY: u32 = 104;

fn destruction(entity: u32) -> Vec<u8> {
    let destroyed = DestroyObjectMessage {
        net_id: entity,
        ..DestroyObjectMessage::default()
    };
    forward(&destroyed.encode_to_vec())
}

/// A message of the game's own, as a server sends it.
fn forward(payload: &[u8]) -> Vec<u8> {
    let forward = ServerForward {
        client_conn_id: 0,
        payload,
    };
    let mut body = Vec::new();
    forward.encode(&mut body);
    body
}

/// An entity's number as data has it.
fn varint(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(number.into(), &mut out);
    out
}
