//! WebRTC data channels carry what their presets promise, whatever the wire
//! does.

mod virtual_wire;

use std::time::Duration;

use lagometer_transport::webrtc::Settings;
use lagometer_transport::{Closed, Refused, State, Transport};
use lagometer_units::{Size, Time};
use virtual_wire::{CLIENT, Impairments, SERVER, Wire, number, numbered};

const TICK: Duration = Duration::from_millis(50);

fn connected(settings: &Settings, impairments: Impairments, seed: u64) -> Wire {
    let mut wire = Wire::new(settings.pair(seed, Time::ZERO), impairments, seed);
    wire.connect();
    wire
}

/// Sends `count` numbered messages, one a tick, and waits for stragglers.
/// Returns the numbers received by the server.
fn play(wire: &mut Wire, count: u64) -> Vec<u64> {
    for index in 0..count {
        wire.send(CLIENT, &numbered(index, 500)).unwrap();
        wire.run_for(TICK);
    }
    wire.run_for(Duration::from_mins(1));
    wire.received[SERVER]
        .iter()
        .map(|(_, message)| number(&message.bytes).expect("a damaged message"))
        .collect()
}

#[test]
fn the_reliable_channel_delivers_everything_in_order_through_a_storm() {
    let mut wire = connected(&Settings::RELIABLE, Impairments::HEAVY, 1);
    wire.echo = true;
    assert_eq!(play(&mut wire, 200), (0..200).collect::<Vec<_>>());
    let echoed = wire.received[CLIENT].iter();
    let echoed: Vec<_> = echoed.map(|(_, m)| number(&m.bytes).unwrap()).collect();
    assert_eq!(echoed, (0..200).collect::<Vec<_>>());
}

#[test]
fn the_unreliable_channel_loses_but_never_repeats() {
    let mut wire = connected(&Settings::UNRELIABLE, Impairments::HEAVY, 2);
    let mut numbers = play(&mut wire, 200);
    assert!((100..200).contains(&numbers.len()), "{}", numbers.len());
    numbers.sort_unstable();
    let delivered = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), delivered, "a message came twice");
}

#[test]
fn both_channels_carry_64_kib_both_ways() {
    for (settings, impairments) in [
        (Settings::RELIABLE, Impairments::HEAVY),
        (Settings::UNRELIABLE, Impairments::NONE),
    ] {
        let mut wire = connected(&settings, impairments, 3);
        wire.echo = true;
        for index in 0..3 {
            wire.send_patiently(CLIENT, &numbered(index, 65_536));
            wire.run_for(Duration::from_mins(2));
        }
        assert_eq!(wire.received[CLIENT].len(), 3);
        for (_, message) in &wire.received[CLIENT] {
            assert!(number(&message.bytes).is_some());
        }
    }
}

#[test]
fn an_empty_message_is_a_message() {
    let mut wire = connected(&Settings::RELIABLE, Impairments::NONE, 4);
    wire.send(CLIENT, b"").unwrap();
    wire.send(SERVER, b"").unwrap();
    wire.run_for(Duration::from_secs(1));
    for end in [CLIENT, SERVER] {
        assert_eq!(wire.received[end].len(), 1);
        assert!(wire.received[end][0].1.bytes.is_empty());
    }
}

#[test]
fn a_message_too_large_is_refused_with_the_limit() {
    let mut wire = connected(&Settings::RELIABLE, Impairments::NONE, 5);
    let limit_bytes = Settings::RELIABLE.largest_message_bytes();
    assert_eq!(
        wire.send(CLIENT, &vec![0; limit_bytes + 1]),
        Err(Refused::TooLarge {
            size_bytes: limit_bytes + 1,
            limit_bytes
        })
    );
    wire.send(CLIENT, &numbered(1, limit_bytes)).unwrap();
    wire.run_for(Duration::from_secs(10));
    assert_eq!(wire.received[SERVER].len(), 1);
}

#[test]
fn nothing_is_taken_before_the_connection_is_open() {
    let pair = Settings::RELIABLE.pair(6, Time::ZERO);
    for mut end in [pair.client, pair.server] {
        assert_eq!(end.state(), State::Connecting);
        assert_eq!(end.send(Time::ZERO, b"early"), Err(Refused::NotOpen));
    }
}

#[test]
fn a_peer_that_stops_answering_is_a_dead_link_in_the_stated_time() {
    let impatient = Settings {
        stun_max_retransmits: 5,
        ..Settings::RELIABLE
    };
    for settings in [Settings::RELIABLE, Settings::UNRELIABLE, impatient] {
        let mut wire = connected(&settings, Impairments::NONE, 7);
        wire.run_for(Duration::from_secs(20));
        wire.cut = true;
        wire.send(CLIENT, b"anyone?").unwrap();
        wire.run_for(Duration::from_secs(10));
        assert_eq!(wire.ends[CLIENT].state(), State::Ready);
        let stated = settings.dead_link_after().unwrap();
        wire.run_for(stated.saturating_sub(Duration::from_secs(10)));
        for end in &wire.ends {
            assert_eq!(end.state(), State::Closed(Closed::DeadLink));
        }
        assert_eq!(wire.send(CLIENT, b"hello?"), Err(Refused::NotOpen));
    }
}

#[test]
fn a_server_that_is_not_there_is_a_dead_link() {
    let mut wire = Wire::new(Settings::RELIABLE.pair(8, Time::ZERO), Impairments::NONE, 8);
    wire.cut = true;
    wire.run_for(Duration::from_mins(2));
    assert_eq!(wire.ends[CLIENT].state(), State::Closed(Closed::DeadLink));
}

#[test]
fn an_outage_shorter_than_that_is_survived() {
    let mut wire = connected(&Settings::RELIABLE, Impairments::NONE, 9);
    wire.run_for(Duration::from_secs(5));
    wire.cut = true;
    wire.send(CLIENT, &numbered(1, 500)).unwrap();
    wire.run_for(Duration::from_secs(8));
    wire.cut = false;
    wire.run_for(Duration::from_secs(20));
    assert_eq!(wire.received[SERVER].len(), 1);
}

#[test]
fn a_peer_that_does_not_read_fills_the_buffer_and_resumes() {
    let narrow = Settings {
        send_buffer: Size(64 * 1024),
        receive_buffer: Size(64 * 1024),
        ..Settings::RELIABLE
    };
    let mut wire = connected(&narrow, Impairments::NONE, 10);
    wire.reads[SERVER] = false;
    let mut taken = 0;
    let refused = loop {
        match wire.send(CLIENT, &numbered(taken, 5_000)) {
            Ok(()) => taken += 1,
            Err(refused) => break refused,
        }
        assert!(taken < 1_000, "everything is taken");
        wire.run_for(Duration::from_millis(20));
    };
    assert_eq!(refused, Refused::BufferFull);
    wire.reads[SERVER] = true;
    wire.run_for(Duration::from_mins(3));
    wire.send_patiently(CLIENT, &numbered(taken, 5_000));
    wire.run_for(Duration::from_mins(1));
    let numbers: Vec<_> = wire.received[SERVER]
        .iter()
        .map(|(_, message)| number(&message.bytes).unwrap())
        .collect();
    assert_eq!(numbers, (0..=taken).collect::<Vec<_>>());
}

#[test]
fn header_bytes_and_mtu_are_as_stated() {
    let properties = Settings::RELIABLE.properties();
    let mut wire = connected(&Settings::RELIABLE, Impairments::NONE, 11);
    wire.run_for(Duration::from_secs(1));
    let before = wire.passed.len();
    wire.send(CLIENT, &numbered(1, 500)).unwrap();
    let measured = 28 + wire.passed[before].size - 500;
    assert_eq!(measured, properties.header_bytes as usize);
    wire.send(CLIENT, &numbered(2, 65_536)).unwrap();
    wire.run_for(Duration::from_secs(10));
    let largest = wire.passed.iter().map(|packet| packet.size + 28).max();
    let stated = properties.mtu_bytes as usize;
    let measured = largest.unwrap();
    assert!(measured <= stated && measured > stated - 60, "{measured}");
}
