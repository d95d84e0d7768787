//! A server that cannot keep up has those read more slowly who keep it from it,
//! and nobody else.

use std::time::Duration;

use bytes::Bytes;
use lagometer_gateway::core::bus::{ToChannels, ToConnections};
use lagometer_gateway::core::{
    ConnId, ConnectionManager, ConnectionSettings, Peer, ReadControl, SlowReaders,
};
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, SubscribedToChannelMessage, UnsubscribedFromChannelMessage,
};
use lagometer_units::Time;

use crate::world::{GLOBAL, Who, World, login, types};

/// The longest that a pause may last once its cause is gone, milliseconds.
const LONGEST_PAUSE_MS: u64 = 100;

fn waiting(world: &World, who: Who) -> usize {
    let peer = &world.peers[who];
    world.sides[peer.side].waiting(peer.key)
}

/// A server is congested from 16 KiB waiting on, and closed at `server_bytes`.
fn tight(server_bytes: usize) -> World {
    World::with(|connections, _| {
        connections.slow_readers = SlowReaders {
            close_at_bytes: 64 << 10,
            server_close_at_bytes: server_bytes,
            close_after: Duration::from_mins(10),
            ..SlowReaders::default()
        };
    })
}

/// Sends until the client is paused. Returns how many messages that took.
fn flood_until_paused(world: &mut World, who: Who) -> usize {
    for count in 0..5000 {
        if world.peers[who].paused {
            return count;
        }
        world.send_raw(who, GLOBAL, 0, 0, types::GAME, &[7; 1000]);
    }
    panic!("it is never paused");
}

#[test]
fn ninety_clients_that_flood_a_server_do_not_pause_one_that_plays() {
    let mut world = World::new();
    let (master, player) = (world.master(), world.client());
    let flooders: Vec<Who> = (0..90).map(|_| world.client()).collect();
    world.peers[master].stalled = true;
    let mut was_paused = vec![false; flooders.len()];
    for step in 0..400 {
        for (index, &who) in flooders.iter().enumerate() {
            was_paused[index] |= world.peers[who].paused;
            if !world.peers[who].paused {
                let message = [7; 4000];
                world.send_raw(who, GLOBAL, 0, 0, types::GAME, &message);
            }
        }
        if step % 2 == 0 {
            world.send_raw(player, GLOBAL, 0, 0, types::GAME, &[1; 100]);
        }
        world.pass(10);
        assert!(!world.peers[player].paused, "the player, in step {step}");
        // The server keeps up with a third of what the flood would be.
        world.read(master, 120_000);
        assert!(waiting(&world, master) < 4 << 20, "in step {step}");
    }
    assert_eq!(was_paused, vec![true; flooders.len()]);
    assert_eq!(world.peers[master].closed, None);
}

#[test]
fn a_pause_goes_on_while_its_cause_does_and_ends_within_a_tenth_of_a_second_of_it() {
    let mut world = tight(8 << 20);
    let (master, client) = (world.master(), world.client());
    world.peers[master].stalled = true;
    flood_until_paused(&mut world, client);
    for _ in 0..50 {
        world.pass(50);
        assert!(world.peers[client].paused, "{}", world.now);
    }
    let paused = |world: &World| -> u64 {
        let sides = world.sides.iter();
        sides
            .map(|side| side.counters().of(Peer::Client).paused)
            .sum()
    };
    assert!(paused(&world) >= 25, "renewed: {}", paused(&world));
    world.resume(master);
    world.pass(LONGEST_PAUSE_MS);
    assert!(!world.peers[client].paused);
    let before = paused(&world);
    world.pass(10_000);
    assert_eq!(paused(&world), before, "nobody asks any more");
}

#[test]
fn a_client_that_is_not_read_is_not_closed_for_its_silence() {
    let mut world = World::with(|connections, _| {
        connections.silent_at_most = Some(Duration::from_secs(3));
        connections.slow_readers = SlowReaders {
            server_close_at_bytes: 8 << 20,
            close_after: Duration::from_mins(10),
            ..SlowReaders::default()
        };
    });
    let (master, client) = (world.master(), world.client());
    world.peers[master].stalled = true;
    flood_until_paused(&mut world, client);
    world.pass(10_000);
    assert!(world.peers[client].paused);
    assert_eq!(world.peers[client].closed, None, "while it is paused");
    world.resume(master);
    world.pass(1_000);
    assert!(!world.peers[client].paused);
    assert_eq!(world.peers[client].closed, None, "once it is read again");
    world.pass(10_000);
    assert!(world.peers[client].closed.is_some(), "silent by itself");
}

#[test]
fn a_client_is_read_again_once_its_own_messages_are_gone_though_others_congest_the_server() {
    let mut world = tight(8 << 20);
    let (master, first, second) = (world.master(), world.client(), world.client());
    world.peers[master].stalled = true;
    let sent = flood_until_paused(&mut world, first);
    for _ in 0..200 {
        world.send_raw(second, GLOBAL, 0, 0, types::GAME, &[7; 1000]);
    }
    world.pass(1000);
    assert!(world.peers[first].paused && world.peers[second].paused);
    world.read(master, sent * 1100);
    world.settle();
    world.pass(LONGEST_PAUSE_MS);
    assert!(waiting(&world, master) > 100_000, "it is still congested");
    assert!(!world.peers[first].paused);
    assert!(world.peers[second].paused);
}

#[test]
fn a_client_is_read_again_when_the_server_it_congested_is_gone() {
    let mut world = tight(8 << 20);
    let (master, client) = (world.master(), world.client());
    world.peers[master].stalled = true;
    flood_until_paused(&mut world, client);
    world.hang_up(master);
    world.pass(LONGEST_PAUSE_MS);
    assert!(!world.peers[client].paused);
}

#[test]
fn who_floods_a_server_with_notices_of_subscriptions_is_paused() {
    let mut world = tight(1 << 20);
    let (master, client, player) = (world.master(), world.client(), world.client());
    let room = world.create(master, 3);
    world.peers[master].stalled = true;
    let conn_id = world.id(client);
    for _ in 0..2000 {
        if world.peers[client].paused {
            break;
        }
        let subscribe = SubscribedToChannelMessage {
            conn_id,
            sub_options: Some(ChannelSubscriptionOptions::default()),
        };
        world.send(client, room, 5, types::SUB, &subscribe);
        let unsubscribe = UnsubscribedFromChannelMessage { conn_id };
        world.send(client, room, 6, types::UNSUB, &unsubscribe);
    }
    assert!(world.peers[client].paused);
    assert!(!world.peers[player].paused);
    assert!(waiting(&world, master) < 64 << 10);
}

#[test]
fn a_crowd_whose_logins_are_all_a_server_has_to_read_is_paused_before_it_is_closed() {
    let mut world = tight(64 << 10);
    let master = world.master();
    world.peers[master].stalled = true;
    for number in 0..5000 {
        let who = world.connect(Peer::Client);
        world.send(who, GLOBAL, 0, types::AUTH, &login(&number.to_string()));
        if world.peers[who].paused {
            assert!(waiting(&world, master) < 40 << 10);
            return;
        }
    }
    panic!("nobody is paused");
}

#[test]
fn a_client_is_read_again_if_nobody_answers_whether_its_pause_is_to_go_on() {
    let mut side = ConnectionManager::new(ConnectionSettings::default());
    let key = side.open(Time::ZERO, Peer::Client, None).unwrap();
    let (id, receiver) = (ConnId(7), ConnId(1));
    let answer = ToConnections::AuthAnswer {
        key,
        id,
        admitted: true,
        player: "player".to_owned(),
        message: Bytes::new(),
        number: 0,
        recovers: false,
    };
    side.handle(Time::ZERO, answer);
    let pause = Duration::from_secs(5);
    let pause = ToConnections::Pause {
        id,
        receiver,
        pause,
    };
    side.handle(Time::ZERO, pause.clone());
    assert_eq!(side.poll_pause(), Some((key, ReadControl::Pause)));
    assert_eq!(side.next_deadline(), Some(Time::from_millis(100)));
    side.handle_deadline(Time::from_millis(100));
    let ask = ToChannels::AskCongestion {
        sender: id,
        receiver,
    };
    assert_eq!(side.poll_bus(), Some(ask));
    assert_eq!(side.poll_pause(), None);
    side.handle_deadline(Time::from_millis(200));
    assert_eq!(side.poll_pause(), Some((key, ReadControl::Resume)));
    // What was taken back before anybody looked is no news.
    side.handle(Time::from_millis(200), pause);
    side.handle(
        Time::from_millis(201),
        ToConnections::Resume { id, receiver },
    );
    assert_eq!(side.poll_pause(), None);
}
