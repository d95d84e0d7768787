//! Attacks of those who are not let in, or try to be over and over.

use std::net::IpAddr;
use std::time::Duration;

use lagometer_gateway::core::{AntiDdos, AuthPolicy, AuthVerdict, Budget, ChannelSettings, Peer};
use lagometer_protocol::messages::channeldpb::{AuthMessage, AuthResultMessage};
use lagometer_protocol::{FrameBuilder, MessagePack};
use prost::Message;

use crate::hostile::over;
use crate::world::{GLOBAL, World, login, types};

#[test]
fn clients_that_only_attempt_to_log_in_leave_connection_numbers_to_servers() {
    let mut world = World::with(|_, channels| {
        channels.auth = AuthPolicy::AskProvider;
        channels.max_conn_id = 64;
    });
    for _ in 0..100 {
        let who = world.connect(Peer::Client);
        world.send(who, GLOBAL, 1, types::AUTH, &login("nobody"));
    }
    for _ in 0..4 {
        let server = world.server();
        assert_ne!(world.id(server), 0);
    }
}

#[test]
fn one_login_of_a_connection_is_pending_at_a_time_and_hanging_up_cancels_it() {
    let mut world = World::with(|connections, channels| {
        // Not what a connection may send at all before its login.
        connections.before_login.messages = u32::MAX;
        channels.auth = AuthPolicy::AskProvider;
    });
    let flood = world.connect(Peer::Client);
    let mut builder = FrameBuilder::new();
    let body = login("flood").encode_to_vec();
    let message = MessagePack {
        msg_type: types::AUTH,
        body: &body,
        ..MessagePack::default()
    };
    while builder.push(&message).is_ok() {}
    let frame = builder.finish().unwrap().to_vec();
    world.send_bytes(flood, &frame);
    let first = world.channels.poll_auth_request().unwrap();
    assert!(world.channels.poll_auth_request().is_none(), "one request");
    assert!(over(&world, Peer::Client, Budget::LoginAttempts) > 1000);
    assert!(world.channels.wants(first.ticket));
    world.hang_up(flood);
    assert!(!world.channels.wants(first.ticket));

    // Cancelled before anybody asked: the provider is never asked.
    for _ in 0..1000 {
        let hasty = world.connect(Peer::Client);
        world.send(hasty, GLOBAL, 1, types::AUTH, &login("hasty"));
        world.hang_up(hasty);
    }
    let patient = world.connect(Peer::Client);
    world.send(patient, GLOBAL, 1, types::AUTH, &login("patient"));
    let request = world.channels.poll_auth_request().unwrap();
    assert_eq!(request.player, "patient");
    world
        .channels
        .answer_auth(world.now, request.ticket, AuthVerdict::WrongLogin);
    world.settle();
    // Once answered it may try again.
    world.send(patient, GLOBAL, 2, types::AUTH, &login("patient"));
    assert!(world.channels.poll_auth_request().is_some());
}

#[test]
fn names_and_tokens_without_end_are_refused_at_once() {
    let mut world = World::with(|_, channels| channels.auth = AuthPolicy::AskProvider);
    let who = world.connect(Peer::Client);
    for (player, token, result) in [(10_000, 6, 1), (6, 10_000, 2)] {
        let login = AuthMessage {
            player_identifier_token: "p".repeat(player),
            login_token: "t".repeat(token),
        };
        world.send(who, GLOBAL, 1, types::AUTH, &login);
        let answer = world.one(who, types::AUTH);
        let answer = AuthResultMessage::decode(&*answer.msg_body).unwrap();
        assert_eq!(answer.result, result);
    }
    assert!(world.channels.poll_auth_request().is_none());
    assert_eq!(over(&world, Peer::Client, Budget::PlayerName), 1);
    assert_eq!(over(&world, Peer::Client, Budget::LoginToken), 1);
}

#[test]
fn nothing_is_recorded_of_who_is_not_let_in() {
    let mut world = World::with(|_, channels| channels.auth = AuthPolicy::AskProvider);
    for side in &mut world.sides {
        side.record_clients(true);
    }
    let who = world.connect(Peer::Client);
    for _ in 0..100 {
        world.forward(who, GLOBAL, 0, 0, &[7; 1000]);
    }
    world.hang_up(who);
    let mut sides = world.sides.iter_mut();
    assert!(sides.all(|side| side.poll_recording().is_none()));
}

#[test]
fn a_ban_of_an_address_leaves_game_servers_and_those_who_play_alone() {
    let mut world = World::with(|connections, channels| {
        connections.anti_ddos = Some(AntiDdos::default());
        channels.max_failed_auth = 2;
    });
    let address: IpAddr = "192.0.2.7".parse().unwrap();
    let (playing, _) = (world.client(), world.server());
    for _ in 0..2 {
        let _ = world.sides[0].open(world.now, Peer::Client, Some(address));
    }
    world.pass(6000);
    for side in &mut world.sides {
        assert!(side.open(world.now, Peer::Client, Some(address)).is_err());
        assert!(side.open(world.now, Peer::Server, Some(address)).is_ok());
    }
    assert_eq!(world.peers[playing].closed, None);
    // It passes.
    world.now += ChannelSettings::default().barred_for + Duration::from_secs(1);
    assert!(
        world.sides[0]
            .open(world.now, Peer::Client, Some(address))
            .is_ok()
    );
}
