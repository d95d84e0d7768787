//! A message that is delivered costs no memory of its own: what the gateway
//! allocates in the steady state depends on what is sent, not on how many receive
//! it, and what a game's own messages take is taken many at a time.

use std::io::{IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use allocation_counter::measure;
use lagometer_gateway::core::{
    AuthPolicy, ChannelManager, ChannelSettings, ConnKey, ConnectionManager, ConnectionSettings,
    Fsm, Peer, SideId,
};
use lagometer_protocol::messages::channeldpb::{
    AuthMessage, ChannelSubscriptionOptions, CreateChannelMessage, SubscribedToChannelMessage,
    TransformState, Vector3f,
};
use lagometer_protocol::messages::tankspb::TankGameChannelData;
use lagometer_protocol::{
    Compression, Compressor, FrameBuilder, MessagePack, frame_header, update_body,
};
use lagometer_units::Time;
use prost::Message;

const URL: &str = "type.googleapis.com/tankspb.TankGameChannelData";
const TICK: Duration = Duration::from_millis(20);

/// Rounds before what is kept for use again is there.
const WARM_UP: u32 = 50;

/// Rounds that count.
const ROUNDS: u32 = 100;

/// A server and players in one channel, in virtual time, over sockets that take
/// everything.
struct Room {
    connections: ConnectionManager,
    channels: ChannelManager,
    now: Time,
    wire: UnixStream,
    peer: UnixStream,
    received: Vec<u8>,
}

impl Room {
    fn new() -> Self {
        let (wire, peer) = UnixStream::pair().unwrap();
        peer.set_nonblocking(true).unwrap();
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
            wire,
            peer,
            received: vec![0; 1 << 20],
        }
    }

    /// The server, then the players, all subscribed.
    fn fill(&mut self, players: usize) -> Vec<ConnKey> {
        let server = self.join(Peer::Server);
        let create = CreateChannelMessage {
            channel_type: 1,
            ..CreateChannelMessage::default()
        };
        self.receive(server, &frame(3, &create.encode_to_vec()));
        let mut all = vec![server];
        for _ in 0..players {
            let player = self.join(Peer::Client);
            let subscribe = SubscribedToChannelMessage {
                conn_id: self.connections.id(player).unwrap().0,
                sub_options: Some(ChannelSubscriptionOptions {
                    data_access: Some(2),
                    fan_out_interval_ms: Some(20),
                    ..ChannelSubscriptionOptions::default()
                }),
            };
            self.receive(player, &frame(6, &subscribe.encode_to_vec()));
            all.push(player);
        }
        self.tick();
        all
    }

    fn join(&mut self, peer: Peer) -> ConnKey {
        let key = self.connections.open(self.now, peer, None).unwrap();
        self.receive(key, &frame(1, &AuthMessage::default().encode_to_vec()));
        key
    }

    fn receive(&mut self, key: ConnKey, frame: &[u8]) {
        self.connections.receive(self.now, key, frame);
        while let Some(message) = self.connections.poll_bus() {
            self.channels.handle(self.now, SideId(0), message);
        }
        self.carry();
    }

    fn carry(&mut self) {
        while let Some((_, message)) = self.channels.poll_bus() {
            self.connections.handle(self.now, message);
        }
    }

    /// One fan-out tick, and one vectored write to each subscriber.
    fn tick(&mut self) {
        self.now += TICK;
        self.channels.handle_deadline(self.now);
        self.carry();
        while let Some(key) = self.connections.poll_writable() {
            let mut slices = [IoSlice::new(&[]); 8];
            let mut used = 0;
            for slice in self.connections.output(key).take(slices.len()) {
                slices[used] = IoSlice::new(slice);
                used += 1;
            }
            let written = self.wire.write_vectored(&slices[..used]).unwrap();
            self.connections.wrote(self.now, key, written);
            assert_eq!(self.connections.waiting(key), 0);
            while self.peer.read(&mut self.received).is_ok() {}
        }
    }

    /// A tick after which everybody has read everything, however much it is.
    fn tick_and_read(&mut self) {
        self.now += TICK;
        self.channels.handle_deadline(self.now);
        self.carry();
        while let Some(message) = self.connections.poll_bus() {
            self.channels.handle(self.now, SideId(0), message);
        }
        while let Some(key) = self.connections.poll_writable() {
            let bytes = self.connections.output(key).map(<[u8]>::len).sum();
            self.connections.wrote(self.now, key, bytes);
        }
    }

    fn delivered(&self) -> u64 {
        self.connections.counters().of(Peer::Client).messages_out
    }
}

fn frame(msg_type: u32, body: &[u8]) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    let message = MessagePack {
        msg_type,
        body,
        ..MessagePack::default()
    };
    builder.push(&message).unwrap();
    builder.finish().unwrap().to_vec()
}

/// The states of some tanks, as an update.
fn states(ids: impl Iterator<Item = u32>) -> Vec<u8> {
    let at = |id| {
        let position = Some(Vector3f {
            x: 1.0,
            y: 2.0,
            z: 3.0,
        });
        let state = TransformState {
            position,
            ..TransformState::default()
        };
        (id, state)
    };
    let data = TankGameChannelData {
        transform_states: ids.map(at).collect(),
        ..TankGameChannelData::default()
    };
    frame(8, &update_body(URL, &data.encode_to_vec()))
}

/// Allocations and messages delivered to players in the rounds that count.
fn rounds(players: usize, updates: &[(usize, Vec<u8>)]) -> (u64, u64) {
    let mut room = Room::new();
    let all = room.fill(players);
    let mut play = |rounds: u32| {
        for _ in 0..rounds {
            for (who, update) in updates {
                room.receive(all[*who], update);
            }
            room.tick();
        }
        room.delivered()
    };
    let before = play(WARM_UP);
    let mut after = 0;
    let counted = measure(|| after = play(ROUNDS));
    (counted.count_total, after - before)
}

#[test]
fn a_window_costs_the_same_however_many_get_it() {
    let update = [(0, states(0..100))];
    let (for_few, delivered) = rounds(10, &update);
    assert_eq!(delivered, 10 * u64::from(ROUNDS));
    let (for_many, delivered) = rounds(500, &update);
    assert_eq!(delivered, 500 * u64::from(ROUNDS));
    assert!(for_few > 0, "nothing is counted");
    assert_eq!(for_many, for_few);
}

#[test]
fn a_window_costs_the_same_where_each_is_sent_all_but_his_own() {
    let updates: Vec<(usize, Vec<u8>)> = (1..=8)
        .map(|who| (who, states(std::iter::once(who as u32))))
        .collect();
    let (for_few, delivered) = rounds(10, &updates);
    assert_eq!(delivered, 10 * u64::from(ROUNDS));
    let (for_many, delivered) = rounds(500, &updates);
    assert_eq!(delivered, 500 * u64::from(ROUNDS));
    assert_eq!(for_many, for_few);
}

#[test]
fn a_games_own_messages_share_their_memory() {
    let mut room = Room::new();
    let all = room.fill(2);
    let says = frame(100, &[7; 60]);
    let mut say = |times: u32| {
        for _ in 0..times {
            room.receive(all[1], &says);
            room.tick();
        }
        room.connections.counters().of(Peer::Server).messages_out
    };
    let before = say(WARM_UP);
    let mut after = 0;
    let counted = measure(|| after = say(4000));
    assert_eq!(after - before, 4000);
    let share = counted.count_total as f64 / 4000.0;
    assert!(share < 0.05, "{share} allocations for each message");
}

/// Sixteen thousand messages in one frame, again and again, filled every list on
/// their way to the server, and each kept the memory of the most it ever held.
#[test]
fn what_a_flood_of_small_messages_took_is_given_back() {
    let mut room = Room::new();
    let players = room.fill(3);
    let mut packet = Vec::new();
    for _ in 0..16_000 {
        let message = MessagePack {
            msg_type: 100,
            ..MessagePack::default()
        };
        message.encode_in_packet(&mut packet);
    }
    let snappy = Compressor::new().compress(&packet).unwrap().to_vec();
    let mut flood = frame_header(snappy.len() as u16, Compression::Snappy).to_vec();
    flood.extend(snappy);
    for _ in 0..20 {
        room.tick_and_read();
    }
    let kept = measure(|| {
        for _ in 0..5 {
            room.receive(players[1], &flood);
        }
        // The calm after it, a quarter of a minute.
        for _ in 0..750 {
            room.tick_and_read();
        }
    });
    // What a frame is unpacked into, and what its messages are put together in,
    // stay: half a megabyte of messages of a few bytes.
    assert!(
        kept.bytes_current < 600 << 10,
        "{} bytes",
        kept.bytes_current
    );
}

/// A MiB of empty field masks took twelve while it was decoded, before anything of it
/// was charged.
#[test]
fn a_request_of_half_a_million_values_takes_no_memory_to_be_refused() {
    let mut room = Room::new();
    let all = room.fill(1);
    let subscribe = SubscribedToChannelMessage {
        conn_id: 0,
        sub_options: Some(ChannelSubscriptionOptions {
            data_field_masks: vec![String::new(); 500_000],
            ..ChannelSubscriptionOptions::default()
        }),
    };
    let mut packet = Vec::new();
    let body = subscribe.encode_to_vec();
    let message = MessagePack {
        msg_type: 6,
        body: &body,
        ..MessagePack::default()
    };
    message.encode_in_packet(&mut packet);
    let mut compressor = Compressor::new();
    let payload = compressor.compress(&packet).unwrap();
    let header = frame_header(payload.len() as u16, Compression::Snappy);
    room.connections
        .receive(room.now, all[1], &[&header, payload].concat());
    let counted = measure(|| {
        while let Some(message) = room.connections.poll_bus() {
            room.channels.handle(room.now, SideId(0), message);
        }
    });
    assert!(counted.bytes_max < 64 << 10, "{} bytes", counted.bytes_max);
}
