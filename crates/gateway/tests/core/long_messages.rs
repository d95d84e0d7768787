//! What no single frame can hold.

use lagometer_protocol::any::type_url;
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataHandoverMessage, ChannelDataUpdateMessage,
    CreateChannelMessage, MessagePack as OwnedPack,
};
use lagometer_protocol::messages::tpspb::{EntityChannelData, TestNpcState, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{FVector, PlayerState, SpatialChannelData};
use lagometer_protocol::wire::put_bytes_field;
use lagometer_protocol::{Compression, Compressor, MessagePack, frame_header};
use prost::Message;
use prost_types::Any;

use crate::spatial::{make_entity, row_of_four, walk};
use crate::world::{GLOBAL, Who, World, every, types};

const WORLD: &str = "tpspb.TestRepChannelData";
const ENTITY: &str = "tpspb.EntityChannelData";
const UNKNOWN: &str = "nobody.KnowsThis";

/// A world whose GLOBAL has data of a type, its owner, and a subscriber that
/// has been sent the state.
fn with_data(type_name: &str) -> (World, Who, Who) {
    let mut world = World::new();
    let master = world.server();
    let message = CreateChannelMessage {
        channel_type: 1,
        data: Some(Any {
            type_url: type_url(type_name),
            value: Vec::new(),
        }),
        ..CreateChannelMessage::default()
    };
    world.create_with(master, &message);
    let client = world.client();
    world.subscribe(client, GLOBAL, every(20));
    world.pass(100);
    world.forget_all();
    (world, master, client)
}

/// Sends an update that is longer than a frame before it is compressed.
fn update_packed(world: &mut World, who: Who, type_name: &str, value: Vec<u8>) {
    let update = ChannelDataUpdateMessage {
        data: Some(Any {
            type_url: type_url(type_name),
            value,
        }),
        context_conn_id: 0,
    };
    let mut packet = Vec::new();
    MessagePack {
        msg_type: types::UPDATE,
        body: &update.encode_to_vec(),
        ..MessagePack::default()
    }
    .encode_in_packet(&mut packet);
    let mut compressor = Compressor::new();
    let payload = compressor.compress(&packet).expect("compresses");
    let len = u16::try_from(payload.len()).expect("fits a frame once compressed");
    let frame = [&frame_header(len, Compression::Snappy), payload].concat();
    world.send_bytes(who, &frame);
}

fn values(packs: &[OwnedPack]) -> Vec<Vec<u8>> {
    let of = |pack: &OwnedPack| {
        let update = ChannelDataUpdateMessage::decode(&*pack.msg_body).unwrap();
        update.data.unwrap().value
    };
    packs.iter().map(of).collect()
}

#[test]
fn an_update_longer_than_a_frame_comes_in_several() {
    let (mut world, master, client) = with_data(WORLD);
    let npc = |id| {
        let state = TestNpcState {
            b_moving: Some(id % 2 == 0),
            goal_location: Some(FVector {
                x: Some(1.0),
                y: Some(2.0),
                z: Some(3.0),
            }),
        };
        (id, state)
    };
    let all = TestRepChannelData {
        test_npc_states: (0..4000).map(npc).collect(),
        ..TestRepChannelData::default()
    };
    let late = world.client();
    update_packed(&mut world, master, WORLD, all.encode_to_vec());
    world.pass(40);
    world.subscribe(late, GLOBAL, every(20));
    world.pass(100);
    for who in [client, late] {
        let parts = values(&world.take(who, types::UPDATE));
        assert!(parts.len() > 1);
        assert_eq!(TestRepChannelData::decode(&*parts.concat()).unwrap(), all);
    }
    assert_eq!(world.channels.counters().too_long, 0);
}

#[test]
fn a_field_longer_than_a_frame_is_left_out_counted_and_reported() {
    let (mut world, master, client) = with_data(UNKNOWN);
    let mut value = Vec::new();
    put_bytes_field(&mut value, 1, b"before");
    put_bytes_field(&mut value, 2, &vec![0; 70_000]);
    put_bytes_field(&mut value, 3, b"after");
    while world.channels.poll_event().is_some() {}
    update_packed(&mut world, master, UNKNOWN, value);
    world.pass(40);
    let parts = values(&world.take(client, types::UPDATE));
    assert_eq!(parts.concat(), *b"\x0a\x06before\x1a\x05after");
    assert_eq!(world.channels.counters().too_long, 1);
    let reported = std::iter::from_fn(|| world.channels.poll_event())
        .filter(|event| event.to_string().contains("longer than a frame"))
        .count();
    assert_eq!(reported, 1);

    // Those who come later are sent the state, again without it.
    let late = world.client();
    world.subscribe(late, GLOBAL, every(20));
    world.pass(100);
    let parts = values(&world.take(late, types::UPDATE));
    assert_eq!(parts.concat(), *b"\x0a\x06before\x1a\x05after");
    assert_eq!(world.channels.counters().too_long, 2);
}

#[test]
fn entities_that_cross_together_fill_as_many_messages_as_it_takes() {
    let (mut world, [_, first, second]) = row_of_four(0);
    let here = world.client();
    world.subscribe(here, 65_536 + 1, every(20));
    let ids: Vec<u32> = (0..5).map(|index| 0x80_020 + 2 * index).collect();
    let named = |bytes: usize| EntityChannelData {
        player_state: Some(PlayerState {
            player_name: Some("n".repeat(bytes)),
            ..PlayerState::default()
        }),
        ..EntityChannelData::default()
    };
    for (&id, bytes) in ids.iter().zip([30_000, 30_000, 30_000, 63_000, 30_000]) {
        make_entity(&mut world, first, id, 15.0);
        world.update(first, id, ENTITY, &named(bytes));
    }
    let group = AddEntityGroupMessage {
        r#type: 0,
        entities_to_add: ids.clone(),
    };
    world.send(first, ids[0], 0, types::GROUP_ADD, &group);
    world.pass(100);
    world.forget_all();
    walk(&mut world, first, ids[0], 21.0);
    world.pass(100);

    // Whoever sees only the cell they left needs no data: one message.
    assert_eq!(world.take(here, types::HANDOVER).len(), 1);
    let handovers = world.take(second, types::HANDOVER);
    assert!(handovers.len() > 1);
    let mut crossed = Vec::new();
    for pack in handovers {
        let message = ChannelDataHandoverMessage::decode(&*pack.msg_body).unwrap();
        let data = SpatialChannelData::decode(&*message.data.unwrap().value).unwrap();
        for (id, entity) in data.entities {
            crossed.push((id, entity.entity_data.is_some()));
        }
    }
    crossed.sort_unstable();
    let expected: Vec<(u32, bool)> = ids.iter().map(|&id| (id, id != ids[3])).collect();
    assert_eq!(crossed, expected);
    // What would not have fitted beside its reference comes as a whole state.
    let states: Vec<OwnedPack> = world.take(second, types::UPDATE);
    assert!(states.iter().any(|pack| pack.channel_id == ids[3]));
    assert!(states.iter().all(|pack| pack.channel_id == ids[3]));
    assert_eq!(world.channels.counters().too_long, 0);
}
