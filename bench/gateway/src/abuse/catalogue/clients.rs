//! What a client can do that was let in, with default rights.

use super::{Abuse, Attack, client_flood};
use crate::abuse::flood::{Flood, again, in_turn};
use crate::abuse::payloads::{self as made, Packet, USER};
use crate::abuse::storms;

/// In the order in which they are played.
pub(super) static ALL: &[Abuse] = &[
    Abuse::plain(
        "unsub-owner",
        "ends the subscriptions of the game server to GLOBAL and all rooms",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            for &channel in target.rooms.iter().chain([&0]) {
                made::put_unsubscription(&mut packet, channel, target.owner);
            }
            again(packet.frame())
        }),
    ),
    Abuse::plain(
        "unsub-others",
        "ends the subscriptions of all players to all rooms",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            for &player in &target.players {
                for &room in &target.rooms {
                    made::put_unsubscription(&mut packet, room, player);
                }
            }
            again(packet.frame())
        }),
    ),
    Abuse::plain(
        "disconnect-others",
        "has the connections of all players and the server closed",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            for &id in target.players.iter().chain([&target.owner]) {
                made::put_disconnect(&mut packet, id);
            }
            again(packet.frame())
        }),
    ),
    Abuse::plain(
        "user-flood",
        "small messages of the game's own to the owner of a room",
        client_flood(|target, _| {
            let room = target.rooms[0];
            again(made::full_frame(|packet| packet.put(room, USER, &[7; 60])))
        }),
    ),
    Abuse::plain(
        "user-large",
        "the largest messages of the game's own to the owner of a room",
        client_flood(|target, _| {
            let mut packet = Packet::default();
            packet.put(target.rooms[0], USER, &vec![7; 65_000]);
            again(packet.frame())
        }),
    ),
    Abuse::plain(
        "user-snappy",
        "snappy frames that each unpack to a megabyte of empty messages to the owner of a room",
        client_flood(|target, _| {
            let room = target.rooms[0];
            again(made::full_snappy_frame(|packet| {
                packet.put(room, USER, &[]);
            }))
        }),
    ),
    Abuse::plain(
        "user-bursts",
        "clients that log in, send as many messages to the owner of a room as a frame may have, and hang up",
        Attack::Own(storms::burst_and_go),
    ),
    Abuse::plain(
        "user-broadcast",
        "messages of the game's own with every broadcast flag, to every room",
        client_flood(|target, _| {
            let rooms = target.rooms.clone();
            again(made::full_frame(|packet| {
                for &room in &rooms {
                    packet.put_with(room, USER, 2, &[7; 60]);
                }
            }))
        }),
    ),
    Abuse::plain(
        "user-nowhere",
        "messages of the game's own to channels that there are not",
        client_flood(|_, _| {
            again(made::full_frame(|packet| {
                packet.put(9_999_999, USER, &[7; 8]);
            }))
        }),
    ),
    Abuse::plain(
        "user-many",
        "the flood of small messages over 32 connections at once",
        Attack::Flood(
            Flood::logged_in(|target, _| {
                let room = target.rooms[0];
                again(made::full_frame(|packet| packet.put(room, USER, &[7; 60])))
            })
            .over(32),
        ),
    ),
    Abuse::plain(
        "refused",
        "messages of every type that the state machine refuses",
        client_flood(|_, _| {
            let packet = made::numbered(60_000, |packet, number| packet.put(0, number % 99, &[]));
            again(packet.frame())
        }),
    ),
    Abuse::plain(
        "login-again",
        "logins of one that is let in already",
        client_flood(|_, _| {
            again(made::full_frame(|packet| {
                made::put_login(packet, "abc", "");
            }))
        }),
    ),
    Abuse::plain(
        "alternating",
        "small frames by turns with and without compression",
        client_flood(|target, _| {
            let room = target.rooms[0];
            let packet = made::repeated(2000, |packet| packet.put(room, USER, &[]));
            in_turn(vec![packet.frame(), packet.snappy_frame()])
        }),
    ),
    Abuse::plain(
        "byte-by-byte-let-in",
        "messages to the owner of a room in writes of one byte each",
        Attack::Flood(
            Flood {
                write_bytes: 1,
                ..Flood::logged_in(|target, _| {
                    let mut packet = Packet::default();
                    packet.put(target.rooms[0], USER, &[]);
                    again(packet.frame())
                })
            }
            .over(4),
        ),
    ),
];
