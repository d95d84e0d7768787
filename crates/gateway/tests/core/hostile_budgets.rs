//! Clients that ask for much that costs little to ask for, over and over or all
//! for one time, and what it costs the others: nothing.

use std::net::IpAddr;

use lagometer_gateway::core::{Budget, Peer};
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelSubscriptionOptions, CreateChannelMessage,
    CreateEntityChannelMessage,
};

use crate::hostile::{channels, chat, over, room};
use crate::world::{GLOBAL, Who, World, any, every, types, writing};

/// Lets a client, with little work a second, ask for something over and over.
/// How often it was refused for that, and whether it is heard again later.
fn refused_for_work(ask: impl Fn(&mut World, Who, u32)) -> (u64, bool) {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.work_per_second = 100;
    });
    let (server, client) = (world.master(), world.client());
    let chat_room = CreateChannelMessage {
        data: Some(any("chatpb.ChatChannelData", &chat(10))),
        ..room("")
    };
    let channel = world.create_with(server, &chat_room);
    let id = world.id(client);
    world.subscribe_other(server, id, channel, writing(20));
    world.pass(100);
    for _ in 0..400 {
        ask(&mut world, client, channel);
    }
    let refused = over(&world, Peer::Client, Budget::Work);
    world.pass(60_000);
    ask(&mut world, client, channel);
    (refused, over(&world, Peer::Client, Budget::Work) == refused)
}

#[test]
fn updates_subscriptions_and_groups_over_and_over_cost_work() {
    let update = |world: &mut World, client: Who, channel: u32| {
        world.update(client, channel, "chatpb.ChatChannelData", &chat(200));
    };
    let subscribe = |world: &mut World, client: Who, channel: u32| {
        world.subscribe(client, channel, every(20));
    };
    let unsubscribe = |world: &mut World, client: Who, channel: u32| {
        world.unsubscribe(client, channel);
    };
    let create = |world: &mut World, client: Who, _: u32| {
        world.send(client, GLOBAL, 0, types::CREATE, &room("mine"));
    };
    let group = |world: &mut World, client: Who, _: u32| {
        let entity = CreateEntityChannelMessage {
            entity_id: 0x80_001,
            ..CreateEntityChannelMessage::default()
        };
        world.send(client, GLOBAL, 0, types::CREATE_ENTITY, &entity);
        let message = AddEntityGroupMessage {
            r#type: 0,
            entities_to_add: vec![0x80_001; 64],
        };
        world.send(client, 0x80_001, 0, types::GROUP_ADD, &message);
    };
    assert!(matches!(refused_for_work(update), (300.., true)));
    assert!(matches!(refused_for_work(subscribe), (200.., true)));
    assert!(matches!(refused_for_work(unsubscribe), (200.., true)));
    assert!(matches!(refused_for_work(create), (200.., true)));
    assert!(matches!(refused_for_work(group), (300.., true)));
}

#[test]
fn channels_that_outlive_the_clients_that_made_them_are_bounded() {
    let mut world = World::with(|_, channels| channels.budgets.orphaned_channels = 20);
    // Test channels stay when their owner goes.
    for _ in 0..10 {
        let client = world.client();
        for _ in 0..8 {
            world.create(client, 100);
        }
        world.hang_up(client);
    }
    assert_eq!(channels(&world), 1 + 20);
}

#[test]
fn whoever_leaves_channels_behind_over_and_over_pushes_out_its_own_alone() {
    let mut world = World::with(|_, channels| channels.budgets.orphaned_channels = 20);
    let leave = |world: &mut World, address: u8, count: usize| -> Vec<u32> {
        let address = IpAddr::from([10, 0, 0, address]);
        let who = world.join_from(Peer::Client, address);
        let made = (0..count).map(|_| world.create(who, 100)).collect();
        world.hang_up(who);
        made
    };
    let of_player = leave(&mut world, 1, 5);
    for _ in 0..30 {
        leave(&mut world, 2, 8);
    }
    assert_eq!(channels(&world), 1 + 20);
    let server = world.server();
    for id in of_player {
        world.subscribe(server, id, every(20));
        assert_eq!(world.take(server, types::SUB).len(), 1, "channel {id}");
    }
}
