//! Servers that break off, and come back.

use std::time::Duration;

use lagometer_gateway::core::{Peer, Recovery};
use lagometer_protocol::messages::channeldpb::{
    AuthResultMessage, ChannelDataRecoveryMessage, CreateChannelMessage, DisconnectMessage,
};
use lagometer_protocol::messages::chatpb::{ChatChannelData, ChatMessage};
use lagometer_protocol::messages::unrealpb::{
    ChannelRecoveryData, SpawnObjectMessage, UnrealObjectRef,
};
use prost::Message;

use crate::world::{GLOBAL, Who, World, any, every, types, writing};

fn recovering(within: Option<Duration>) -> (World, Who, Who, u32) {
    let mut world = World::with(|_, channels| {
        channels.recovery = Some(Recovery { within });
        channels.unix_ns_at_zero = 1_000_000_000;
    });
    let server = world.join_as(Peer::Server, "mac-address");
    let room = world.create_with(
        server,
        &CreateChannelMessage {
            channel_type: 3,
            metadata: "room".into(),
            sub_options: Some(writing(50)),
            data: Some(any("chatpb.ChatChannelData", &say("state"))),
            ..CreateChannelMessage::default()
        },
    );
    let client = world.client();
    world.subscribe(client, room, every(20));
    world.pass(100);
    world.forget_all();
    (world, server, client, room)
}

fn say(text: &str) -> ChatChannelData {
    ChatChannelData {
        chat_messages: vec![ChatMessage {
            content: text.into(),
            ..ChatMessage::default()
        }],
    }
}

#[test]
fn a_server_that_comes_back_takes_up_what_it_had() {
    let (mut world, server, client, room) = recovering(None);
    let spawn = SpawnObjectMessage {
        obj: Some(UnrealObjectRef {
            net_guid: Some(77),
            ..UnrealObjectRef::default()
        }),
        channel_id: Some(room),
        ..SpawnObjectMessage::default()
    };
    let body = lagometer_protocol::messages::channeldpb::ServerForwardMessage {
        client_conn_id: 0,
        payload: spawn.encode_to_vec().into(),
    };
    world.send_raw(server, room, 0, 32, 103, &body.encode_to_vec());
    world.forget_all();
    let old_id = world.id(server);

    world.hang_up(server);
    assert_eq!(world.types(client), [types::OWNER_LOST]);
    world.send_raw(client, room, 0, 0, types::GAME, b"anyone?");
    assert_eq!(
        world.channels.counters().dropped,
        0,
        "dropped without a word"
    );
    world.pass(5000);

    let back = world.connect(Peer::Server);
    world.send(
        back,
        GLOBAL,
        1,
        types::AUTH,
        &crate::world::login("mac-address"),
    );
    let answer = world.one(back, types::AUTH);
    let answer = AuthResultMessage::decode(&*answer.msg_body).unwrap();
    assert!(answer.should_recover);
    assert_eq!(answer.conn_id, old_id);
    let pack = world.one(back, types::RECOVERY_DATA);
    assert_eq!(pack.channel_id, room);
    let message = ChannelDataRecoveryMessage::decode(&*pack.msg_body).unwrap();
    assert_eq!((message.channel_id, message.owner_conn_id), (room, old_id));
    assert_eq!(message.metadata, "room");
    assert_eq!(
        message.sub_time, 1_000_000_000,
        "the old subscription's, on the calendar"
    );
    let options = message.sub_options.unwrap();
    assert_eq!(options.fan_out_interval_ms, Some(50));
    assert_eq!(options.skip_first_fan_out, Some(true));
    let state = ChatChannelData::decode(&*message.channel_data.unwrap().value).unwrap();
    assert_eq!(state, say("state"));
    let objects = ChannelRecoveryData::decode(&*message.recovery_data.unwrap().value).unwrap();
    assert_eq!(objects.obj_refs[&77].net_guid, Some(77));

    assert!(world.types(client).is_empty());
    world.pass(1000);
    assert_eq!(world.types(back), [types::RECOVERY_END]);
    assert_eq!(world.types(client), [types::OWNER_RECOVERED]);
    world.send_raw(client, room, 0, 0, types::GAME, b"hello again");
    assert_eq!(world.types(back), [types::GAME]);
    world.update(back, room, "chatpb.ChatChannelData", &say("on we go"));
    world.pass(40);
    assert_eq!(
        world.updates::<ChatChannelData>(client, room),
        [say("on we go")]
    );
}

#[test]
fn clients_are_not_served_until_the_recovery_has_ended() {
    let (mut world, server, client, room) = recovering(None);
    world.hang_up(server);
    let lost = world.one(client, types::OWNER_LOST);
    let back = world.join_as(Peer::Server, "mac-address");
    world.forget_all();
    world.send_raw(client, room, 0, 0, types::GAME, b"too early");
    world.pass(999);
    assert_eq!(world.types(back), [0u32; 0]);
    world.pass(1);
    assert_eq!(world.types(back), [types::RECOVERY_END]);
    let returned = world.one(client, types::OWNER_RECOVERED);
    assert_eq!(
        (lost.broadcast, returned.broadcast),
        (8, 8),
        "to all but the owner"
    );
    world.send_raw(client, room, 0, 0, types::GAME, b"in time");
    assert_eq!(world.types(back), [types::GAME]);
}

#[test]
fn a_server_that_disconnects_itself_may_come_back_and_one_that_is_sent_away_not() {
    for by_itself in [true, false] {
        let (mut world, server, _, _) = recovering(None);
        let (id, other) = (world.id(server), world.server());
        let message = DisconnectMessage { conn_id: id };
        let by = if by_itself { server } else { other };
        world.send(by, GLOBAL, 0, types::DISCONNECT, &message);
        let back = world.join_as(Peer::Server, "mac-address");
        assert_eq!(world.id(back) == id, by_itself);
        assert_eq!(
            !world.take(back, types::RECOVERY_DATA).is_empty(),
            by_itself
        );
    }
}

/// What it comes back for is kept, however often it breaks off on the way.
#[test]
fn a_server_that_breaks_off_while_it_comes_back_may_come_again() {
    for [away_ms, within_s] in [[1500, 0], [100, 0], [1500, 3], [100, 3]] {
        let within = (within_s > 0).then(|| Duration::from_secs(within_s));
        let (mut world, server, client, room) = recovering(within);
        let old_id = world.id(server);
        world.hang_up(server);
        world.pass(1600);
        let login = crate::world::login("mac-address");
        let back = world.connect(Peer::Server);
        world.send(back, GLOBAL, 1, types::AUTH, &login);
        world.pass(500);
        assert!(world.take(back, types::RECOVERY_END).is_empty());
        world.hang_up(back);
        world.pass(away_ms);
        let again = world.connect(Peer::Server);
        world.send(again, GLOBAL, 1, types::AUTH, &login);
        let answer = world.one(again, types::AUTH);
        let answer = AuthResultMessage::decode(&*answer.msg_body).unwrap();
        assert!(answer.should_recover);
        assert_eq!(answer.conn_id, old_id);
        assert_eq!(world.one(again, types::RECOVERY_DATA).channel_id, room);
        world.pass(900);
        assert!(
            world.take(again, types::RECOVERY_END).is_empty(),
            "too soon"
        );
        world.pass(100);
        assert_eq!(world.types(again), [types::RECOVERY_END]);
        assert!(world.take(client, types::REMOVE).is_empty());
        world.forget_all();
        world.update(again, room, "chatpb.ChatChannelData", &say("on we go"));
        world.pass(40);
        assert_eq!(
            world.updates::<ChatChannelData>(client, room),
            [say("on we go")]
        );
    }
}

#[test]
fn who_does_not_come_back_in_time_loses_its_channels() {
    let (mut world, server, client, room) = recovering(Some(Duration::from_secs(3)));
    world.hang_up(server);
    world.pass(2900);
    assert_eq!(world.types(client), [types::OWNER_LOST]);
    world.pass(200);
    assert_eq!(world.types(client), [types::REMOVE]);
    let back = world.join_as(Peer::Server, "mac-address");
    assert!(world.take(back, types::RECOVERY_DATA).is_empty());
    assert_eq!(world.create(back, 3), room);
}

#[test]
fn a_number_that_may_be_come_back_for_is_not_given_to_another() {
    let mut world = World::with(|_, channels| {
        channels.recovery = Some(Recovery { within: None });
        channels.max_conn_id = 3;
    });
    let server = world.join_as(Peer::Server, "mac-address");
    let id = world.id(server);
    world.hang_up(server);
    for _ in 0..4 {
        let client = world.client();
        assert_ne!(world.id(client), id);
        world.hang_up(client);
    }
    let back = world.join_as(Peer::Server, "mac-address");
    assert_eq!(world.id(back), id);
    // Twice is as good as once.
    world.hang_up(back);
    let back = world.join_as(Peer::Server, "mac-address");
    assert_eq!(world.id(back), id);
    world.pass(3000);
}
