//! Storms of connections, datagrams and questions to the web port: they need
//! nothing but an address.

use super::{Abuse, Attack};
use crate::abuse::{datagrams, storms, web};

/// In the order in which they are played.
pub(super) static ALL: &[Abuse] = &[
    Abuse::plain(
        "mute",
        "12,000 connections from one address that say nothing",
        Attack::Own(storms::mute),
    ),
    Abuse::plain(
        "mute-everywhere",
        "12,000 connections from as many addresses that say nothing",
        Attack::Own(storms::mute_from_everywhere),
    ),
    Abuse::plain(
        "mute-servers",
        "12,000 connections that say nothing to the port of game servers",
        Attack::Own(storms::mute_servers),
    ),
    Abuse::plain(
        "half-frames",
        "1000 frames of 65 kB that never end",
        Attack::Own(storms::half_frames),
    ),
    Abuse::plain(
        "come-and-go",
        "connections that go as soon as they stand",
        Attack::Own(storms::come_and_go),
    ),
    Abuse::plain(
        "login-and-go",
        "connections that send a frame full of logins and hang up",
        Attack::Own(storms::log_in_and_go),
    ),
    Abuse::plain(
        "websocket-handshakes",
        "4000 WebSocket handshakes that never end",
        Attack::Own(storms::endless_handshakes),
    ),
    Abuse::plain(
        "websocket-hoard",
        "200 WebSocket messages of a megabyte that lack the last byte",
        Attack::Own(storms::hoarded_messages),
    ),
    Abuse::plain(
        "tls-handshakes",
        "TLS handshakes, each ended after the answer",
        Attack::Own(storms::tls_handshakes),
    ),
    Abuse::plain(
        "tls-half",
        "4000 TLS handshakes that stop half-way",
        Attack::Own(storms::half_tls_handshakes),
    ),
    Abuse::plain(
        "kcp-half-open",
        "KCP conversations that are begun and left, each from another address",
        Attack::Own(datagrams::half_open),
    ),
    Abuse::plain(
        "kcp-noise",
        "datagrams that mean nothing to the KCP port",
        Attack::Own(datagrams::garbage),
    ),
    Abuse::plain(
        "kcp-windows",
        "KCP data far ahead of what was received, before the login",
        Attack::Own(datagrams::windows),
    ),
    Abuse::plain(
        "kcp-reflects-logins",
        "logins that fail in datagrams whose senders are forged; bytes back for each sent are counted",
        Attack::Own(datagrams::reflected_logins),
    ),
    Abuse::plain(
        "kcp-reflects-windows",
        "questions for KCP's window in datagrams whose senders are forged",
        Attack::Own(datagrams::reflected_windows),
    ),
    Abuse::plain(
        "kcp-reflects-data",
        "many pieces of data in datagrams whose senders are forged",
        Attack::Own(datagrams::reflected_acknowledgements),
    ),
    Abuse::plain(
        "web-slowloris",
        "64 requests to the web port that never end",
        Attack::Own(web::slowloris),
    ),
    Abuse::plain(
        "web-questions",
        "questions for the metrics, one after the other",
        Attack::Own(web::questions),
    ),
    Abuse::plain(
        "web-unread",
        "questions for the metrics whose answers are never read",
        Attack::Own(web::unread_answers),
    ),
];
