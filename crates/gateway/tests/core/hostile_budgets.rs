//! Clients that ask for much that costs little to ask for, over and over or all
//! for one time, and what it costs the others: nothing.

use std::net::IpAddr;

use lagometer_gateway::core::{Budget, CloseReason, Grid, Peer};
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelSubscriptionOptions, CreateChannelMessage,
    CreateEntityChannelMessage, ListChannelMessage, QuerySpatialChannelMessage, SpatialInfo,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};

use lagometer_protocol::{Compression, MessagePack, frame_header};

use crate::hostile::{channels, chat, over, room};
use crate::world::{GLOBAL, Who, World, any, every, types, writing};

/// A message of the game's own.
const USER_MESSAGE: u32 = 101;

/// A frame of messages of the game's own, and an unfinished one behind them.
fn frame_with_broken_end(count: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    for _ in 0..count {
        let message = MessagePack {
            msg_type: USER_MESSAGE,
            ..MessagePack::default()
        };
        message.encode_in_packet(&mut packet);
    }
    packet.push(0x0a);
    let len = u16::try_from(packet.len()).unwrap();
    [&frame_header(len, Compression::None), packet.as_slice()].concat()
}

/// A megabyte of them was walked through, recorded, and sixteen thousand were handed
/// on, for a frame that then cost its sender nothing but to come again.
#[test]
fn of_a_frame_with_more_messages_than_a_client_may_send_none_is_taken_and_the_rest_not_looked_at() {
    let mut world = World::new();
    let master = world.master();
    for (count, of_login) in [(4_097, false), (513, true)] {
        let (client, budget) = if of_login {
            (world.connect(Peer::Client), Budget::LoginMessages)
        } else {
            (world.client(), Budget::Messages)
        };
        let before = over(&world, Peer::Client, budget);
        world.send_bytes(client, &frame_with_broken_end(count));
        assert_eq!(
            world.peers[client].closed,
            Some(CloseReason::OverBudget(budget))
        );
        assert_eq!(over(&world, Peer::Client, budget), before + 1);
        assert_eq!(world.take(master, USER_MESSAGE).len(), 0);
    }
    // One that may be so long is looked at to its end.
    let client = world.client();
    world.send_bytes(client, &frame_with_broken_end(4_096));
    assert_eq!(world.peers[client].closed, Some(CloseReason::BadBytes));
}

/// Lets a client, with little work a second, ask for something over and over.
/// How often it was refused for that, and whether it is served again later.
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
fn states_by_the_hundred_due_at_one_time_are_sent_over_several_ticks_and_others_not_held_up() {
    let mut world = World::new();
    let (server, player) = (world.server(), world.client());
    let hoarders: Vec<Who> = (0..4).map(|_| world.client()).collect();
    let large = CreateChannelMessage {
        data: Some(any("chatpb.ChatChannelData", &chat(60_000))),
        ..room("")
    };
    let rooms: Vec<u32> = (0..100)
        .map(|_| world.create_with(server, &large))
        .collect();
    // All are due at one time, and a mask has each encoded for its reader alone.
    let late = |world: &World| ChannelSubscriptionOptions {
        data_field_masks: vec!["chatMessages".into()],
        fan_out_delay_ms: Some(10_000 - (world.now.as_millis() as i32)),
        ..every(1000)
    };
    for &who in &hoarders {
        for &room in &rooms {
            let options = late(&world);
            world.subscribe(who, room, options);
        }
    }
    let options = late(&world);
    world.subscribe(player, rooms[0], options);
    world.forget_all();
    let states = |world: &mut World, who: Who| world.take(who, types::UPDATE).len();
    world.pass(11_000);
    let first: usize = hoarders.iter().map(|&who| states(&mut world, who)).sum();
    assert!((8..12).contains(&first), "512 KiB of 60 kB: {first}");
    world.pass(10);
    assert_eq!(states(&mut world, player), 1, "it waits for one turn");
    world.pass(1000);
    let all: usize = hoarders.iter().map(|&who| states(&mut world, who)).sum();
    assert_eq!(first + all, 400, "nothing is lost");
}

#[test]
fn subscribing_and_leaving_while_states_wait_keeps_one_turn_for_a_subscription() {
    let mut world = World::new();
    let (server, hoarder, hasty) = (world.server(), world.client(), world.client());
    let large = CreateChannelMessage {
        data: Some(any("chatpb.ChatChannelData", &chat(60_000))),
        ..room("")
    };
    let masked = ChannelSubscriptionOptions {
        data_field_masks: vec!["chatMessages".into()],
        fan_out_delay_ms: Some(0),
        ..every(20)
    };
    let rooms: Vec<u32> = (0..100)
        .map(|_| world.create_with(server, &large))
        .collect();
    for &room in &rooms {
        world.subscribe(hoarder, room, masked.clone());
    }
    // The first tick cannot send them all: what is due now has to wait.
    world.pass(20);
    for _ in 0..50 {
        for &room in &rooms[..20] {
            let at_once = ChannelSubscriptionOptions {
                skip_first_fan_out: Some(false),
                ..masked.clone()
            };
            world.subscribe(hasty, room, at_once);
        }
        world.pass(1);
        for &room in &rooms[..20] {
            world.unsubscribe(hasty, room);
        }
        // That who has a turn is subscribed is checked here.
        world.check();
    }
    world.pass(1000);
    let states = world.take(hoarder, types::UPDATE).len();
    assert_eq!(states, 100, "nothing is lost");
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

/// Asks for a list; whether it is answered.
fn lists(world: &mut World, who: Who) -> bool {
    world.send(who, GLOBAL, 0, types::LIST, &ListChannelMessage::default());
    !world.take(who, types::LIST).is_empty()
}

/// How many LISTs of a client are answered before one is refused.
fn lists_answered(world: &mut World, who: Who) -> usize {
    (0..1000).take_while(|_| lists(world, who)).count()
}

fn with_little_work() -> World {
    World::with(|_, channels| channels.budgets.clients.work_per_second = 100)
}

#[test]
fn who_hangs_up_and_comes_again_has_a_quarter_of_a_seconds_work_and_no_more() {
    let mut world = with_little_work();
    let home = IpAddr::from([10, 0, 0, 1]);
    let first = world.join_from(Peer::Client, home);
    let fresh = lists_answered(&mut world, first);
    world.hang_up(first);
    for _ in 0..10 {
        let client = world.join_from(Peer::Client, home);
        let again = lists_answered(&mut world, client);
        // Its first requests are not refused because of another's.
        assert!(again > 0 && again <= fresh / 3, "{again} of {fresh}");
        world.hang_up(client);
    }
    // Neither others nor who comes later on have less.
    let other = world.join_from(Peer::Client, IpAddr::from([10, 0, 0, 2]));
    assert_eq!(lists_answered(&mut world, other), fresh);
    world.pass(60_000);
    let later = world.join_from(Peer::Client, home);
    assert_eq!(lists_answered(&mut world, later), fresh);
}

fn set_forgeable(world: &mut World, who: Who, is_forgeable: bool) {
    let (side, key) = (world.peers[who].side, world.peers[who].key);
    world.sides[side].set_address_forgeable(key, is_forgeable);
}

/// Logs in under an address that may be another's.
fn join_forging(world: &mut World, address: IpAddr) -> Who {
    let who = world.connect_from(Peer::Client, Some(address));
    set_forgeable(world, who, true);
    world.log_in(who, "player");
    who
}

#[test]
fn who_may_be_elsewhere_leaves_no_work_to_the_source_prefix_it_names() {
    let mut world = with_little_work();
    let home = IpAddr::from([10, 0, 0, 1]);
    let forging = join_forging(&mut world, home);
    let fresh = lists_answered(&mut world, forging);
    world.hang_up(forging);
    let neighbour = world.join_from(Peer::Client, home);
    assert_eq!(lists_answered(&mut world, neighbour), fresh);
    world.hang_up(neighbour);

    // Nor does it take over what is owed there, until it is shown to be there.
    let unproven = join_forging(&mut world, home);
    let proven = join_forging(&mut world, home);
    set_forgeable(&mut world, proven, false);
    assert!(lists_answered(&mut world, proven) <= fresh / 3);
    assert_eq!(lists_answered(&mut world, unproven), fresh);
}

#[test]
fn ending_thousands_of_subscriptions_by_hanging_up_costs_work() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.work_per_second = 1000;
    });
    let (server, home) = (world.server(), IpAddr::from([10, 0, 0, 1]));
    let rooms: Vec<u32> = (0..600).map(|_| world.create(server, 3)).collect();
    let client = world.join_from(Peer::Client, home);
    for room in rooms {
        world.subscribe(client, room, every(20));
        world.pass(20);
    }
    assert_eq!(over(&world, Peer::Client, Budget::Work), 0);
    world.pass(60_000);
    world.hang_up(client);
    let other = world.join_from(Peer::Client, IpAddr::from([10, 0, 0, 2]));
    let fresh = lists_answered(&mut world, other);
    let again = world.join_from(Peer::Client, home);
    let left = lists_answered(&mut world, again);
    assert!(left < fresh, "{left} of {fresh}");
    world.pass(60_000);
    assert_eq!(lists_answered(&mut world, again), fresh);
}

#[test]
fn the_lists_of_a_server_have_a_budget_of_their_own() {
    let mut world = World::with(|_, channels| {
        channels.budgets.servers.list_work_per_second = 100;
    });
    let server = world.master();
    assert!(lists(&mut world, server));
    while lists(&mut world, server) {}
    assert_eq!(over(&world, Peer::Server, Budget::Work), 1);
    // Whatever else it asks for is done.
    assert!(world.create(server, 3) > 0);
    world.pass(60_000);
    assert!(lists(&mut world, server));
}

#[test]
fn requests_of_very_many_values_are_refused_before_they_are_decoded() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.work_per_second = 10_000;
    });
    let (server, client) = (world.master(), world.client());
    let chat_room = CreateChannelMessage {
        data: Some(any("chatpb.ChatChannelData", &chat(10))),
        ..room("")
    };
    let chat_channel = world.create_with(server, &chat_room);
    let id = world.id(client);
    world.subscribe_other(server, id, chat_channel, writing(20));
    // Two bytes each.
    let masks = ChannelSubscriptionOptions {
        data_field_masks: vec![String::new(); 20_000],
        ..every(20)
    };
    let data = ChatChannelData {
        chat_messages: vec![ChatMessage::default(); 20_000],
    };
    let list = ListChannelMessage {
        metadata_filters: vec![String::new(); 20_000],
        ..ListChannelMessage::default()
    };
    let create = CreateChannelMessage {
        data: Some(any("chatpb.ChatChannelData", &data)),
        ..room("")
    };
    let other_room = world.create(server, 3);
    let channels_before = channels(&world);
    let updates = world.channels.counters().types.map(|one| one.updates);
    for attempt in 1..=4 {
        world.pass(60_000);
        world.forget_all();
        match attempt {
            1 => world.subscribe(client, other_room, masks.clone()),
            2 => world.update(client, chat_channel, "chatpb.ChatChannelData", &data),
            3 => world.send(client, GLOBAL, 1, types::LIST, &list),
            _ => world.send(client, GLOBAL, 1, types::CREATE, &create),
        }
        assert_eq!(over(&world, Peer::Client, Budget::Work), attempt);
        assert!(world.types(client).is_empty(), "attempt {attempt}");
    }
    assert_eq!(channels(&world), channels_before);
    assert_eq!(
        world.channels.counters().types.map(|one| one.updates),
        updates
    );
    for other in [Budget::Masks, Budget::Filters] {
        assert_eq!(over(&world, Peer::Client, other), 0, "it was decoded");
    }
    // A server's are read: it is trusted with as many.
    world.update(server, chat_channel, "chatpb.ChatChannelData", &data);
    assert_ne!(
        world.channels.counters().types.map(|one| one.updates),
        updates
    );
}

#[test]
fn asking_where_places_lie_costs_work() {
    // By clients that a settings file lets ask.
    let grid = r#"{ "Config": { "WorldOffsetX": 0, "WorldOffsetZ": 0, "GridWidth": 10,
        "GridHeight": 10, "GridCols": 4, "GridRows": 1, "ServerCols": 2, "ServerRows": 1 } }"#;
    let mut world = World::with(|connections, channels| {
        connections.client_fsm = connections.server_fsm.clone();
        channels.grid = Some(Grid::from_json(grid).unwrap());
    });
    let client = world.client();
    let asked = QuerySpatialChannelMessage {
        spatial_info: vec![SpatialInfo::default(); 400],
    };
    for _ in 0..3000 {
        world.send(client, GLOBAL, 7, types::QUERY, &asked);
    }
    assert!(over(&world, Peer::Client, Budget::Work) > 0);
}
