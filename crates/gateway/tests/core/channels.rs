//! Making, listing, removing channels; subscribing to them.

use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelDataAccess, ChannelSubscriptionOptions, CreateChannelMessage,
    CreateEntityChannelMessage, ListChannelMessage, ListChannelResultMessage, RemoveChannelMessage,
    SubscribedToChannelResultMessage, UnsubscribedFromChannelMessage,
    UnsubscribedFromChannelResultMessage,
};
use prost::Message;

use crate::world::{GLOBAL, World, every, types, writing};

#[test]
fn creating_a_channel_is_answered_in_order_and_reported_to_the_owner_of_global() {
    let mut world = World::new();
    let master = world.master();
    let client = world.client();
    world.forget_all();
    let message = CreateChannelMessage {
        channel_type: 3,
        metadata: "room".into(),
        ..CreateChannelMessage::default()
    };
    world.send(client, GLOBAL, 4, types::CREATE, &message);
    let inbox: Vec<(u32, u32, u32)> = world.peers[client]
        .inbox
        .iter()
        .map(|pack| (pack.msg_type, pack.stub_id, pack.channel_id))
        .collect();
    assert_eq!(inbox, [(types::CREATE, 4, 0), (types::SUB, 0, 1)]);
    assert_eq!(world.one(master, types::CREATE).stub_id, 0);
}

#[test]
fn numbers_of_removed_channels_come_next() {
    let mut world = World::new();
    let server = world.server();
    assert_eq!(
        [3, 2, 100].map(|kind| world.create(server, kind)),
        [1, 2, 3]
    );
    let removal = RemoveChannelMessage { channel_id: 2 };
    world.send(server, GLOBAL, 1, types::REMOVE, &removal);
    assert_eq!(
        world.take(server, types::REMOVE).len(),
        1,
        "notified as a subscriber"
    );
    assert_eq!(world.create(server, 3), 2);
    assert_eq!(world.create(server, 3), 4);
}

#[test]
fn only_who_may_removes_a_channel_and_its_subscribers_are_notified() {
    let mut world = World::new();
    let (owner, client) = (world.server(), world.client());
    let room = world.create(owner, 3);
    world.subscribe(client, room, every(20));
    world.forget_all();
    let removal = RemoveChannelMessage { channel_id: room };
    world.send(client, GLOBAL, 1, types::REMOVE, &removal);
    assert!(world.types(client).is_empty());
    world.send(owner, GLOBAL, 1, types::REMOVE, &removal);
    let notice = world.one(client, types::REMOVE);
    assert_eq!(notice.stub_id, 0);
    assert_eq!(
        RemoveChannelMessage::decode(&*notice.msg_body).unwrap(),
        removal
    );
    world.send(
        owner,
        GLOBAL,
        1,
        types::REMOVE,
        &RemoveChannelMessage { channel_id: 0 },
    );
    assert_eq!(world.create(owner, 1), GLOBAL, "GLOBAL stays");
}

#[test]
fn a_channel_goes_with_its_owner_where_settings_say_so() {
    let mut world = World::new();
    let (owner, client) = (world.server(), world.client());
    let room = world.create(owner, 3);
    world.subscribe(client, room, every(20));
    world.forget_all();
    world.hang_up(owner);
    let notice = world.one(client, types::REMOVE);
    assert_eq!(
        RemoveChannelMessage::decode(&*notice.msg_body)
            .unwrap()
            .channel_id,
        room
    );
}

#[test]
fn channels_are_listed_by_type_and_text() {
    let mut world = World::new();
    let server = world.server();
    for (kind, metadata) in [(3, "red room"), (3, "blue room"), (2, "red note")] {
        let message = CreateChannelMessage {
            channel_type: kind,
            metadata: metadata.into(),
            ..CreateChannelMessage::default()
        };
        world.create_with(server, &message);
    }
    let mut list = |type_filter, filters: &[&str]| {
        let message = ListChannelMessage {
            type_filter,
            metadata_filters: filters.iter().map(ToString::to_string).collect(),
        };
        world.send(server, GLOBAL, 8, types::LIST, &message);
        let answer = world.one(server, types::LIST);
        assert_eq!(answer.stub_id, 8);
        let result = ListChannelResultMessage::decode(&*answer.msg_body).unwrap();
        let ids: Vec<u32> = result.channels.iter().map(|one| one.channel_id).collect();
        ids
    };
    assert_eq!(list(0, &[]), [0, 1, 2, 3]);
    assert_eq!(list(3, &[]), [1, 2]);
    assert_eq!(list(0, &["red"]), [1, 3]);
    assert_eq!(list(3, &["blue", "note"]), [2]);
}

#[test]
fn a_subscription_is_reported_to_sender_subject_and_owner() {
    let mut world = World::new();
    let master = world.master();
    let (owner, client) = (world.server(), world.client());
    let room = world.create(owner, 3);
    world.forget_all();
    let id = world.id(client);
    world.subscribe_other(master, id, room, every(50));
    let expected = SubscribedToChannelResultMessage {
        conn_id: id,
        sub_options: Some(ChannelSubscriptionOptions {
            data_access: Some(ChannelDataAccess::ReadAccess as i32),
            data_field_masks: vec![],
            fan_out_interval_ms: Some(50),
            fan_out_delay_ms: Some(0),
            skip_self_update_fan_out: Some(true),
            skip_first_fan_out: Some(false),
        }),
        conn_type: 2,
        channel_type: 3,
    };
    for (who, stub) in [(master, 5), (client, 0), (owner, 0)] {
        let notice = world.one(who, types::SUB);
        assert_eq!((notice.stub_id, notice.channel_id), (stub, room));
        let body = SubscribedToChannelResultMessage::decode(&*notice.msg_body).unwrap();
        assert_eq!(body, expected);
    }

    // Another interval is not worth a word, another access is.
    world.subscribe(client, room, every(100));
    assert!(world.types(client).is_empty() && world.types(owner).is_empty());
    world.subscribe(client, room, writing(100));
    assert_eq!(world.one(client, types::SUB).stub_id, 5);
    assert_eq!(world.one(owner, types::SUB).stub_id, 0);

    let message = UnsubscribedFromChannelMessage { conn_id: id };
    world.send(master, room, 6, types::UNSUB, &message);
    for (who, stub) in [(master, 6), (client, 0), (owner, 0)] {
        let notice = world.one(who, types::UNSUB);
        assert_eq!((notice.stub_id, notice.channel_id), (stub, room));
        let body = UnsubscribedFromChannelResultMessage::decode(&*notice.msg_body).unwrap();
        assert_eq!(
            (body.conn_id, body.conn_type, body.channel_type),
            (id, 2, 3)
        );
    }
}

#[test]
fn a_client_subscribes_nobody_but_itself() {
    let mut world = World::new();
    let (one, other) = (world.client(), world.client());
    let other_id = world.id(other);
    world.subscribe_other(one, other_id, GLOBAL, every(20));
    let notice = world.one(one, types::SUB);
    let body = SubscribedToChannelResultMessage::decode(&*notice.msg_body).unwrap();
    assert_eq!(body.conn_id, world.id(one));
    assert!(world.types(other).is_empty());
}

#[test]
fn rights_of_a_private_channel_are_its_owners_and_globals() {
    let mut world = World::new();
    let master = world.master();
    let (owner, other, client) = (world.server(), world.server(), world.client());
    let private = world.create(owner, 2);
    world.forget_all();
    let id = world.id(client);
    world.subscribe_other(other, id, private, every(20));
    assert!(world.types(client).is_empty());
    world.subscribe_other(master, id, private, every(20));
    assert_eq!(world.types(client), [types::SUB]);
    let message = UnsubscribedFromChannelMessage { conn_id: id };
    world.send(other, private, 6, types::UNSUB, &message);
    assert!(world.types(client).is_empty());
    world.send(owner, private, 6, types::UNSUB, &message);
    assert_eq!(world.types(client), [types::UNSUB]);
}

#[test]
fn an_owner_that_unsubscribes_itself_owns_no_more() {
    let mut world = World::new();
    let master = world.master();
    world.unsubscribe(master, GLOBAL);
    assert!(!world.channels.has_global_owner());
    let other = world.server();
    assert_eq!(world.create(other, 1), GLOBAL);
    assert!(world.channels.has_global_owner());
}

#[test]
fn the_owner_is_notified_of_subscribers_that_go() {
    let mut world = World::new();
    let master = world.master();
    let client = world.client();
    world.subscribe(client, GLOBAL, every(20));
    world.forget_all();
    let id = world.id(client);
    world.hang_up(client);
    let notice = world.one(master, types::UNSUB);
    let body = UnsubscribedFromChannelResultMessage::decode(&*notice.msg_body).unwrap();
    assert_eq!((body.conn_id, body.conn_type), (id, 2));
}

#[test]
fn refused_creations_leave_nothing_behind() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    for (who, channel, kind) in [
        (client, GLOBAL, 0),
        (client, GLOBAL, 4),
        (server, GLOBAL, 4),
    ] {
        let message = CreateChannelMessage {
            channel_type: kind,
            ..CreateChannelMessage::default()
        };
        world.send(who, channel, 1, types::CREATE, &message);
        assert!(world.types(who).is_empty(), "type {kind}");
    }
    let low = CreateEntityChannelMessage {
        entity_id: 77,
        ..CreateEntityChannelMessage::default()
    };
    world.send(server, GLOBAL, 1, types::CREATE_ENTITY, &low);
    assert!(world.types(server).is_empty());
    assert_eq!(world.create(server, 3), 1);
}

#[test]
fn an_entity_may_be_made_like_any_other_channel() {
    let mut world = World::new();
    let server = world.server();
    let entity = world.create(server, 5);
    assert_eq!(entity, 1, "with a number like any other");
    let message = AddEntityGroupMessage {
        r#type: 0,
        entities_to_add: vec![entity],
    };
    world.send(server, entity, 0, types::GROUP_ADD, &message);
    assert_eq!(world.channels.counters().dropped, 0, "it is an entity");
}

#[test]
fn well_known_entities_are_shown_to_all_clients_early_and_late() {
    let mut world = World::new();
    let server = world.server();
    let early = world.client();
    let entity = 0x80_002;
    let message = CreateEntityChannelMessage {
        entity_id: entity,
        is_well_known: true,
        sub_options: Some(writing(20)),
        ..CreateEntityChannelMessage::default()
    };
    world.send(server, GLOBAL, 7, types::CREATE_ENTITY, &message);
    assert_eq!(world.one(server, types::CREATE_ENTITY).stub_id, 7);
    assert_eq!(world.one(server, types::SUB).channel_id, entity);
    assert_eq!(world.one(early, types::SUB).channel_id, entity);
    let late = world.client();
    let notice = world.one(late, types::SUB);
    let body = SubscribedToChannelResultMessage::decode(&*notice.msg_body).unwrap();
    assert_eq!(body.sub_options.unwrap().fan_out_delay_ms, Some(1000));
    world.hang_up(server);
    assert_eq!(world.types(early), [types::REMOVE]);
}
