//! The game's own messages and whom they reach.

use lagometer_protocol::messages::channeldpb::{MessagePack, ServerForwardMessage};
use prost::Message;

use crate::world::{GLOBAL, Who, World, every, types};

fn body(pack: &MessagePack) -> (u32, Vec<u8>) {
    let forward = ServerForwardMessage::decode(&*pack.msg_body).unwrap();
    (forward.client_conn_id, forward.payload.to_vec())
}

#[test]
fn a_clients_message_goes_to_the_owner_whatever_its_flags() {
    let mut world = World::new();
    let master = world.master();
    let (client, other) = (world.client(), world.client());
    world.subscribe(other, GLOBAL, every(20));
    world.forget_all();
    for flags in [0, 2, 64] {
        world.send_raw(client, GLOBAL, 3, flags, types::GAME, b"hello");
        let notice = world.one(master, types::GAME);
        assert_eq!((notice.stub_id, notice.broadcast), (3, flags));
        assert_eq!(body(&notice), (world.id(client), b"hello".to_vec()));
    }
    assert!(world.types(other).is_empty());
}

#[test]
fn every_combination_of_flags_reaches_whom_it_should() {
    let mut world = World::new();
    let owner = world.master();
    let (sender, client, alien) = (world.server(), world.client(), world.client());
    for who in [sender, client] {
        world.subscribe(who, GLOBAL, every(20));
    }
    let everyone: [Who; 4] = [owner, sender, client, alien];
    for flags in 0..64_u32 {
        for to in [0, world.id(alien)] {
            world.forget_all();
            world.forward(sender, GLOBAL, flags, to, b"x");
            let reached: Vec<Who> = everyone
                .into_iter()
                .filter(|&who| !world.take(who, types::GAME).is_empty())
                .collect();
            let expected: Vec<Who> = match flags {
                0 => vec![owner],
                1 if to == 0 => vec![owner],
                1 => vec![alien],
                _ => [
                    (owner, flags & (8 | 32)),
                    (sender, flags & (4 | 32)),
                    (client, flags & 16),
                ]
                .into_iter()
                .filter(|(_, left_out)| *left_out == 0)
                .map(|(who, _)| who)
                .collect(),
            };
            assert_eq!(reached, expected, "flags {flags} to {to}");
        }
    }
}

#[test]
fn without_an_owner_nothing_breaks() {
    let mut world = World::new();
    let (server, client) = (world.server(), world.client());
    for flags in [0, 1] {
        world.forward(server, GLOBAL, flags, 0, b"x");
        world.send_raw(client, GLOBAL, 0, flags, types::GAME, b"x");
    }
    world.forward(server, GLOBAL, 1, 999, b"to nobody");
    world.send_raw(server, GLOBAL, 0, 2, types::GAME, b"\x0a\x7f no forward");
    assert!(world.types(server).is_empty() && world.types(client).is_empty());
    assert_eq!(world.channels.counters().dropped, 5);
}

#[test]
fn a_message_that_no_frame_holds_is_counted_and_dropped() {
    let mut world = World::new();
    let master = world.master();
    let client = world.client();
    let payload = vec![7; 65_520];
    world.send_raw(client, GLOBAL, 0, 0, types::GAME, &payload[..65_500]);
    assert_eq!(world.take(master, types::GAME).len(), 1);
    world.send_raw(client, GLOBAL, 0, 0, types::GAME, &payload);
    assert!(world.take(master, types::GAME).is_empty());
    assert_eq!(world.channels.counters().too_long, 1);
}
