//! Attacks of peers that are let in, each as it was made on a gateway that fell to
//! it.

use lagometer_gateway::core::{
    Budget, ChannelTypes, ClientRights, CloseReason, Event, Peer, Recovery,
};
use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelSubscriptionOptions, CreateChannelMessage,
    CreateEntityChannelMessage, ListChannelMessage, ListChannelResultMessage,
    SubscribedToChannelResultMessage, UnsubscribedFromChannelMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::tpspb::EntityChannelData;
use prost::Message;

use crate::world::{GLOBAL, Who, World, any, every, login, types, writing};

pub(crate) fn over(world: &World, peer: Peer, budget: Budget) -> u64 {
    let mut all = world.channels.counters().over_budget;
    for side in &world.sides {
        all.add(&side.counters().over_budget);
    }
    all.of(peer, budget)
}

pub(crate) fn channels(world: &World) -> u64 {
    let types = world.channels.counters().types;
    types.iter().map(|one| one.channels).sum()
}

/// Whether the peer still owns GLOBAL: a client's message reaches it.
fn is_owner_of_global(world: &mut World, master: Who, client: Who) -> bool {
    world.take(master, types::GAME);
    world.forward(client, GLOBAL, 0, 0, b"anyone?");
    !world.take(master, types::GAME).is_empty()
}

fn unsubscribe_other(world: &mut World, who: Who, channel: u32, victim: Who) {
    let conn_id = world.id(victim);
    let message = UnsubscribedFromChannelMessage { conn_id };
    world.send(who, channel, 6, types::UNSUB, &message);
}

/// What asks to own GLOBAL.
fn global() -> CreateChannelMessage {
    CreateChannelMessage {
        channel_type: 1,
        ..CreateChannelMessage::default()
    }
}

pub(crate) fn room(metadata: impl Into<String>) -> CreateChannelMessage {
    CreateChannelMessage {
        channel_type: 3,
        metadata: metadata.into(),
        ..CreateChannelMessage::default()
    }
}

pub(crate) fn chat(bytes: usize) -> ChatChannelData {
    ChatChannelData {
        chat_messages: vec![ChatMessage {
            content: "x".repeat(bytes),
            ..ChatMessage::default()
        }],
    }
}

#[test]
fn a_client_cannot_unseat_the_game_server_or_others() {
    let mut world = World::new();
    let (master, client, other) = (world.master(), world.client(), world.client());
    unsubscribe_other(&mut world, client, GLOBAL, master);
    assert!(is_owner_of_global(&mut world, master, client));
    let subworld = world.create(master, 3);
    world.subscribe(other, subworld, every(20));
    world.forget_all();
    unsubscribe_other(&mut world, client, subworld, other);
    assert!(world.types(other).is_empty(), "it stays subscribed");
    // Itself it may unsubscribe, and a server may unsubscribe anyone.
    world.unsubscribe(other, subworld);
    assert_eq!(world.types(other), [types::UNSUB]);
    world.subscribe(other, GLOBAL, every(20));
    world.forget_all();
    let server = world.server();
    unsubscribe_other(&mut world, server, GLOBAL, other);
    assert_eq!(world.types(other), [types::UNSUB]);
}

#[test]
fn settings_files_that_let_anyone_unsubscribe_others_are_obeyed() {
    let mut world = World::with(|_, channels| channels.types = ChannelTypes::open());
    let (master, client) = (world.master(), world.client());
    unsubscribe_other(&mut world, client, GLOBAL, master);
    assert!(!is_owner_of_global(&mut world, master, client));
    // And still no client becomes the owner of a channel without one.
    world.send(client, GLOBAL, 9, types::CREATE, &global());
    assert!(!world.channels.has_global_owner());
}

#[test]
fn a_client_owns_global_only_where_clients_are_trusted() {
    let take = global();
    let mut world = World::new();
    let client = world.client();
    world.send(client, GLOBAL, 9, types::CREATE, &take);
    assert!(world.types(client).is_empty());
    assert!(!world.channels.has_global_owner());
    let mut world = World::with(|_, channels| channels.client_rights = ClientRights::All);
    let client = world.client();
    assert_eq!(world.create_with(client, &take), GLOBAL);
}

#[test]
fn a_client_cannot_take_global_while_its_server_may_come_back() {
    let mut world = World::with(|_, channels| {
        channels.recovery = Some(Recovery { within: None });
    });
    let master = world.join_as(Peer::Server, "master");
    world.create(master, 1);
    let client = world.join_as(Peer::Client, "master");
    world.hang_up(master);
    let take = global();
    world.send(client, GLOBAL, 9, types::CREATE, &take);
    assert!(!world.channels.has_global_owner());
    // Nor does a client that bears the server's name come back for it.
    let _impostor = world.join_as(Peer::Client, "master");
    assert!(!world.channels.has_global_owner());
    let back = world.join_as(Peer::Server, "master");
    // It receives what clients send once it has been sent all that it had.
    world.pass(1000);
    assert!(is_owner_of_global(&mut world, back, client));
}

#[test]
fn a_refused_creation_takes_no_ownership_and_leaves_no_channel() {
    let mut world = World::new();
    let server = world.server();
    for channel_type in [1, 2, 3] {
        let message = CreateChannelMessage {
            channel_type,
            data: Some(prost_types::Any {
                type_url: "type.googleapis.com/chatpb.ChatChannelData".into(),
                value: vec![0x0a, 200],
            }),
            ..CreateChannelMessage::default()
        };
        world.send(server, GLOBAL, 9, types::CREATE, &message);
    }
    assert!(world.types(server).is_empty());
    assert!(!world.channels.has_global_owner());
    assert_eq!(channels(&world), 1, "GLOBAL alone");
}

#[test]
fn a_subscription_with_a_mask_of_8192_levels_harms_nobody() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    let entity = CreateEntityChannelMessage {
        entity_id: 0x80_000,
        data: Some(any(
            "tpspb.EntityChannelData",
            &EntityChannelData::default(),
        )),
        ..CreateEntityChannelMessage::default()
    };
    world.send(server, GLOBAL, 9, types::CREATE_ENTITY, &entity);
    let options = ChannelSubscriptionOptions {
        data_field_masks: vec!["a.".repeat(8191) + "a", "actorState".into()],
        ..every(20)
    };
    world.subscribe(client, 0x80_000, options);
    world.pass(200);
    let notice = world.one(client, types::SUB);
    let notice = SubscribedToChannelResultMessage::decode(&*notice.msg_body).unwrap();
    assert_eq!(
        notice.sub_options.unwrap().data_field_masks,
        ["actorState"],
        "the answer says which masks hold"
    );
    assert_eq!(over(&world, Peer::Client, Budget::MaskDepth), 1);
}

#[test]
fn masks_by_the_thousand_are_cut_to_the_budget() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    let room = world.create(server, 3);
    for round in 0..3 {
        let options = ChannelSubscriptionOptions {
            data_field_masks: (0..6_000)
                .map(|mask| {
                    if mask % 2 == 0 {
                        String::new()
                    } else {
                        format!("f{round}_{mask}")
                    }
                })
                .collect(),
            data_access: Some(1 + round % 2),
            ..every(20)
        };
        world.subscribe(client, room, options);
    }
    let notice = world.take(client, types::SUB);
    let notice =
        SubscribedToChannelResultMessage::decode(&*notice.last().unwrap().msg_body).unwrap();
    assert!(notice.sub_options.unwrap().data_field_masks.len() <= 64);
    assert!(over(&world, Peer::Client, Budget::Masks) > 0);
}

#[test]
fn a_list_with_filters_by_the_thousand_is_refused() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    for number in 0..50 {
        world.create_with(server, &room(format!("room {number}")));
    }
    let list = |filters: usize| ListChannelMessage {
        type_filter: 0,
        metadata_filters: vec!["y".into(); filters],
    };
    world.forget_all();
    world.send(client, GLOBAL, 1, types::LIST, &list(15_000));
    assert!(world.types(client).is_empty());
    assert_eq!(over(&world, Peer::Client, Budget::Filters), 1);
    world.send(client, GLOBAL, 2, types::LIST, &list(16));
    assert_eq!(world.one(client, types::LIST).stub_id, 2);
}

#[test]
fn a_list_that_outgrows_a_frame_comes_in_several_answers() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    let text = "m".repeat(100);
    for number in 0..1500 {
        world.create_with(server, &room(format!("{text}{number}")));
    }
    world.forget_all();
    for who in [server, client] {
        world.send(who, GLOBAL, 7, types::LIST, &ListChannelMessage::default());
        let answers = world.take(who, types::LIST);
        let stubs: Vec<u32> = answers.iter().map(|answer| answer.stub_id).collect();
        assert_eq!(stubs, [7, 0, 0], "one answer bears the stub");
        let mut ids: Vec<u32> = Vec::new();
        for answer in &answers {
            let part = ListChannelResultMessage::decode(&*answer.msg_body).unwrap();
            ids.extend(part.channels.iter().map(|one| one.channel_id));
        }
        assert_eq!(ids, (0..=1500).collect::<Vec<u32>>());
    }
    // What goes beyond the budget is left out, and that is counted.
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.list_answer_bytes = 500;
    });
    let (server, client) = (world.server(), world.client());
    for _ in 0..10 {
        world.create_with(server, &room(text.clone()));
    }
    world.send(
        client,
        GLOBAL,
        7,
        types::LIST,
        &ListChannelMessage::default(),
    );
    let answer = world.one(client, types::LIST);
    let part = ListChannelResultMessage::decode(&*answer.msg_body).unwrap();
    assert!(
        (3..=5).contains(&part.channels.len()),
        "{}",
        part.channels.len()
    );
    assert_eq!(over(&world, Peer::Client, Budget::ListAnswer), 1);
}

#[test]
fn requests_that_cost_much_are_refused_once_a_seconds_work_is_spent() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.work_per_second = 1000;
    });
    let (server, client, other) = (world.server(), world.client(), world.client());
    for _ in 0..400 {
        world.create(server, 3);
    }
    world.forget_all();
    let list = ListChannelMessage::default();
    for _ in 0..20 {
        world.send(client, GLOBAL, 1, types::LIST, &list);
    }
    assert!(world.take(client, types::LIST).len() <= 3);
    assert!(over(&world, Peer::Client, Budget::Work) >= 17);
    // Only that peer is slowed, and only for as long.
    world.send(other, GLOBAL, 1, types::LIST, &list);
    assert_eq!(world.take(other, types::LIST).len(), 1);
    world.pass(2000);
    world.send(client, GLOBAL, 1, types::LIST, &list);
    assert_eq!(world.take(client, types::LIST).len(), 1);
}

#[test]
fn a_storm_of_creations_ends_at_the_budget() {
    let mut world = World::new();
    let client = world.client();
    for _ in 0..5000 {
        world.send(client, GLOBAL, 0, types::CREATE, &room("mine"));
    }
    assert_eq!(channels(&world), 1 + 32);
    assert_eq!(over(&world, Peer::Client, Budget::Channels), 5000 - 32);
    for entity_id in 0x80_000..0x80_200 {
        let entity = CreateEntityChannelMessage {
            entity_id,
            ..CreateEntityChannelMessage::default()
        };
        world.send(client, GLOBAL, 0, types::CREATE_ENTITY, &entity);
    }
    assert_eq!(channels(&world), 1 + 32 + 64);
    // Servers make as many as they like, and the client's go with it.
    let server = world.server();
    for _ in 0..100 {
        world.create(server, 3);
    }
    world.hang_up(client);
    assert_eq!(channels(&world), 1 + 100);
}

#[test]
fn data_of_what_a_client_makes_is_bounded_all_together() {
    // However little work it takes.
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.work_per_second = u32::MAX;
    });
    let client = world.client();
    let big = CreateChannelMessage {
        data: Some(any("chatpb.ChatChannelData", &chat(60_000))),
        ..room("")
    };
    for _ in 0..400 {
        world.send(client, GLOBAL, 0, types::CREATE, &big);
    }
    let made = channels(&world) - 1;
    assert!((16..=18).contains(&made), "2 MiB at 120 kB each: {made}");
    assert!(over(&world, Peer::Client, Budget::Data) > 300);
    // A channel made small does not grow past its share.
    let mut world = World::new();
    let client = world.client();
    let small = world.create_with(
        client,
        &CreateChannelMessage {
            data: Some(any("chatpb.ChatChannelData", &chat(10))),
            ..room("")
        },
    );
    for _ in 0..100 {
        world.update(client, small, "chatpb.ChatChannelData", &chat(1000));
    }
    let refused = over(&world, Peer::Client, Budget::Data);
    assert!((60..=80).contains(&refused), "32 KiB hold 32: {refused}");
}

#[test]
fn clients_fill_a_servers_channel_to_their_share_and_its_server_goes_on() {
    let mut world = World::with(|_, channels| {
        channels.budgets.clients.work_per_second = u32::MAX;
        channels.budgets.clients.shared_data_bytes = 200_000;
    });
    let (server, client) = (world.server(), world.client());
    let channel = world.create_with(
        server,
        &CreateChannelMessage {
            data: Some(any("chatpb.ChatChannelData", &chat(10))),
            ..room("")
        },
    );
    world.subscribe(client, channel, writing(20));
    for _ in 0..100 {
        world.update(client, channel, "chatpb.ChatChannelData", &chat(10_000));
    }
    let refused = over(&world, Peer::Client, Budget::Data);
    assert!((79..=95).contains(&refused), "200 kB hold 20: {refused}");
    // What the client may not is the server's still: the channel holds 16 MiB.
    world.take(client, types::UPDATE);
    world.update(server, channel, "chatpb.ChatChannelData", &chat(50_000));
    world.pass(100);
    let updates = world.updates::<ChatChannelData>(client, channel);
    let notice = updates.iter().flat_map(|update| &update.chat_messages);
    assert!(
        notice
            .into_iter()
            .any(|message| message.content.len() == 50_000)
    );
    assert_eq!(over(&world, Peer::Server, Budget::Data), 0);
}

#[test]
fn clients_cannot_take_the_last_channel_numbers() {
    let mut world = World::with(|_, channels| channels.spatial_channels_from = 64);
    let (server, first, second) = (world.server(), world.client(), world.client());
    for client in [first, second] {
        for _ in 0..40 {
            world.send(client, GLOBAL, 0, types::CREATE, &room(""));
        }
    }
    assert_eq!(channels(&world), 56);
    for _ in 0..8 {
        world.create(server, 3);
    }
}

#[test]
fn subscriptions_that_a_client_asks_for_are_bounded() {
    let mut world = World::with(|_, channels| channels.budgets.clients.subscriptions = 5);
    let (server, client) = (world.server(), world.client());
    let rooms: Vec<u32> = (0..8).map(|_| world.create(server, 3)).collect();
    world.forget_all();
    for &room in &rooms {
        world.subscribe(client, room, every(20));
    }
    assert_eq!(world.take(client, types::SUB).len(), 5);
    assert_eq!(over(&world, Peer::Client, Budget::Subscriptions), 3);
    // A server that subscribes it is not held to the client's budget.
    let id = world.id(client);
    world.subscribe_other(server, id, rooms[7], every(20));
    assert_eq!(world.take(client, types::SUB).len(), 1);
}

#[test]
fn intervals_and_delays_of_weeks_are_brought_within_the_budget() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    let room = world.create(server, 3);
    let options = ChannelSubscriptionOptions {
        fan_out_interval_ms: Some(u32::MAX),
        fan_out_delay_ms: Some(i32::MIN),
        ..ChannelSubscriptionOptions::default()
    };
    world.subscribe(client, room, options);
    let notice = world.one(client, types::SUB);
    let notice = SubscribedToChannelResultMessage::decode(&*notice.msg_body).unwrap();
    let options = notice.sub_options.unwrap();
    assert_eq!(options.fan_out_interval_ms, Some(60_000));
    assert_eq!(options.fan_out_delay_ms, Some(-60_000));
    assert_eq!(over(&world, Peer::Client, Budget::FanOutTimes), 1);
}

#[test]
fn a_client_groups_only_its_own_entities_and_only_so_many() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    let make = |world: &mut World, who: Who, entity_id: u32, is_well_known: bool| {
        let entity = CreateEntityChannelMessage {
            entity_id,
            is_well_known,
            ..CreateEntityChannelMessage::default()
        };
        world.send(who, GLOBAL, 0, types::CREATE_ENTITY, &entity);
    };
    make(&mut world, server, 0x80_000, false);
    let other = world.client();
    world.forget_all();
    // One that a client says everybody knows is shown to nobody.
    make(&mut world, client, 0x80_100, true);
    assert!(world.types(other).is_empty());
    let group = AddEntityGroupMessage {
        r#type: 1,
        entities_to_add: (0..20_000).collect(),
    };
    world.send(client, 0x80_100, 0, types::GROUP_ADD, &group);
    assert_eq!(over(&world, Peer::Client, Budget::GroupSize), 1);
    // A server's request of 20,000 is work for one look at each.
    world.send(server, 0x80_000, 0, types::GROUP_ADD, &group);
    assert_eq!(over(&world, Peer::Server, Budget::GroupSize), 0);
}

#[test]
fn a_message_that_its_state_does_not_allow_leaves_a_word_in_the_log() {
    let mut world = World::new();
    let who = world.client();
    let side = world.peers[who].side;
    while world.sides[side].poll_event().is_some() {}
    world.send(who, GLOBAL, 0, types::DISCONNECT, &login("x"));
    let event = world.sides[side].poll_event();
    assert!(
        matches!(
            event,
            Some(Event::Refused {
                msg_type: types::DISCONNECT,
                ..
            })
        ),
        "{event:?}"
    );
    assert_eq!(world.peers[who].closed, None::<CloseReason>);
}
