//! What the core costs for each entity state it delivers:
//! `cargo bench -p lagometer-gateway`.
//!
//! Everything between the bytes read and the bytes handed to the system is in
//! it: frames, state machines, merging, windows, outboxes; sockets are not.
//! Each scene runs several times and the fastest round counts: on a shared
//! machine only that means something.

use std::time::{Duration, Instant};

use lagometer_gateway::core::{
    AuthPolicy, ChannelManager, ChannelSettings, ConnKey, ConnectionManager, ConnectionSettings,
    Fsm, Peer, SideId,
};
use lagometer_protocol::messages::channeldpb::{
    AuthMessage, ChannelSubscriptionOptions, CreateChannelMessage, CreateEntityChannelMessage,
    SubscribedToChannelMessage,
};
use lagometer_protocol::messages::tpspb::{EntityChannelData, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{ActorState, FRepMovement, FVector};
use lagometer_protocol::{FrameBuilder, MessagePack, update_body};
use lagometer_units::Time;
use prost::Message;

const WORLD_URL: &str = "type.googleapis.com/tpspb.TestRepChannelData";
const ENTITY_URL: &str = "type.googleapis.com/tpspb.EntityChannelData";
const FIRST_ENTITY: u32 = 0x80_000;
const TICK: Duration = Duration::from_millis(20);

fn main() {
    for players in [50, 200, 500] {
        println!("{players} players who see each other, 50 windows a second");
        scene("each updates itself", players, own_updates);
        scene("a server updates all", players, server_updates);
        if players <= 200 {
            scene("a channel for each entity", players, entity_channels);
        }
    }
}

/// One gateway and its sockets, which take everything at once.
struct Gateway {
    connections: ConnectionManager,
    channels: ChannelManager,
    now: Time,
    bytes: usize,
}

impl Gateway {
    fn new() -> Self {
        Self {
            connections: ConnectionManager::new(ConnectionSettings {
                client_fsm: Fsm::authoritative_client(),
                ..ConnectionSettings::default()
            }),
            channels: ChannelManager::new(ChannelSettings {
                auth: AuthPolicy::AdmitAll,
                ..ChannelSettings::default()
            }),
            now: Time::ZERO,
            bytes: 0,
        }
    }

    fn join(&mut self, peer: Peer) -> ConnKey {
        let key = self
            .connections
            .open(self.now, peer, None)
            .expect("not banned");
        self.say(key, 0, 1, &AuthMessage::default().encode_to_vec());
        key
    }

    fn say(&mut self, key: ConnKey, channel_id: u32, msg_type: u32, body: &[u8]) {
        let frame = frame(&[(channel_id, msg_type, body.to_vec())]);
        self.receive(key, &frame);
        self.carry_answers();
    }

    fn receive(&mut self, key: ConnKey, frame: &[u8]) {
        self.connections.receive(self.now, key, frame);
        while let Some(message) = self.connections.poll_bus() {
            self.channels.handle(self.now, SideId(0), message);
        }
    }

    fn subscribe(&mut self, key: ConnKey, channel_id: u32, access: i32) {
        let message = SubscribedToChannelMessage {
            conn_id: self.connections.id(key).map_or(0, |id| id.0),
            sub_options: Some(options(access)),
        };
        self.say(key, channel_id, 6, &message.encode_to_vec());
    }

    fn tick(&mut self) {
        self.now += TICK;
        self.channels.handle_deadline(self.now);
        self.carry_answers();
        while let Some(key) = self.connections.poll_writable() {
            let bytes = self.connections.output(key).map(<[u8]>::len).sum();
            self.connections.wrote(self.now, key, bytes);
            self.bytes += bytes;
        }
    }

    fn carry_answers(&mut self) {
        while let Some((_, message)) = self.channels.poll_bus() {
            self.connections.handle(self.now, message);
        }
    }

    fn settle(&mut self) {
        for _ in 0..5 {
            self.tick();
        }
    }
}

/// Each player's own update, every window.
fn own_updates(players: u32) -> (Gateway, Vec<(ConnKey, Vec<u8>)>) {
    let (mut gateway, master) = with_world();
    let mut updates = Vec::new();
    for id in 0..players {
        let player = gateway.join(Peer::Client);
        gateway.subscribe(player, 0, 2);
        let body = update_body(WORLD_URL, &world([id]).encode_to_vec());
        updates.push((player, frame(&[(0, 8, body)])));
    }
    gateway.subscribe(master, 0, 0);
    (gateway, updates)
}

/// One update of all players, every window.
fn server_updates(players: u32) -> (Gateway, Vec<(ConnKey, Vec<u8>)>) {
    let (mut gateway, master) = with_world();
    for _ in 0..players {
        let player = gateway.join(Peer::Client);
        gateway.subscribe(player, 0, 1);
    }
    let body = update_body(WORLD_URL, &world(0..players).encode_to_vec());
    (gateway, vec![(master, frame(&[(0, 8, body)]))])
}

/// Each player's entity in a channel of its own, all updated by one server.
fn entity_channels(players: u32) -> (Gateway, Vec<(ConnKey, Vec<u8>)>) {
    let (mut gateway, master) = with_world();
    let clients: Vec<ConnKey> = (0..players).map(|_| gateway.join(Peer::Client)).collect();
    let mut updates = Vec::new();
    for id in 0..players {
        let entity = FIRST_ENTITY + 2 * id;
        let message = CreateEntityChannelMessage {
            entity_id: entity,
            sub_options: Some(options(2)),
            ..CreateEntityChannelMessage::default()
        };
        gateway.say(master, 0, 15, &message.encode_to_vec());
        for &client in &clients {
            gateway.subscribe(client, entity, 1);
        }
        let data = EntityChannelData {
            actor_state: Some(actor()),
            ..EntityChannelData::default()
        };
        updates.push((entity, 8, update_body(ENTITY_URL, &data.encode_to_vec())));
    }
    (gateway, vec![(master, frame(&updates))])
}

fn scene(what: &str, players: u32, set: impl Fn(u32) -> (Gateway, Vec<(ConnKey, Vec<u8>)>)) {
    let (mut gateway, updates) = set(players);
    gateway.settle();
    gateway.bytes = 0;
    let windows = (2_000_000 / (players * players)).clamp(5, 400);
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..windows {
            for (key, update) in &updates {
                gateway.receive(*key, update);
            }
            gateway.tick();
        }
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    let entries = f64::from(windows) * f64::from(players) * f64::from(players);
    let bytes = gateway.bytes as f64 / 7.0;
    // A state takes 17 bytes at least: all are there.
    assert!(
        bytes >= 17.0 * 0.9 * entries,
        "{bytes} bytes for {entries} entries"
    );
    println!(
        "  {what:28} {:7.2} ns for each entry ({:6.1} million a second), {:6.0} MB/s",
        best / entries,
        1e3 * entries / best,
        1e3 * bytes / best
    );
}

fn with_world() -> (Gateway, ConnKey) {
    let mut gateway = Gateway::new();
    let master = gateway.join(Peer::Server);
    let message = CreateChannelMessage {
        channel_type: 1,
        sub_options: Some(options(0)),
        ..CreateChannelMessage::default()
    };
    gateway.say(master, 0, 3, &message.encode_to_vec());
    (gateway, master)
}

fn options(access: i32) -> ChannelSubscriptionOptions {
    ChannelSubscriptionOptions {
        data_access: Some(access),
        fan_out_interval_ms: Some(20),
        ..ChannelSubscriptionOptions::default()
    }
}

fn world(ids: impl IntoIterator<Item = u32>) -> TestRepChannelData {
    TestRepChannelData {
        actor_states: ids
            .into_iter()
            .map(|id| (FIRST_ENTITY + 2 * id, actor()))
            .collect(),
        ..TestRepChannelData::default()
    }
}

/// A character that walks straight.
fn actor() -> ActorState {
    ActorState {
        replicated_movement: Some(FRepMovement {
            location: Some(FVector {
                x: Some(12.5),
                y: Some(-7.25),
                z: None,
            }),
            ..FRepMovement::default()
        }),
        ..ActorState::default()
    }
}

/// Frames of messages, one after the other, each as full as it gets.
fn frame(messages: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut frames = Vec::new();
    let mut builder = FrameBuilder::new();
    for (channel_id, msg_type, body) in messages {
        let message = MessagePack {
            channel_id: *channel_id,
            msg_type: *msg_type,
            body,
            ..MessagePack::default()
        };
        if builder.push(&message).is_err() {
            frames.extend_from_slice(builder.finish().unwrap_or_default());
            builder.clear();
            builder.push(&message).expect("it fits an empty frame");
        }
    }
    frames.extend_from_slice(builder.finish().unwrap_or_default());
    frames
}
