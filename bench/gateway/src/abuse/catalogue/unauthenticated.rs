//! Floods by those who are not let in: they need nothing but a connection.

use super::{Abuse, Attack, flood, websocket_flood};
use crate::abuse::deployment::{Deployment, TOKEN};
use crate::abuse::flood::{Flood, again, first_then};
use crate::abuse::payloads::{self as made, PACKET_BYTES, Packet, USER};
use crate::abuse::storms;

/// In the order in which they are played.
pub(super) static ALL: &[Abuse] = &[
    Abuse::plain("none", "nobody attacks", Attack::Nobody),
    Abuse::engine(
        "none-engine",
        "nobody attacks a gateway with the rights that engines want",
        Attack::Nobody,
    ),
    Abuse::plain(
        "auth-snappy",
        "snappy frames that each unpack to 90,909 failing logins",
        flood(|_, _| {
            again(made::full_snappy_frame(|packet| {
                made::put_login(packet, "abc", "");
            }))
        }),
    ),
    Abuse::plain(
        "auth-plain",
        "frames full of failing logins",
        flood(|_, _| {
            again(made::full_frame(|packet| {
                made::put_login(packet, "abc", "");
            }))
        }),
    ),
    Abuse::plain(
        "auth-good",
        "frames full of logins with the right token, again and again",
        flood(|_, _| {
            again(made::full_frame(|packet| {
                made::put_login(packet, "abc", TOKEN);
            }))
        }),
    ),
    Abuse {
        deployment: Deployment {
            asks_provider: true,
            ..Deployment::PLAIN
        },
        ..Abuse::plain(
            "auth-slow-provider",
            "frames full of failing logins, then hanging up, while a service of the game's own takes 20 ms over each login",
            Attack::Own(storms::log_in_and_go),
        )
    },
    Abuse::plain(
        "auth-names",
        "failing logins, each with a name of its own of 60 kB",
        flood(|_, line| {
            let mut number = line as u64 * 1_000_000_000;
            Box::new(move |out| {
                number += 1;
                out.extend(made::failing_login(number, 60_000));
            })
        }),
    ),
    Abuse {
        deployment: Deployment {
            records: true,
            ..Deployment::PLAIN
        },
        ..Abuse::plain(
            "recorder-fill",
            "frames before the login, which a recording gateway might keep",
            flood(|_, _| {
                again(made::full_snappy_frame(|packet| {
                    packet.put(0, USER, &[7; 8]);
                }))
            }),
        )
    },
    Abuse::plain(
        "noise",
        "random bytes",
        Attack::Flood(
            Flood::of(|_, line| {
                let mut random = fastrand::Rng::with_seed(line as u64);
                Box::new(move |out| {
                    out.resize(out.len() + 4096, 0);
                    let from = out.len() - 4096;
                    random.fill(&mut out[from..]);
                })
            })
            .over(8),
        ),
    ),
    Abuse::plain(
        "framed-noise",
        "frames whose packets are random bytes",
        Attack::Flood(
            Flood::of(|_, line| {
                let mut random = fastrand::Rng::with_seed(line as u64);
                Box::new(move |out| {
                    let mut packet = Packet::default();
                    packet.put(
                        random.u32(..),
                        random.u32(..200),
                        &std::array::from_fn::<u8, 64, _>(|_| random.u8(..)),
                    );
                    out.extend(packet.frame());
                })
            })
            .over(8),
        ),
    ),
    Abuse::plain(
        "snappy-bombs",
        "frames that unpack to a megabyte of one message that nobody may send yet",
        flood(|_, _| {
            let mut packet = Packet::default();
            packet.put(0, USER, &vec![0; PACKET_BYTES - 32]);
            again(packet.snappy_frame())
        }),
    ),
    Abuse::plain(
        "byte-by-byte",
        "a frame of a failing login in writes of one byte each",
        Attack::Flood(
            Flood {
                write_bytes: 1,
                ..Flood::of(|_, _| again(made::failing_login(1, 100)))
            }
            .over(4),
        ),
    ),
    Abuse::plain(
        "empty-messages",
        "frames full of messages without type and body",
        flood(|_, _| again(made::full_frame(|packet| packet.put(0, 0, &[])))),
    ),
    Abuse::plain(
        "websocket-empty",
        "WebSocket messages without a byte",
        websocket_flood(|_, _| again(made::websocket_frame(made::BINARY, &[]).repeat(4096))),
    ),
    Abuse::plain(
        "websocket-pings",
        "WebSocket pings",
        websocket_flood(|_, _| again(made::websocket_frame(made::PING, &[]).repeat(4096))),
    ),
    Abuse::plain(
        "websocket-pings-unread",
        "WebSocket pings with a hundred bytes whose pongs are never read",
        Attack::Flood(
            Flood {
                reads: false,
                ..Flood::websocket(|_, _| {
                    again(made::websocket_frame(made::PING, &[7; 100]).repeat(256))
                })
            }
            .over(4),
        ),
    ),
    Abuse::plain(
        "websocket-fragments",
        "one WebSocket message in fragments without a byte that never ends",
        websocket_flood(|_, _| {
            first_then(
                made::websocket_frame(made::BINARY_FIRST, b"C"),
                made::websocket_frame(made::CONTINUATION, &[]).repeat(4096),
            )
        }),
    ),
    Abuse::plain(
        "websocket-bytes",
        "a frame of a failing login in WebSocket messages of one byte each",
        websocket_flood(|_, _| {
            let login = made::failing_login(1, 100);
            again(
                login
                    .iter()
                    .flat_map(|&byte| made::websocket_frame(made::BINARY, &[byte]))
                    .collect(),
            )
        }),
    ),
];
