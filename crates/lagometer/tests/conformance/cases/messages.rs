//! Messages of the game's own: whom they reach.

use lagometer_protocol::messages::channeldpb::{ChannelType, CreateChannelMessage};
use lagometer_protocol::messages::unrealpb::{FVector, SpawnObjectMessage, UnrealObjectRef};
use prost::Message;

use crate::harness::peer::user_message;
use crate::harness::{Gateway, Peer, READ, Whose, options};

const MARK: &[u8] = b"mark";

/// An owner, two servers and two clients in one channel.
fn group(gateway: &Gateway) -> (u32, [Peer; 5]) {
    let mut owner = gateway.server();
    let channel = owner
        .create(CreateChannelMessage {
            channel_type: ChannelType::Test.into(),
            ..Default::default()
        })
        .channel_id;
    let mut others = [
        gateway.server(),
        gateway.server(),
        gateway.client(),
        gateway.client(),
    ];
    for peer in &mut others {
        peer.sub(channel, options(READ, 20));
    }
    let [first, second, third, fourth] = others;
    (channel, [owner, first, second, third, fourth])
}

/// Who of the group, by index, gets a message with these flags, which names
/// the first client.
fn recipients(flags: u32, sender: usize) -> Vec<usize> {
    let is_client = |place: usize| place >= 3;
    match flags {
        0 => vec![0],
        1 => vec![3],
        _ => (0..5)
            .filter(|&place| {
                !(flags & 4 != 0 && place == sender
                    || flags & 8 != 0 && place == 0
                    || flags & 16 != 0 && is_client(place)
                    || flags & 32 != 0 && !is_client(place))
            })
            .collect(),
    }
}

pub(crate) fn c14_flags_choose_the_receivers(whose: Whose) {
    let gateway = Gateway::start(whose);
    let (channel, mut group) = group(&gateway);
    let addressee = group[3].id;
    let senders = [0, 1];
    for sender in senders {
        for flags in 0..64 {
            group[sender].broadcast(channel, flags, addressee, &[sender as u8, flags as u8]);
        }
        group[sender].broadcast(channel, 2, 0, MARK);
    }
    for (place, peer) in group.iter_mut().enumerate() {
        let mut expected = vec![Vec::new(); senders.len()];
        for sender in senders {
            for flags in 0..64u32 {
                if recipients(flags, sender).contains(&place) {
                    expected[sender].push(flags as u8);
                }
            }
        }
        let mut received = vec![Vec::new(); senders.len()];
        let mut marks = 0;
        while marks < senders.len() {
            let (from_channel, msg_type, _, payload) = peer.user();
            assert_eq!((from_channel, msg_type), (channel, 110));
            if payload == MARK {
                marks += 1;
            } else {
                received[usize::from(payload[0])].push(payload[1]);
            }
        }
        assert_eq!(received, expected, "at place {place}");
    }
}

pub(crate) fn c14_a_clients_message_goes_to_the_owner_alone(whose: Whose) {
    let gateway = Gateway::start(whose);
    let (channel, [mut owner, mut server, _, mut sender, mut client]) = group(&gateway);
    let id = sender.id;
    sender.send(|outbox| {
        outbox.send(&lagometer_protocol::MessagePack {
            channel_id: channel,
            broadcast: 2,
            stub_id: 44,
            msg_type: 120,
            body: b"hello",
        })
    });
    assert_eq!(owner.user(), (channel, 120, id, b"hello".to_vec()));
    for other in [&mut server, &mut client] {
        other.expect_none("a client's message", user_message);
    }
}

pub(crate) fn c14_without_an_owner_a_message_is_dropped(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut client = gateway.client();
    client.send(|outbox| outbox.message_owner(0, 120, b"anybody?"));
    let mut server = gateway.server();
    server.broadcast(0, 0, 0, b"owner?");
    server.expect_none("an echo", user_message);
    gateway.assert_serves();
}

pub(crate) fn c15_a_server_reaches_whoever_it_names(whose: Whose) {
    let gateway = Gateway::start(whose);
    let mut owner = gateway.server();
    let channel = owner
        .create(CreateChannelMessage {
            channel_type: ChannelType::Test.into(),
            ..Default::default()
        })
        .channel_id;
    let mut server = gateway.server();
    let mut other = gateway.client();
    let id = other.id;
    server.broadcast(channel, 1, id, b"you");
    assert_eq!(other.user(), (channel, 110, id, b"you".to_vec()));
    // Nobody named: the owner.
    server.broadcast(channel, 1, 0, b"owner");
    assert_eq!(owner.user(), (channel, 110, 0, b"owner".to_vec()));
    // Nobody there: dropped.
    server.broadcast(channel, 1, 0x7fff_0000, b"nobody");
    server.list();
}

pub(crate) fn c30_naming_nobody_in_a_channel_without_owner_is_dropped(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut server = gateway.server();
    server.broadcast(0, 1, 0, b"owner?");
    server.list();
    gateway.assert_serves();
}

fn spawn(message: &SpawnObjectMessage) -> Vec<u8> {
    message.encode_to_vec()
}

fn send_spawn(peer: &mut Peer, payload: &[u8]) {
    peer.send(|outbox| outbox.message(0, lagometer_protocol::Broadcast(2), 0, 103, payload));
}

pub(crate) fn c30_a_spawn_without_a_channel_harms_nobody(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut server = gateway.server();
    server.own_global();
    let obj = Some(UnrealObjectRef {
        net_guid: Some(0x80010),
        ..Default::default()
    });
    send_spawn(
        &mut server,
        &spawn(&SpawnObjectMessage {
            obj,
            ..Default::default()
        }),
    );
    server.list();
    gateway.assert_serves();
}

pub(crate) fn c30_a_spawn_at_a_place_without_a_grid_harms_nobody(whose: Whose) {
    let mut gateway = Gateway::start(whose);
    let mut server = gateway.server();
    server.own_global();
    let obj = Some(UnrealObjectRef {
        net_guid: Some(0x80010),
        ..Default::default()
    });
    send_spawn(
        &mut server,
        &spawn(&SpawnObjectMessage {
            obj,
            channel_id: Some(0),
            location: Some(FVector {
                x: Some(1.0),
                y: Some(1.0),
                z: Some(1.0),
            }),
            ..Default::default()
        }),
    );
    server.list();
    gateway.assert_serves();
}
