//! Logging in, and being kept out.

use std::net::IpAddr;
use std::time::Duration;

use lagometer_gateway::core::{
    AntiDdos, AuthPolicy, AuthVerdict, CloseReason, ConnNumbers, ConnectionManager, Fsm, Peer,
    Recovery,
};
use lagometer_protocol::messages::channeldpb::{AuthMessage, AuthResultMessage, DisconnectMessage};
use lagometer_protocol::messages::replaypb::ReplaySession;
use lagometer_protocol::{Compressor, FrameBuilder, MessagePack};
use prost::Message;

use crate::world::{GLOBAL, Who, World, every, login, types};

#[test]
fn the_first_connection_let_in_is_number_one_and_its_answer_is_byte_exact() {
    let mut world = World::new();
    let who = world.connect(Peer::Client);
    let frame = b"CH\x00\x14\x00\x0a\x12\x18\x01\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";
    world.peers[who].stalled = true;
    world.send_bytes(who, frame);
    let key = world.peers[who].key;
    let side = world.peers[who].side;
    let bytes: Vec<u8> = world.sides[side].output(key).flatten().copied().collect();
    assert_eq!(
        bytes,
        b"CH\x00\x0a\x00\x0a\x08\x18\x01\x20\x01\x2a\x02\x10\x01"
    );
}

#[test]
fn nothing_but_a_login_is_taken_from_a_newcomer() {
    let mut world = World::new();
    let who = world.connect(Peer::Client);
    world.subscribe(who, GLOBAL, every(20));
    assert!(world.types(who).is_empty());
    assert_eq!(world.peers[who].closed, None);
    world.send(who, GLOBAL, 1, types::AUTH, &login("late"));
    assert_eq!(world.types(who), [types::AUTH]);
}

#[test]
fn a_login_elsewhere_than_on_global_ends_the_connection() {
    let mut world = World::new();
    let server = world.server();
    let room = world.create(server, 3);
    let who = world.connect(Peer::Client);
    world.send(who, room, 1, types::AUTH, &login("lost"));
    assert_eq!(world.peers[who].closed, Some(CloseReason::BadAuth));
}

#[test]
fn a_login_takes_the_machines_transition_and_then_the_next_state() {
    let machine = Fsm::from_json(
        r#"{ "States": [ { "Name": "INIT", "MsgTypeWhitelist": "1" },
            { "Name": "LOBBY", "MsgTypeWhitelist": "5" },
            { "Name": "GAME", "MsgTypeWhitelist": "6" } ],
          "Transitions": [ { "FromState": "INIT", "ToState": "LOBBY", "MsgType": 1 } ] }"#,
    )
    .unwrap();
    let mut world = World::with(|connections, _| connections.client_fsm = machine);
    let client = world.client();
    world.send_raw(client, GLOBAL, 1, 0, types::LIST, b"");
    assert_eq!(
        world.types(client),
        [0u32; 0],
        "the lobby was passed through"
    );
    world.subscribe(client, GLOBAL, every(20));
    assert_eq!(world.types(client), [types::SUB]);
}

#[test]
fn drawn_numbers_are_distinct_small_enough_and_follow_no_order() {
    let mut world = World::with(|_, channels| {
        channels.conn_numbers = ConnNumbers::Drawn([7; 32]);
        channels.max_conn_id = 0xff;
    });
    // Some of the numbers are for servers alone.
    let drawn: Vec<Who> = (0..255).map(|_| world.server()).collect();
    let mut ids: Vec<u32> = drawn.iter().map(|&who| world.id(who)).collect();
    let rising = ids.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(rising < 100, "{rising} follow the one before");
    ids.sort_unstable();
    assert_eq!(ids, (1..=255).collect::<Vec<_>>(), "every number is found");
    let same = World::with(|_, channels| channels.conn_numbers = ConnNumbers::Drawn([8; 32]));
    assert!(
        !format!("{:?}", same.channels).contains("8, 8, 8"),
        "secrets do not show"
    );
}

#[test]
fn an_empty_name_is_banned_as_any_other_but_only_of_those_who_bear_it() {
    let mut world = World::with(|connections, _| connections.anti_ddos = Some(AntiDdos::default()));
    let refused = |world: &mut World, who| {
        for _ in 0..10 {
            world.send_raw(who, GLOBAL, 0, 0, types::DISCONNECT, b"");
        }
        assert_eq!(world.peers[who].closed, Some(CloseReason::TooManyRefused));
    };
    let unauthenticated = world.connect(Peer::Client);
    refused(&mut world, unauthenticated);
    let nameless = world.join_as(Peer::Client, "");
    refused(&mut world, nameless);
    let again = world.connect(Peer::Client);
    world.send(again, GLOBAL, 1, types::AUTH, &login(""));
    assert_eq!(world.peers[again].closed, Some(CloseReason::Banned));
}

#[test]
fn the_owner_of_global_is_notified_of_every_login() {
    let mut world = World::new();
    let master = world.master();
    world.forget_all();
    let client = world.client();
    let copy = world.one(master, types::AUTH);
    let result = AuthResultMessage::decode(&*copy.msg_body).unwrap();
    assert_eq!((copy.stub_id, result.conn_id), (0, world.id(client)));
}

#[test]
fn a_provider_answers_when_it_can_and_failures_ban() {
    let mut world = World::with(|connections, channels| {
        connections.anti_ddos = Some(AntiDdos::default());
        channels.auth = AuthPolicy::AskProvider;
        channels.max_failed_auth = 2;
    });
    let who = world.connect(Peer::Client);
    for attempt in 1..=2 {
        world.send(who, GLOBAL, attempt, types::AUTH, &login("mallory"));
        assert!(world.types(who).is_empty(), "nothing before the verdict");
        let request = world.channels.poll_auth_request().unwrap();
        assert_eq!(
            (&*request.player, &*request.login_token),
            ("mallory", "secret")
        );
        world
            .channels
            .answer_auth(world.now, request.ticket, AuthVerdict::WrongLogin);
        world.settle();
        let answer = world.one(who, types::AUTH);
        let answer = AuthResultMessage::decode(&*answer.msg_body).unwrap();
        assert_eq!(answer.result, 2);
    }
    assert_eq!(world.peers[who].closed, Some(CloseReason::Banned));

    let again = world.connect(Peer::Client);
    world.send(again, GLOBAL, 1, types::AUTH, &login("mallory"));
    assert_eq!(world.peers[again].closed, Some(CloseReason::Banned));

    let good = world.connect(Peer::Client);
    world.send(good, GLOBAL, 1, types::AUTH, &login("alice"));
    let request = world.channels.poll_auth_request().unwrap();
    world
        .channels
        .answer_auth(world.now, request.ticket, AuthVerdict::Admit);
    world
        .channels
        .answer_auth(world.now, request.ticket, AuthVerdict::WrongLogin);
    world.settle();
    let result = world.one(good, types::AUTH);
    assert_eq!(
        AuthResultMessage::decode(&*result.msg_body).unwrap().result,
        0
    );
    let server = world.server();
    assert_ne!(world.id(server), 0, "servers are not asked about");
}

#[test]
fn a_verdict_on_a_connection_that_is_gone_is_passed_over() {
    let mut world = World::with(|_, channels| channels.auth = AuthPolicy::AskProvider);
    let who = world.connect(Peer::Client);
    world.send(who, GLOBAL, 1, types::AUTH, &login("gone"));
    let request = world.channels.poll_auth_request().unwrap();
    world.hang_up(who);
    world
        .channels
        .answer_auth(world.now, request.ticket, AuthVerdict::Admit);
    world.settle();
    let next = world.server();
    assert_eq!(world.id(next), 2, "numbers are not used again at once");
}

#[test]
fn who_does_not_log_in_in_time_again_and_again_is_banned_by_address() {
    let mut world = World::with(|connections, channels| {
        connections.anti_ddos = Some(AntiDdos::default());
        channels.max_failed_auth = 2;
    });
    let address: IpAddr = "192.0.2.7".parse().unwrap();
    let first = world.sides[0].open(world.now, Peer::Client, Some(address));
    world.pass(6000);
    assert!(first.is_ok());
    let idle = world.sides[0]
        .open(world.now, Peer::Client, Some(address))
        .unwrap();
    let other = world.client();
    // Bans are known on every side that has ever spoken.
    let master = world.master();
    world.pass(6000);
    assert_eq!(world.sides[0].id(idle), None);
    for side in &mut world.sides {
        assert!(side.open(world.now, Peer::Client, Some(address)).is_err());
    }
    assert_eq!(world.peers[other].closed, None);
    assert_eq!(world.peers[master].closed, None);
}

#[test]
fn a_side_that_speaks_for_the_first_time_learns_which_addresses_are_banned() {
    let mut world = World::with(|connections, channels| {
        connections.anti_ddos = Some(AntiDdos::default());
        channels.max_failed_auth = 2;
    });
    let address: IpAddr = "192.0.2.7".parse().unwrap();
    let first = world.client();
    for _ in 0..2 {
        let opened = world.sides[0].open(world.now, Peer::Client, Some(address));
        assert!(opened.is_ok());
        world.pass(6000);
    }
    let open = |world: &mut World, side: usize| {
        let opened = world.sides[side].open(world.now, Peer::Client, Some(address));
        opened.map(|key| world.sides[side].close(key, CloseReason::PeerClosed))
    };
    assert!(open(&mut world, 0).is_err());
    assert!(open(&mut world, 1).is_ok(), "it has never spoken");
    let second = world.client();
    let side_of = |who: Who| world.peers[who].side;
    assert_eq!((side_of(first), side_of(second)), (0, 1));
    assert!(open(&mut world, 1).is_err());
}

#[test]
fn refused_messages_are_counted_and_ban_the_player() {
    let mut world = World::with(|connections, _| connections.anti_ddos = Some(AntiDdos::default()));
    let who = world.join_as(Peer::Client, "eve");
    for _ in 0..9 {
        world.send(
            who,
            GLOBAL,
            0,
            types::DISCONNECT,
            &DisconnectMessage { conn_id: 1 },
        );
        assert_eq!(world.peers[who].closed, None);
    }
    world.send(
        who,
        GLOBAL,
        0,
        types::DISCONNECT,
        &DisconnectMessage { conn_id: 1 },
    );
    assert_eq!(world.peers[who].closed, Some(CloseReason::TooManyRefused));
    let again = world.connect(Peer::Client);
    world.send(again, GLOBAL, 1, types::AUTH, &login("eve"));
    assert_eq!(world.peers[again].closed, Some(CloseReason::Banned));
}

#[test]
fn bytes_that_are_no_frames_end_the_connection() {
    for bytes in [&b"GET / HTTP/1.1"[..], b"CH\0\0\0", b"CH\0\x02\0\x0a\x09"] {
        let mut world = World::new();
        let who = world.client();
        world.send_bytes(who, bytes);
        assert_eq!(
            world.peers[who].closed,
            Some(CloseReason::BadBytes),
            "{bytes:?}"
        );
        let counters = world.sides[world.peers[who].side].counters();
        assert_eq!(counters.of(Peer::Client).closed_for_bad_bytes, 1);
    }
}

#[test]
fn a_peer_that_compresses_is_answered_in_kind() {
    let mut world = World::new();
    let who = world.client();
    let metadata = "a".repeat(2000);
    let create = lagometer_protocol::messages::channeldpb::CreateChannelMessage {
        channel_type: 3,
        metadata,
        ..Default::default()
    };
    let mut builder = FrameBuilder::new();
    let body = create.encode_to_vec();
    let message = MessagePack {
        stub_id: 1,
        msg_type: types::CREATE,
        body: &body,
        ..MessagePack::default()
    };
    builder.push(&message).unwrap();
    let frame = builder
        .finish_compressed(&mut Compressor::new())
        .unwrap()
        .to_vec();
    let before = world.sides[0].counters().of(Peer::Client).bytes_out;
    world.send_bytes(who, &frame);
    assert_eq!(world.types(who), [types::CREATE, types::SUB]);
    let after = world.sides[0].counters().of(Peer::Client).bytes_out;
    assert!(after - before < 500, "{} bytes", after - before);
}

#[test]
fn a_server_disconnects_others_for_good() {
    let mut world = World::with(|_, channels| channels.recovery = Some(Recovery { within: None }));
    let (first, second) = (
        world.join_as(Peer::Server, "one"),
        world.join_as(Peer::Server, "two"),
    );
    let conn_id = world.id(second);
    world.send(
        first,
        GLOBAL,
        0,
        types::DISCONNECT,
        &DisconnectMessage { conn_id },
    );
    assert_eq!(world.peers[second].closed, Some(CloseReason::Disconnected));
    let back = world.join_as(Peer::Server, "two");
    assert_ne!(
        world.id(back),
        conn_id,
        "it was sent away: there is nothing to recover"
    );
}

#[test]
fn the_silent_are_closed_if_asked_for() {
    let mut world = World::with(|connections, _| {
        connections.silent_at_most = Some(Duration::from_secs(3));
    });
    let (quiet, loud) = (world.client(), world.client());
    for _ in 0..6 {
        world.pass(1000);
        world.forward(loud, GLOBAL, 0, 0, b"here");
    }
    assert_eq!(world.peers[quiet].closed, Some(CloseReason::Silent));
    assert_eq!(world.peers[loud].closed, None);
}

#[test]
fn who_is_not_read_for_a_while_is_not_silent_until_then() {
    let mut world = World::with(|connections, _| {
        connections.silent_at_most = Some(Duration::from_secs(3));
    });
    let (paused, quiet) = (world.client(), world.client());
    let (side, key) = (world.peers[paused].side, world.peers[paused].key);
    world.sides[side].not_read_until(key, world.now + Duration::from_secs(10));
    for _ in 0..12 {
        world.pass(1000);
    }
    assert_eq!(world.peers[quiet].closed, Some(CloseReason::Silent));
    assert_eq!(world.peers[paused].closed, None);
    for _ in 0..2 {
        world.pass(1000);
    }
    assert_eq!(world.peers[paused].closed, Some(CloseReason::Silent));
}

#[test]
fn what_a_client_sends_is_recorded_if_asked_for() {
    let mut world = World::new();
    let before = world.client();
    for side in &mut world.sides {
        side.record_clients(true);
    }
    let (server, client) = (world.server(), world.client());
    world.pass(100);
    world.forward(client, GLOBAL, 0, 0, b"hello");
    for who in [before, server, client] {
        world.hang_up(who);
    }
    let mut sides = world.sides.iter_mut();
    let recording = sides.find_map(ConnectionManager::poll_recording).unwrap();
    assert_eq!(recording.id.map(|id| id.0), Some(world.id(client)));
    let session = ReplaySession::decode(&*recording.file).unwrap();
    let types: Vec<u32> = session
        .packets
        .iter()
        .flat_map(|packet| &packet.packet.as_ref().unwrap().messages)
        .map(|message| message.msg_type)
        .collect();
    assert_eq!(types, [types::AUTH, types::GAME]);
    let offsets: Vec<i64> = session
        .packets
        .iter()
        .map(|packet| packet.offset_time)
        .collect();
    assert_eq!(offsets, [0, 100_000_000]);
    let login = &session.packets[0].packet.as_ref().unwrap().messages[0];
    let login = AuthMessage::decode(&*login.msg_body).unwrap();
    assert!(!login.player_identifier_token.is_empty() && login.login_token.is_empty());
    assert!(
        world
            .sides
            .iter_mut()
            .all(|side| side.poll_recording().is_none())
    );
}
