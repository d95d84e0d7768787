//! What a client can do that was let in, with the rights that engines want.

use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, MessageType,
};

use super::{Abuse, Attack, client_flood};
use crate::abuse::deployment::{Deployment, Rights};
use crate::abuse::flood::{Flood, again, first_then, in_turn};
use crate::abuse::payloads::{self as made, PACKET_BYTES, Packet, USER};
use crate::abuse::storms;
use crate::states::put_state;

/// In the order in which they are played.
pub(super) static ALL: &[Abuse] = &[
    Abuse::engine(
        "deep-mask",
        "subscriptions to GLOBAL and a room with a field mask of 8180 levels",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            let options = ChannelSubscriptionOptions {
                data_field_masks: vec![vec!["a"; 8180].join(".")],
                ..made::greedy(ChannelDataAccess::ReadAccess)
            };
            made::put_subscription(&mut packet, 0, options.clone());
            made::put_subscription(&mut packet, target.rooms[0], options);
            again(packet.frame())
        }),
    ),
    Abuse::engine(
        "deep-data",
        "updates of GLOBAL's data with messages nested thousands of levels deep",
        client_flood(|_, _| {
            let mut first = Packet::default();
            made::put_subscription(&mut first, 0, made::greedy(ChannelDataAccess::WriteAccess));
            let mut update = Packet::default();
            made::put_update(&mut update, 0, made::nested(15_000));
            first_then(first.frame(), update.frame())
        }),
    ),
    Abuse::engine(
        "empty-masks",
        "subscriptions with half a million empty field masks",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            let options = ChannelSubscriptionOptions {
                data_field_masks: vec![String::new(); 500_000],
                ..made::greedy(ChannelDataAccess::ReadAccess)
            };
            made::put_subscription(&mut packet, target.rooms[0], options);
            again(packet.snappy_frame())
        }),
    ),
    Abuse::engine(
        "many-masks",
        "subscriptions with thousands of different field masks",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            let masks = (0..6000).map(|number| format!("m{number}.x"));
            let options = ChannelSubscriptionOptions {
                data_field_masks: masks.collect(),
                ..made::greedy(ChannelDataAccess::ReadAccess)
            };
            made::put_subscription(&mut packet, target.rooms[0], options);
            again(packet.frame())
        }),
    ),
    Abuse::engine(
        "list-filters",
        "500 channels with metadata, then lists of channels with 300,000 filters",
        client_flood(|_, _| {
            let mut first = Packet::default();
            (0..500).for_each(|_| made::put_creation(&mut first, 100));
            let mut list = Packet::default();
            made::put_list(&mut list, 300_000);
            first_then(first.frame(), list.snappy_frame())
        }),
    ),
    Abuse::engine(
        "list-flood",
        "500 channels with metadata, then as many lists of all channels as can be asked for",
        client_flood(|_, _| {
            let mut first = Packet::default();
            (0..500).for_each(|_| made::put_creation(&mut first, 100));
            first_then(
                first.frame(),
                made::full_frame(|packet| made::put_list(packet, 0)),
            )
        }),
    ),
    Abuse::engine(
        "create-storm",
        "frames full of new channels",
        client_flood(|_, _| again(made::full_frame(|packet| made::put_creation(packet, 0)))),
    ),
    Abuse::engine(
        "create-metadata",
        "new channels with a megabyte of metadata each",
        client_flood(|_, _| {
            let mut packet = Packet::default();
            made::put_creation(&mut packet, PACKET_BYTES - 64);
            again(packet.snappy_frame())
        }),
    ),
    Abuse::engine(
        "create-global",
        "tries to own GLOBAL, having taken its owner away",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            made::put_unsubscription(&mut packet, 0, target.owner);
            made::put_creation_of_global(&mut packet);
            again(packet.frame())
        }),
    ),
    Abuse::engine(
        "remove-others",
        "removes all rooms",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            target
                .rooms
                .iter()
                .for_each(|&room| made::put_removal(&mut packet, room));
            again(packet.frame())
        }),
    ),
    Abuse::engine(
        "sub-all-numbers",
        "subscriptions to 65,536 channel numbers, whether there are such or not",
        client_flood(|_, _| {
            let frames = (0..65_536u32).step_by(4096).map(|from| {
                let mut packet = Packet::default();
                for channel in from..from + 4096 {
                    packet.put(channel, MessageType::SubToChannel as u32, &[]);
                }
                packet.frame()
            });
            in_turn(frames.collect())
        }),
    ),
    Abuse::engine(
        "sub-churn",
        "subscribes to a room and leaves it again, over and over",
        client_flood(|target, _| {
            let room = target.rooms[0];
            again(made::full_frame(|packet| {
                made::put_subscription(packet, room, made::greedy(ChannelDataAccess::ReadAccess));
                packet.put(room, MessageType::UnsubFromChannel as u32, &[]);
            }))
        }),
    ),
    Abuse::engine(
        "fan-out",
        "32 clients subscribed to all rooms each millisecond, from the farthest past on, and again and again",
        Attack::Flood(
            Flood {
                write_bytes: 1000,
                ..Flood::logged_in(|target, _| {
                    let mut packet = Packet::default();
                    for &room in &target.rooms {
                        made::put_subscription(
                            &mut packet,
                            room,
                            made::greedy(ChannelDataAccess::ReadAccess),
                        );
                    }
                    again(packet.frame())
                })
            }
            .over(32),
        ),
    ),
    Abuse::engine(
        "slow-readers",
        "40 clients subscribed to everything who never read",
        Attack::Own(storms::slow_readers),
    ),
    Abuse::engine(
        "data-growth",
        "updates of GLOBAL's data that make it ever larger",
        client_flood(|_, line| {
            let mut id = line as u32 * 1_000_000;
            let mut began = false;
            Box::new(move |out| {
                let mut packet = Packet::default();
                if !std::mem::replace(&mut began, true) {
                    made::put_subscription(
                        &mut packet,
                        0,
                        made::greedy(ChannelDataAccess::WriteAccess),
                    );
                }
                let mut data = Vec::new();
                while data.len() < 60_000 {
                    id += 1;
                    put_state(&mut data, id, 1, 1);
                }
                made::put_update(&mut packet, 0, data);
                out.extend(packet.frame());
            })
        }),
    ),
    Abuse::engine(
        "well-known-entities",
        "new entities that every client is to be subscribed to",
        client_flood(|_, _| {
            let mut number = 0x0008_0000;
            Box::new(move |out| {
                let packet = made::numbered(4000, |packet, _| {
                    number += 1;
                    made::put_well_known_entity(packet, number);
                });
                out.extend(packet.frame());
            })
        }),
    ),
    Abuse::engine(
        "groups",
        "groups of 200,000 entities",
        client_flood(|_, _| {
            let mut packet = Packet::default();
            // Packed well enough: the numbers share their high bytes.
            made::put_well_known_entity(&mut packet, 0x0008_0000);
            let first = packet.frame();
            let mut add = Packet::default();
            made::put_group(&mut add, 15_000, 0x0008_0000);
            first_then(first, add.frame())
        }),
    ),
    Abuse::engine(
        "engine-messages",
        "messages that only a server has a use for, of every type",
        client_flood(|_, _| {
            let packet = made::numbered(60_000, |packet, number| {
                packet.put(0, 9 + number % 90, &[8, 1]);
            });
            again(packet.frame())
        }),
    ),
    Abuse {
        deployment: Deployment {
            rights: Rights::Authoritative,
            records: true,
            ..Deployment::PLAIN
        },
        ..Abuse::plain(
            "recorder-flood",
            "a client that was let in has a recording gateway record all it can send",
            client_flood(|_, _| again(made::full_snappy_frame(|packet| packet.put(0, USER, &[])))),
        )
    },
];
