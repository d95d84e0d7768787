//! Sides over the sockets of this machine's loopback device.

use std::net::{Ipv4Addr, SocketAddr};
use std::process;
use std::time::{Duration, Instant};

use lagometer_socket::{BoxedConnection, Opening, SocketSpec};
use lagometer_transport::{Closed, Refused, State, turn};
use lagometer_units::Time;
use serde_json::{Map, json};

/// Long enough for a handshake on a machine that is busy otherwise.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Both sides of a lane, played by turns on one thread.
struct Lane {
    origin: Instant,
    client: BoxedConnection,
    server: BoxedConnection,
}

impl Lane {
    /// A lane whose addresses no other test has, of this process or another, and
    /// whose ports no other test of this process has: UDT needs that.
    fn open(spec: &SocketSpec, number: u8) -> Self {
        let [_, _, high, low] = process::id().to_be_bytes();
        let address = |port| SocketAddr::from((Ipv4Addr::new(127, high.max(1), low, number), port));
        let opening = Opening {
            local: address(40_000 + 2 * u16::from(number)),
            remote: address(40_001 + 2 * u16::from(number)),
            seed: u64::from(number),
            now: Time::ZERO,
        };
        let server = spec.server(&opening).unwrap();
        Self {
            origin: Instant::now(),
            client: spec.client(&opening).unwrap(),
            server,
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }

    /// Plays until `done` says so, with turns in between.
    fn play_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            let now = self.now();
            assert!(now < Time::ZERO + TIMEOUT, "it takes too long");
            self.client.turn(now);
            self.server.turn(now);
            self.client.wait(Duration::from_micros(200));
        }
    }

    fn connect(&mut self) {
        self.play_until(|lane| {
            [lane.client.state(), lane.server.state()] == [State::Ready, State::Ready]
        });
    }
}

fn preset(name: &str) -> SocketSpec {
    SocketSpec::resolve(name, &Map::new()).unwrap()
}

/// Sends messages up and their echoes down, and counts what comes back whole.
fn echoes(name: &str, number: u8, messages: u32, size: usize) {
    let mut lane = Lane::open(&preset(name), number);
    lane.connect();
    let mut sent = 0;
    let mut returned = Vec::new();
    lane.play_until(|lane| {
        let now = lane.now();
        while sent < messages {
            let mut message = vec![sent as u8; size];
            message[..4].copy_from_slice(&sent.to_le_bytes());
            match lane.client.send(now, &message) {
                Ok(()) => sent += 1,
                Err(Refused::BufferFull) => break,
                Err(refused) => panic!("{name}: {refused}"),
            }
        }
        while let Some(message) = lane.server.receive(now) {
            // An echo that is refused for now is lost to this test.
            let _ = lane.server.send(now, &message.bytes);
        }
        while let Some(message) = lane.client.receive(now) {
            let (number, filling) = message.bytes.split_first_chunk::<4>().unwrap();
            let number = u32::from_le_bytes(*number);
            assert_eq!(message.bytes.len(), size);
            assert!(filling.iter().all(|byte| *byte == number as u8), "{name}");
            returned.push(number);
        }
        returned.len() as u32 == messages
    });
    assert!(!lane.client.path().is_empty());
    let counters = lane.client.counters();
    if counters.system_calls == 0 {
        // A library's, whose threads cost something instead.
        assert!(counters.library_cpu > Duration::ZERO);
        return;
    }
    assert!(counters.bytes_sent > u64::from(messages) * size as u64);
    assert!(counters.packets_received > 0);
}

#[test]
fn endpoints_run_over_udp() {
    for (number, name) in (0..).zip(["udp", "kcp", "enet", "quic", "webrtc", "renet"]) {
        echoes(name, number, 20, 500);
    }
}

#[test]
fn an_answer_within_the_turn_carries_the_acknowledgement() {
    const MESSAGES: u32 = 20;
    let mut lane = Lane::open(&preset("kcp"), 6);
    lane.connect();
    let before = lane.server.counters();
    let (mut sent, mut returned) = (0, 0);
    while returned < MESSAGES {
        let now = lane.now();
        assert!(now < Time::ZERO + TIMEOUT, "it takes too long");
        // One at a time: none shares a datagram with the next.
        if sent == returned && sent < MESSAGES {
            lane.client.send(now, b"question").unwrap();
            sent += 1;
        }
        turn(
            &mut *lane.server,
            || now,
            |server, now| {
                server
                    .receive(now)
                    .inspect(|message| server.send(now, &message.bytes).unwrap())
                    .is_some()
            },
        );
        lane.client.turn(now);
        while lane.client.receive(now).is_some() {
            returned += 1;
        }
        lane.client.wait(Duration::from_micros(200));
    }
    let sent = lane.server.counters().since(&before).packets_sent;
    // An answer each; put out before it, each acknowledgement would have had a
    // datagram too.
    assert!(sent < 3 * u64::from(MESSAGES) / 2, "{sent} datagrams");
}

#[test]
fn the_kernels_tcp_carries_messages_of_any_size() {
    for (number, name) in (20..).zip(["tcp-cubic", "tcp-bbr", "tcp-reno", "tcp-game"]) {
        let spec = preset(name);
        if let Err(lacks) = spec.available() {
            println!("skipped: {lacks}");
            continue;
        }
        echoes(name, number, 20, 500);
    }
    echoes("tcp-cubic", 24, 3, 1 << 20);
}

#[test]
#[cfg(feature = "udt")]
fn udt_carries_messages_in_every_way_it_can_be_waited_for() {
    let names = [
        "udt",
        "udt-dgram",
        "udt-stream",
        "udt-epoll",
        "udt-default",
        "udt-dgram-2015",
        "udt-stream-2015",
        "udt-epoll-2015",
    ];
    for (number, name) in (49..).zip(names) {
        echoes(name, number, 20, 500);
    }
    echoes("udt-stream", 60, 3, 200_000);
    echoes("udt-dgram", 61, 3, 200_000);
}

#[test]
#[cfg(feature = "udt")]
fn udt_notices_a_peer_that_leaves_and_a_server_that_is_not_there() {
    for (number, name) in (62..).zip(["udt-dgram", "udt-stream-2015", "udt-epoll"]) {
        let mut lane = Lane::open(&preset(name), number);
        lane.connect();
        lane.server = Lane::open(&preset("udp"), number + 10).server;
        lane.play_until(|lane| lane.client.state() == State::Closed(Closed::ByPeer));
        let now = lane.now();
        assert_eq!(lane.client.send(now, b"too late"), Err(Refused::NotOpen));
        assert!(lane.client.counters().library_cpu > Duration::ZERO);
    }
    let mut lane = Lane::open(&preset("udp"), 80);
    let port = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let opening = Opening {
        local: port(0),
        // Discards, if anybody is there at all.
        remote: port(9),
        seed: 1,
        now: Time::ZERO,
    };
    lane.client = preset("udt-dgram").client(&opening).unwrap();
    lane.play_until(|lane| lane.client.state() == State::Closed(Closed::DeadLink));
}

#[test]
fn srt_carries_messages_or_says_what_it_lacks() {
    for (number, name) in (90..).zip(["srt", "srt-live"]) {
        match preset(name).available() {
            Ok(()) => echoes(name, number, 20, 500),
            Err(lacks) => assert!(lacks.mend.contains("libsrt-openssl-dev"), "{lacks}"),
        }
    }
}

#[test]
#[cfg(feature = "udt")]
fn a_full_udt_buffer_refuses_and_takes_again() {
    let spec = SocketSpec::resolve(
        "udt-dgram-2015",
        json!({ "send_buffer": "1472 B", "max_message": "1000 B" })
            .as_object()
            .unwrap(),
    )
    .unwrap();
    let mut lane = Lane::open(&spec, 82);
    lane.connect();
    let (mut sent, mut refused, mut arrived) = (0_u32, 0, 0);
    lane.play_until(|lane| {
        let now = lane.now();
        while sent < 50 {
            match lane.client.send(now, &sent.to_le_bytes()) {
                Ok(()) => sent += 1,
                Err(why) => {
                    assert_eq!(why, Refused::BufferFull);
                    refused += 1;
                    break;
                }
            }
        }
        while let Some(message) = lane.server.receive(now) {
            assert_eq!(message.bytes, u32::to_le_bytes(arrived));
            arrived += 1;
        }
        arrived == 50
    });
    assert!(refused > 0);
    let now = lane.now();
    assert!(matches!(
        lane.client.send(now, &[0; 1001]),
        Err(Refused::TooLarge { .. })
    ));
}

#[test]
fn tcp_uses_the_congestion_control_it_was_asked_for_on_both_sides() {
    let mut lane = Lane::open(&preset("tcp-reno"), 30);
    lane.connect();
    assert_eq!(lane.client.path(), "kernel TCP, reno");
    assert_eq!(lane.server.path(), "kernel TCP, reno");
}

#[test]
fn a_peer_that_leaves_is_noticed_and_what_it_said_is_kept() {
    let mut lane = Lane::open(&preset("tcp-cubic"), 31);
    lane.connect();
    let now = lane.now();
    lane.server.send(now, b"farewell").unwrap();
    lane.server = Lane::open(&preset("udp"), 32).server;
    let client = &mut lane.client;
    let began = Instant::now();
    while client.state() == State::Ready && began.elapsed() < TIMEOUT {
        client.wait(Duration::from_millis(1));
        client.turn(now);
    }
    assert_eq!(client.state(), State::Closed(Closed::ByPeer));
    assert_eq!(client.receive(now).unwrap().bytes, b"farewell");
    assert_eq!(client.send(now, b"too late"), Err(Refused::NotOpen));
}

#[test]
fn nobody_at_the_remote_end_ends_tcp_and_not_udp() {
    let [_, _, high, low] = process::id().to_be_bytes();
    let address = |port| SocketAddr::from((Ipv4Addr::new(127, high.max(1), low, 40), port));
    let opening = Opening {
        local: address(40_001),
        remote: address(40_002),
        seed: 1,
        now: Time::ZERO,
    };
    let mut tcp = preset("tcp-cubic").client(&opening).unwrap();
    let mut udp = preset("udp").client(&opening).unwrap();
    for turn in 0..20 {
        let now = Time::from_millis(turn);
        let _ = udp.send(now, b"anybody?");
        tcp.turn(now);
        udp.turn(now);
        udp.wait(Duration::from_millis(1));
    }
    assert!(matches!(tcp.state(), State::Closed(_)), "{:?}", tcp.state());
    assert_eq!(udp.state(), State::Ready);
    assert!(udp.counters().packets_sent >= 20);
}

#[test]
fn settings_are_changed_by_name_and_mistakes_are_reported() {
    let overrides = json!({ "quick_ack": false });
    let spec = SocketSpec::resolve("tcp-bbr", overrides.as_object().unwrap()).unwrap();
    assert_eq!(spec.settings_json()["quick_ack"], json!(false));
    assert_eq!(spec.settings_json()["congestion_control"], json!("bbr"));
    for (name, overrides, said) in [
        ("tcp-bbr", json!({ "nodelay": true }), "nodelay"),
        ("kcp", json!({ "window": "x" }), "window"),
        ("nonesuch", json!({}), "nonesuch"),
    ] {
        let refused = SocketSpec::resolve(name, overrides.as_object().unwrap());
        let words = refused.unwrap_err().to_string();
        assert!(words.contains(said), "{words}");
    }
}
