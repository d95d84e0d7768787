//! What the hot paths cost, side by side with the protobuf library doing the
//! same with generated types: `cargo bench -p lagometer-protocol`.
//!
//! Each pair is measured in turn, several times, and the fastest round counts:
//! on a shared machine only the ratios mean something.

use std::hint::black_box;
use std::time::Instant;

use lagometer_protocol::merge::{MergeContext, MergeLimits, State, Window};
use lagometer_protocol::messages::channeldpb;
use lagometer_protocol::messages::tpspb::{EntityChannelData, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{ActorState, FRepMovement, FVector};
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{
    ChannelDataUpdate, FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet,
    encode_update_head_in_packet, update_body,
};
use prost::Message;

const ENTITY_URL: &str = "type.googleapis.com/tpspb.EntityChannelData";
const WORLD_URL: &str = "type.googleapis.com/tpspb.TestRepChannelData";
const PLAYERS: u32 = 200;
const CONTEXT: MergeContext = MergeContext {
    options: None,
    now_unix_ms: 0,
};

fn main() {
    let entity_packet = packet_of_entities(50);
    compare(
        "read a packet of 50 entity updates",
        50,
        || read(&entity_packet),
        || read_owned(&entity_packet),
    );

    let value = walking(1.0).encode_to_vec();
    let mut out = Vec::new();
    compare(
        "write an entity update",
        1,
        || {
            out.clear();
            encode_update_head_in_packet(0x80000, ENTITY_URL, value.len(), &mut out);
            out.extend_from_slice(&value);
            out.len()
        },
        || write_owned(&value),
    );

    let mut builder = FrameBuilder::new();
    builder.push_encoded(&entity_packet).expect("it fits");
    let frame = builder.finish().expect("it is not empty").to_vec();
    alone("find a frame in a stream", 1, || {
        let mut decoder = FrameDecoder::new(FrameLimits::default());
        let mut stream = &frame[..];
        decoder
            .next(&mut stream)
            .expect("it is whole")
            .map(|frame| frame.payload.len())
    });

    let schema = Schema::bundled();
    let mut state = State::new(
        schema.find("tpspb.EntityChannelData"),
        MergeLimits::default(),
    );
    let mut owned = EntityChannelData::default();
    compare(
        "merge a step into an entity",
        1,
        || state.merge(&value, &CONTEXT),
        || owned.merge(&*value),
    );

    let steps: Vec<Vec<u8>> = (0..PLAYERS).map(|id| world([id]).encode_to_vec()).collect();
    let all = world(0..PLAYERS).encode_to_vec();
    let mut state = State::new(
        schema.find("tpspb.TestRepChannelData"),
        MergeLimits::default(),
    );
    alone(
        "merge one update of 200 players into the world",
        PLAYERS,
        || state.merge(&all, &CONTEXT),
    );
    alone("encode the world of 200 players", PLAYERS, || {
        state.to_bytes().len()
    });

    let mut window = Window::new(
        schema.find("tpspb.TestRepChannelData"),
        MergeLimits::default(),
    );
    alone(
        "merge and encode a window of 200 players' steps",
        PLAYERS,
        || {
            window.clear();
            for (sender, step) in (0..).zip(&steps) {
                let _ = black_box(window.merge(sender, step, &CONTEXT));
            }
            window.encode().all().len()
        },
    );
    println!("({WORLD_URL}: {} bytes)", all.len());
}

/// A character that walks straight.
fn walking(at: f32) -> EntityChannelData {
    EntityChannelData {
        actor_state: Some(actor(at)),
        ..EntityChannelData::default()
    }
}

fn actor(at: f32) -> ActorState {
    ActorState {
        replicated_movement: Some(FRepMovement {
            location: Some(FVector {
                x: Some(at),
                y: Some(-at),
                z: None,
            }),
            ..FRepMovement::default()
        }),
        ..ActorState::default()
    }
}

fn world(ids: impl IntoIterator<Item = u32>) -> TestRepChannelData {
    TestRepChannelData {
        actor_states: ids
            .into_iter()
            .map(|id| (0x80000 + 2 * id, actor(5.0)))
            .collect(),
        ..TestRepChannelData::default()
    }
}

fn packet_of_entities(count: u32) -> Vec<u8> {
    let mut packet = Vec::new();
    for id in 0..count {
        MessagePack {
            channel_id: 0x80000 + 2 * id,
            msg_type: 8,
            body: &update_body(ENTITY_URL, &walking(3.0).encode_to_vec()),
            ..MessagePack::default()
        }
        .encode_in_packet(&mut packet);
    }
    packet
}

fn read(packet: &[u8]) -> usize {
    let packet = Packet::new_checked(packet).expect("it is sound");
    packet
        .messages()
        .filter_map(|message| ChannelDataUpdate::parse(message.body).ok()?.data)
        .map(|data| data.value.len())
        .sum()
}

fn read_owned(packet: &[u8]) -> usize {
    let packet = channeldpb::Packet::decode(packet).expect("it is sound");
    packet
        .messages
        .iter()
        .filter_map(|message| {
            channeldpb::ChannelDataUpdateMessage::decode(&*message.msg_body)
                .ok()?
                .data
        })
        .map(|data| data.value.len())
        .sum()
}

fn write_owned(value: &[u8]) -> usize {
    let body = channeldpb::ChannelDataUpdateMessage {
        data: Some(prost_types::Any {
            type_url: ENTITY_URL.to_owned(),
            value: value.to_vec(),
        }),
        context_conn_id: 0,
    };
    let packet = channeldpb::Packet {
        messages: vec![channeldpb::MessagePack {
            channel_id: 0x80000,
            msg_type: 8,
            msg_body: body.encode_to_vec().into(),
            ..Default::default()
        }],
    };
    packet.encode_to_vec().len()
}

fn compare<A, B>(
    what: &str,
    items: u32,
    mut ours: impl FnMut() -> A,
    mut theirs: impl FnMut() -> B,
) {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..9 {
        best[0] = best[0].min(time(&mut ours));
        best[1] = best[1].min(time(&mut theirs));
    }
    let [ours, theirs] = best.map(|ns| ns / f64::from(items));
    println!(
        "{what:50} {ours:8.1} ns each, library {theirs:8.1} ns: {:.1} times",
        theirs / ours
    );
}

fn alone<A>(what: &str, items: u32, mut ours: impl FnMut() -> A) {
    let best = (0..9)
        .map(|_| time(&mut ours))
        .fold(f64::INFINITY, f64::min);
    println!("{what:50} {:8.1} ns each", best / f64::from(items));
}

/// Nanoseconds for one call.
fn time<A>(call: &mut impl FnMut() -> A) -> f64 {
    let mut calls = 0_u32;
    let start = Instant::now();
    while start.elapsed().as_millis() < 10 {
        for _ in 0..16 {
            black_box(call());
        }
        calls += 16;
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}
