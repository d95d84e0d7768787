//! Clients alone never bring a server to where it is closed as a slow reader,
//! however much they send at once and however often they come again.

use std::net::IpAddr;
use std::time::Duration;

use lagometer_gateway::core::{Budget, CloseReason, Peer, SlowReaders};
use lagometer_protocol::messages::channeldpb::{ChannelSubscriptionOptions, ServerForwardMessage};
use lagometer_protocol::{Compression, Compressor, MessagePack, frame_header};
use prost::Message;

use crate::hostile::over;
use crate::world::{GLOBAL, Who, World, types};

/// What a server is closed at where nothing else is said.
const CLOSE_AT: usize = 64 << 20;

/// One frame that unpacks to a MiB of messages of the game.
fn large_frame() -> Vec<u8> {
    let body = vec![0; 52_000];
    let message = MessagePack {
        channel_id: GLOBAL,
        broadcast: 0,
        stub_id: 0,
        msg_type: types::GAME,
        body: &body,
    };
    let mut packet = Vec::new();
    for _ in 0..20 {
        message.encode_in_packet(&mut packet);
    }
    let mut compressor = Compressor::new();
    let payload = compressor.compress(&packet).expect("zeros are compressed");
    let len = u16::try_from(payload.len()).expect("a frame");
    [&frame_header(len, Compression::Snappy), payload].concat()
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// Counts who causes what from 8 KiB on.
fn with_servers_closed_at(server_close_at_bytes: usize) -> World {
    World::with(|connections, _| {
        connections.slow_readers = SlowReaders {
            close_at_bytes: 64 << 10,
            server_close_at_bytes,
            close_after: Duration::from_mins(10),
            ..SlowReaders::default()
        };
    })
}

fn waiting(world: &World, who: Who) -> usize {
    let peer = &world.peers[who];
    world.sides[peer.side].waiting(peer.key)
}

/// Whether a server that reads nothing gets an honest player's message once it
/// reads again.
fn is_forwarded(world: &mut World, master: Who, player: Who) -> bool {
    world.send_raw(player, GLOBAL, 0, 0, types::GAME, b"I am honest");
    assert!(!world.peers[player].paused);
    assert_eq!(world.peers[player].closed, None);
    world.resume(master);
    let from = world.id(player);
    world.take(master, types::GAME).iter().any(|pack| {
        let message = ServerForwardMessage::decode(&*pack.msg_body).unwrap();
        message.client_conn_id == from && &*message.payload == b"I am honest"
    })
}

#[test]
fn a_hundred_clients_with_a_frame_of_a_mebibyte_each_do_not_have_a_server_closed() {
    let mut world = World::new();
    let (master, player) = (world.master(), world.join_from(Peer::Client, address(1)));
    let flooders: Vec<Who> = (0..100)
        .map(|_| world.join_from(Peer::Client, address(2)))
        .collect();
    world.peers[master].stalled = true;
    let frame = large_frame();
    for &who in &flooders {
        world.send_bytes(who, &frame);
    }
    assert_eq!(world.peers[master].closed, None);
    assert!(waiting(&world, master) < CLOSE_AT / 2 + (1 << 20));
    assert!(over(&world, Peer::Client, Budget::ServerBacklog) >= 100);
    let closed = CloseReason::OverBudget(Budget::ServerBacklog);
    assert_eq!(world.peers[flooders[99]].closed, Some(closed));
    assert!(is_forwarded(&mut world, master, player));
    world.pass(1000);
}

#[test]
fn a_client_that_sends_hangs_up_and_comes_again_does_not_have_a_server_closed() {
    let mut world = World::new();
    let (master, player) = (world.master(), world.join_from(Peer::Client, address(1)));
    world.peers[master].stalled = true;
    let frame = large_frame();
    for _ in 0..150 {
        let who = world.join_from(Peer::Client, address(2));
        world.send_bytes(who, &frame);
        world.hang_up(who);
    }
    assert_eq!(world.peers[master].closed, None);
    assert!(waiting(&world, master) < CLOSE_AT / 2 + (1 << 20));
    assert!(is_forwarded(&mut world, master, player));
    // Once the server has read it all the debt is paid.
    world.pass(1000);
    let again = world.join_from(Peer::Client, address(2));
    world.peers[master].stalled = true;
    assert!(is_forwarded(&mut world, master, again));
}

#[test]
fn clients_of_many_addresses_leave_a_quarter_to_servers() {
    let close_at = 1 << 20;
    let mut world = with_servers_closed_at(close_at);
    let (master, other) = (world.master(), world.server());
    let flooders: Vec<Who> = (0..100)
        .map(|number| world.join_from(Peer::Client, address(number)))
        .collect();
    world.peers[master].stalled = true;
    let frame = large_frame();
    for &who in &flooders {
        world.send_bytes(who, &frame);
    }
    assert_eq!(world.peers[master].closed, None);
    let of_clients = waiting(&world, master);
    assert!((close_at / 2..=close_at / 4 * 3).contains(&of_clients));
    let to = world.id(master);
    for _ in 0..4 {
        world.forward(other, GLOBAL, 1, to, &vec![1; 50_000]);
    }
    assert!(waiting(&world, master) >= of_clients + 200_000);
    assert_eq!(world.peers[master].closed, None);
}

#[test]
fn a_message_is_dropped_before_a_full_server_and_a_client_that_asks_for_a_notice_closed() {
    let close_at = 256 << 10;
    let mut world = with_servers_closed_at(close_at);
    let (master, client) = (world.master(), world.join_from(Peer::Client, address(1)));
    let room = world.create(master, 3);
    world.peers[master].stalled = true;
    let dropped = |world: &World| over(world, Peer::Client, Budget::ServerBacklog);
    for _ in 0..500 {
        if dropped(&world) > 0 {
            break;
        }
        world.send_raw(client, GLOBAL, 0, 0, types::GAME, &[7; 1000]);
    }
    assert_eq!(dropped(&world), 1);
    assert!((close_at / 2..close_at / 2 + 2000).contains(&waiting(&world, master)));
    for _ in 0..60 {
        world.send_raw(client, GLOBAL, 0, 0, types::GAME, &[7; 1000]);
    }
    assert_eq!(dropped(&world), 61);
    assert_eq!(world.peers[client].closed, None);
    world.subscribe(client, room, ChannelSubscriptionOptions::default());
    let closed = CloseReason::OverBudget(Budget::ServerBacklog);
    assert_eq!(world.peers[client].closed, Some(closed));
    assert_eq!(world.peers[master].closed, None);
}
