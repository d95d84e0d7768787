//! Channel data that costs more to keep, merge or send than it did to bring: whoever
//! brings it pays, and the rest is bounded.

use std::net::IpAddr;

use lagometer_gateway::core::{Budget, Peer};
use lagometer_protocol::messages::channeldpb::{
    ChannelDataMergeOptions, ChannelSubscriptionOptions, CreateChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::messages::unrealpb::{SpatialChannelData, SpatialEntityState};
use lagometer_protocol::{any, messages::channeldpb::ChannelDataUpdateMessage};
use prost::Message;
use prost_types::Any;

use crate::hostile::{channels, chat, over, room};
use crate::spatial::{make_entity, row_of_four};
use crate::world::{Who, World, any as any_of, every, types, writing};

const CHAT: &str = "chatpb.ChatChannelData";

fn dropped(world: &World) -> u64 {
    world.channels.counters().dropped
}

/// A list of what is dated an hour ahead is never too old to be kept, and was looked
/// through at every update: ten thousand updates in one frame stopped the gateway for
/// three quarters of a minute.
#[test]
fn who_has_a_long_list_looked_through_at_every_update_pays_for_it() {
    let mut world = World::new();
    let client = world.client();
    let ahead = |content: &str| ChatMessage {
        content: content.into(),
        send_time: i64::MAX / 4,
        ..ChatMessage::default()
    };
    let list = ChatChannelData {
        chat_messages: vec![ahead(""); 4000],
    };
    let made = world.create_with(
        client,
        &CreateChannelMessage {
            data: Some(any_of(CHAT, &list)),
            merge_options: Some(ChannelDataMergeOptions {
                list_size_limit: 1,
                truncate_top: true,
                ..ChannelDataMergeOptions::default()
            }),
            ..room("")
        },
    );
    let update = ChatChannelData {
        chat_messages: vec![ahead("x")],
    };
    for _ in 0..300 {
        world.update(client, made, CHAT, &update);
    }
    let refused = over(&world, Peer::Client, Budget::Work);
    assert!(
        (240..=265).contains(&refused),
        "4,000 of 200,000 each: {refused}"
    );
}

fn npc(id: u32, moving: bool) -> TestRepChannelData {
    let state = TestNpcState {
        b_moving: Some(moving),
        ..TestNpcState::default()
    };
    TestRepChannelData {
        test_npc_states: [(id, state)].into(),
        ..TestRepChannelData::default()
    }
}

/// A room of a server's that `clients` clients write to.
fn shared_room(world: &mut World, clients: usize) -> (Who, Vec<Who>, u32) {
    let server = world.server();
    let channel = world.create_with(
        server,
        &CreateChannelMessage {
            data: Some(any_of("tpspb.TestRepChannelData", &npc(1, false))),
            ..room("")
        },
    );
    let clients: Vec<Who> = (0..clients).map(|_| world.client()).collect();
    for &client in &clients {
        world.subscribe(client, channel, writing(20));
    }
    world.pass(100);
    world.forget_all();
    (server, clients, channel)
}

fn windows(world: &World) -> u64 {
    let types = world.channels.counters().types;
    types.iter().map(|one| one.windows).sum()
}

/// Where many write to the same entry nobody's own part can be cut out of what they all
/// wrote, and each had a window of its own merged: twenty clients stopped the gateway.
#[test]
fn windows_without_ones_own_updates_are_few_where_all_write_to_one_entry() {
    let mut world = World::new();
    let (_, clients, channel) = shared_room(&mut world, 20);
    let before = windows(&world);
    for &client in &clients {
        world.update(client, channel, "tpspb.TestRepChannelData", &npc(1, true));
    }
    world.pass(60);
    let built = windows(&world) - before;
    assert!(
        (2..=12).contains(&built),
        "one for all and eight apart: {built}"
    );
    // Everybody is notified, those beyond the first few of what they sent, too.
    for &client in &clients {
        assert!(!world.take(client, types::UPDATE).is_empty());
    }
}

#[test]
fn such_windows_end_where_they_would_cost_more_than_a_client_may() {
    let update = TestRepChannelData {
        test_npc_states: (0..20)
            .flat_map(|id| npc(id, true).test_npc_states)
            .collect(),
        ..TestRepChannelData::default()
    };
    let built = |work_per_second: u32| {
        let mut world = World::with(|_, channels| {
            channels.budgets.clients.work_per_second = work_per_second;
        });
        let (_, clients, channel) = shared_room(&mut world, 2);
        let before = windows(&world);
        for _ in 0..300 {
            for &client in &clients {
                world.update(client, channel, "tpspb.TestRepChannelData", &update);
            }
            world.pass(2);
        }
        windows(&world) - before
    };
    let (unlimited, limited) = (built(u32::MAX), built(3000));
    assert!(limited < unlimited * 2 / 3, "{limited} of {unlimited}");
}

/// Forty channels of a MB made and left by each of a hundred connections were 2 GB that
/// stayed.
#[test]
fn channels_that_outlive_their_makers_hold_no_more_data_than_allowed() {
    let mut world = World::with(|_, channels| {
        channels.budgets.orphaned_data_bytes = 100_000;
        channels.budgets.clients.work_per_second = u32::MAX;
    });
    let leave = |world: &mut World, address: u8, count: usize, bytes: usize| {
        let who = world.join_from(Peer::Client, IpAddr::from([10, 0, 0, address]));
        let large = CreateChannelMessage {
            channel_type: 100,
            data: Some(any_of(CHAT, &chat(bytes))),
            ..CreateChannelMessage::default()
        };
        for _ in 0..count {
            world.create_with(who, &large);
        }
        world.hang_up(who);
    };
    leave(&mut world, 1, 5, 1000);
    for _ in 0..10 {
        leave(&mut world, 2, 4, 30_000);
    }
    // Those of the other address stay, and three of the large ones.
    assert_eq!(channels(&world), 1 + 5 + 3);
}

/// So many channels with data that outlived the client that made them, and another
/// client that may write to all.
fn outlived(world: &mut World, count: usize, data: &Any) -> (Who, Vec<u32>) {
    let (maker, writer) = (world.client(), world.client());
    let made = CreateChannelMessage {
        channel_type: 100,
        data: Some(data.clone()),
        ..CreateChannelMessage::default()
    };
    let ids: Vec<u32> = (0..count)
        .map(|_| world.create_with(maker, &made))
        .collect();
    for &id in &ids {
        world.subscribe(writer, id, writing(20));
    }
    world.hang_up(maker);
    (writer, ids)
}

/// A field of so many bytes in data of a type that the gateway does not know.
fn unknown(bytes: usize) -> Any {
    let length = [0x80 | (bytes % 128) as u8, (bytes / 128) as u8];
    Any {
        type_url: any::type_url("x.Nothing"),
        value: [&[0x0a][..], &length, &vec![7; bytes]].concat(),
    }
}

fn update_of(data: Any) -> ChannelDataUpdateMessage {
    ChannelDataUpdateMessage {
        data: Some(data),
        ..ChannelDataUpdateMessage::default()
    }
}

/// They were weighed when their makers left: ten bytes in each, and 24 MB after that.
#[test]
fn channels_that_outlive_their_makers_and_grow_hold_no_more_data_than_allowed() {
    let mut world = World::with(|_, channels| {
        channels.budgets.orphaned_data_bytes = 100_000;
        channels.budgets.clients.work_per_second = u32::MAX;
    });
    let (writer, ids) = outlived(&mut world, 20, &any_of(CHAT, &chat(10)));
    assert_eq!(channels(&world), 1 + 20);
    for id in ids {
        world.update(writer, id, CHAT, &chat(30_000));
    }
    let left = channels(&world);
    assert!((1 + 1..=1 + 4).contains(&left), "{left} channels");
}

/// A MB of updates could wait in each of a thousand of them.
#[test]
fn updates_of_a_channel_that_outlived_its_maker_do_not_wait_by_the_megabyte() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.data_bytes = 2 << 20;
        channels.budgets.clients.channel_data_bytes = 32 << 10;
        channels.budgets.clients.work_per_second = u32::MAX;
    });
    let (writer, ids) = outlived(&mut world, 1, &unknown(200));
    let reader = world.client();
    world.subscribe(reader, ids[0], every(60_000));
    // Until it has been sent the whole state and waits for its next window.
    world.pass(61_000);
    world.forget_all();
    for _ in 0..10 {
        let update = update_of(unknown(2_000));
        world.send(writer, ids[0], 0, types::UPDATE, &update);
        world.pass(20);
    }
    assert_eq!(world.take(reader, types::UPDATE).len(), 0, "20 kB may wait");
    for _ in 0..40 {
        let update = update_of(unknown(2_000));
        world.send(writer, ids[0], 0, types::UPDATE, &update);
        world.pass(20);
    }
    assert!(!world.take(reader, types::UPDATE).is_empty());
}

/// Its type was the channel's for good: a server that made the channel without data could
/// say nothing in it any more.
#[test]
fn the_first_data_of_a_client_does_not_decide_of_which_type_a_servers_channel_is() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.shared_data_bytes = 1000;
    });
    let (server, client, listener) = (world.server(), world.client(), world.client());
    let channel = world.create_with(server, &room(""));
    world.subscribe(client, channel, writing(20));
    world.subscribe(listener, channel, every(20));
    world.send(client, channel, 0, types::UPDATE, &update_of(unknown(2000)));
    assert_eq!(over(&world, Peer::Client, Budget::Data), 1, "nor how much");
    world.send(client, channel, 0, types::UPDATE, &update_of(unknown(200)));
    world.pass(100);
    world.forget_all();
    world.update(server, channel, CHAT, &chat(10));
    world.pass(100);
    assert_eq!(
        world.updates::<ChatChannelData>(listener, channel),
        [chat(10)]
    );
    // From then on it is the server's: its type stays.
    let before = dropped(&world);
    world.send(client, channel, 0, types::UPDATE, &update_of(unknown(200)));
    world.send(server, channel, 0, types::UPDATE, &update_of(unknown(200)));
    assert_eq!(dropped(&world), before + 2);
}

/// Data of a type that the gateway does not know grows by every update, and began afresh
/// with the one that was too much: five bytes of a client took a server's whole data.
#[test]
fn a_client_takes_nothing_away_of_a_servers_data_of_unknown_type() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.shared_data_bytes = 1000;
    });
    let unknown = |value: Vec<u8>| Any {
        type_url: any::type_url("x.Game"),
        value,
    };
    // A field of bytes.
    let field = |length: u8| [&[0x0a, length][..], &vec![7; usize::from(length)]].concat();
    let (server, client) = (world.server(), world.client());
    let state = field(100).repeat(11);
    let channel = world.create_with(
        server,
        &CreateChannelMessage {
            data: Some(unknown(state.clone())),
            ..room("")
        },
    );
    world.subscribe(client, channel, writing(20));
    let listener = world.client();
    world.subscribe(listener, channel, every(20));
    world.pass(100);
    world.forget_all();
    let update = ChannelDataUpdateMessage {
        data: Some(unknown(field(3))),
        ..ChannelDataUpdateMessage::default()
    };
    world.send(client, channel, 0, types::UPDATE, &update);
    world.pass(100);
    // Subscribers receive it.
    let received = ChannelDataUpdateMessage::decode(&*world.one(listener, types::UPDATE).msg_body);
    assert_eq!(received.unwrap().data.unwrap().value, field(3));
    assert_eq!(over(&world, Peer::Client, Budget::Data), 1);
    // Who comes receives what the server has put there.
    let newcomer = world.client();
    world.subscribe(newcomer, channel, every(20));
    world.pass(100);
    let notice = ChannelDataUpdateMessage::decode(&*world.one(newcomer, types::UPDATE).msg_body);
    assert_eq!(notice.unwrap().data.unwrap().value, state);
}

/// With access to a cell's data a client could end the channels of all entities there
/// are.
#[test]
fn a_client_that_removes_an_entity_from_a_cell_does_not_end_its_channel() {
    let (mut world, [_, first, _]) = row_of_four(0);
    let entity = 0x0008_0001;
    make_entity(&mut world, first, entity, 5.0);
    let client = world.client();
    let (id, cell) = (world.id(client), 65_536);
    world.subscribe_other(first, id, cell, writing(20));
    world.pass(100);
    let removal = SpatialChannelData {
        entities: [(
            entity,
            SpatialEntityState {
                removed: true,
                ..SpatialEntityState::default()
            },
        )]
        .into(),
    };
    let (before, refused) = (channels(&world), dropped(&world));
    world.update(client, cell, "unrealpb.SpatialChannelData", &removal);
    assert_eq!(channels(&world), before);
    assert_eq!(dropped(&world), refused + 1);
    // Its server may.
    world.update(first, cell, "unrealpb.SpatialChannelData", &removal);
    assert_eq!(channels(&world), before - 1);
}

/// What a mask leaves out of a whole state has been encoded all the same.
#[test]
fn a_whole_state_of_which_a_mask_keeps_nothing_is_paid_as_a_whole() {
    let mut world = World::with(|_, channels| channels.budgets.clients.work_per_second = 10_000);
    let server = world.server();
    let client = world.client();
    let id = world.id(client);
    let channel = world.create_with(
        server,
        &CreateChannelMessage {
            data: Some(any_of(CHAT, &chat(40_000))),
            ..room("")
        },
    );
    let options = ChannelSubscriptionOptions {
        data_field_masks: vec!["nothing".into()],
        ..every(20)
    };
    let mut refused = Vec::new();
    for _ in 0..60 {
        world.subscribe_other(server, id, channel, options.clone());
        world.pass(50);
        world.unsubscribe(client, channel);
        refused.push(over(&world, Peer::Client, Budget::Work));
    }
    assert!(
        refused.last() > Some(&0),
        "2,500 units each, and 500 given back: {refused:?}"
    );
}
