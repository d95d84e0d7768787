//! QUIC carries what its presets promise, whatever the wire does.

mod virtual_wire;

use std::time::Duration;

use lagometer_transport::quic::{AckFrequency, DatagramOverflow, Settings};
use lagometer_transport::{Closed, Refused, State, Transport};
use lagometer_units::{Size, Time};
use virtual_wire::{CLIENT, Impairments, SERVER, Wire, number, numbered};

const TICK: Duration = Duration::from_millis(50);

const RELIABLE: [Settings; 2] = [Settings::ONE_STREAM, Settings::STREAM_EACH];
const ALL: [Settings; 3] = [
    Settings::ONE_STREAM,
    Settings::STREAM_EACH,
    Settings::DATAGRAM,
];

fn connected(settings: &Settings, impairments: Impairments, seed: u64) -> Wire {
    let mut wire = Wire::new(settings.pair(seed, Time::ZERO), impairments, seed);
    wire.connect();
    wire
}

/// Sends 200 numbered messages, one a tick, and waits for stragglers.
/// Returns the numbers received by the server.
fn play(wire: &mut Wire) -> Vec<u64> {
    for index in 0..200 {
        wire.send(CLIENT, &numbered(index, 500)).unwrap();
        wire.run_for(TICK);
    }
    wire.run_for(Duration::from_secs(20));
    wire.received[SERVER]
        .iter()
        .map(|(_, message)| number(&message.bytes).expect("a damaged message"))
        .collect()
}

#[test]
fn one_stream_delivers_everything_in_order_through_a_storm() {
    let mut wire = connected(&Settings::ONE_STREAM, Impairments::HEAVY, 1);
    wire.echo = true;
    assert_eq!(play(&mut wire), (0..200).collect::<Vec<_>>());
    let echoed = wire.received[CLIENT].iter();
    let echoed: Vec<_> = echoed.map(|(_, m)| number(&m.bytes).unwrap()).collect();
    assert_eq!(echoed, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_stream_each_delivers_everything_and_nothing_waits() {
    let mut wire = connected(&Settings::STREAM_EACH, Impairments::HEAVY, 2);
    let mut numbers = play(&mut wire);
    assert!(!numbers.is_sorted(), "no message overtook another");
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

#[test]
fn datagrams_are_lost_as_the_wire_loses_and_never_come_twice() {
    let mut wire = connected(&Settings::DATAGRAM, Impairments::HEAVY, 3);
    let mut numbers = play(&mut wire);
    // 13 % are lost or damaged, and no packet is longer under way than 50 ms.
    assert!((140..200).contains(&numbers.len()), "{}", numbers.len());
    numbers.sort_unstable();
    let delivered = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), delivered, "a message came twice");
    for (at, message) in &wire.received[SERVER] {
        let index = number(&message.bytes).unwrap();
        let sent = wire.received[SERVER][0].0 - Duration::from_millis(50);
        let late = at.since(sent + TICK * (index as u32));
        assert!(late <= Duration::from_millis(120), "{index}: {late:?}");
    }
}

#[test]
fn streams_carry_64_kib_both_ways() {
    for settings in RELIABLE {
        let mapping = settings.mapping;
        let mut wire = connected(&settings, Impairments::HEAVY, 4);
        wire.echo = true;
        for index in 0..5 {
            wire.send_patiently(CLIENT, &numbered(index, 65_536));
        }
        wire.run_for(Duration::from_secs(30));
        assert_eq!(wire.received[CLIENT].len(), 5, "{mapping:?}");
        for (_, message) in &wire.received[CLIENT] {
            assert!(number(&message.bytes).is_some());
        }
    }
}

#[test]
fn an_empty_message_is_a_message() {
    for settings in ALL {
        let mapping = settings.mapping;
        let mut wire = connected(&settings, Impairments::NONE, 5);
        wire.send(CLIENT, b"").unwrap();
        wire.send(SERVER, b"").unwrap();
        wire.run_for(Duration::from_secs(1));
        for end in [CLIENT, SERVER] {
            assert_eq!(wire.received[end].len(), 1, "{mapping:?}");
            assert!(wire.received[end][0].1.bytes.is_empty());
        }
    }
}

#[test]
fn a_message_too_large_is_refused_with_the_limit() {
    for settings in ALL {
        let mapping = settings.mapping;
        let mut wire = connected(&settings, Impairments::NONE, 6);
        let refused = wire.send(CLIENT, &vec![0; 2_000_000]).unwrap_err();
        let limit_bytes = settings.largest_message_bytes();
        let size_bytes = 2_000_000;
        assert_eq!(
            refused,
            Refused::TooLarge {
                size_bytes,
                limit_bytes
            }
        );
        wire.send(CLIENT, &numbered(1, limit_bytes)).unwrap();
        wire.run_for(Duration::from_secs(5));
        assert_eq!(wire.received[SERVER].len(), 1, "{mapping:?}");
        assert!(wire.send(CLIENT, &numbered(2, 1000)).is_ok());
    }
}

#[test]
fn nothing_is_taken_before_the_connection_is_open() {
    let pair = Settings::ONE_STREAM.pair(7, Time::ZERO);
    for mut end in [pair.client, pair.server] {
        assert_eq!(end.state(), State::Connecting);
        assert_eq!(end.send(Time::ZERO, b"early"), Err(Refused::NotOpen));
    }
}

#[test]
fn a_peer_that_stops_answering_is_a_dead_link() {
    for settings in ALL {
        let mapping = settings.mapping;
        let mut wire = connected(&settings, Impairments::NONE, 8);
        wire.cut = true;
        wire.send(CLIENT, b"anyone?").unwrap();
        wire.send(SERVER, b"anyone?").unwrap();
        wire.run_for(Duration::from_secs(25));
        assert_eq!(wire.ends[CLIENT].state(), State::Ready);
        wire.run_for(Duration::from_secs(10));
        for end in &wire.ends {
            assert_eq!(end.state(), State::Closed(Closed::DeadLink), "{mapping:?}");
        }
        assert_eq!(wire.send(CLIENT, b"hello?"), Err(Refused::NotOpen));
    }
}

#[test]
fn a_server_that_is_not_there_is_a_dead_link() {
    let mut wire = Wire::new(
        Settings::ONE_STREAM.pair(9, Time::ZERO),
        Impairments::NONE,
        9,
    );
    wire.cut = true;
    wire.run_for(Duration::from_mins(1));
    assert_eq!(wire.ends[CLIENT].state(), State::Closed(Closed::DeadLink));
}

#[test]
fn a_peer_that_does_not_read_fills_the_buffer_and_resumes() {
    let narrow = |wide| Settings {
        stream_receive_window: Size(20_000),
        receive_window: Size(40_000),
        send_window: Size(60_000),
        max_streams: 50,
        ..wide
    };
    for settings in RELIABLE {
        let mapping = settings.mapping;
        let mut wire = connected(&narrow(settings), Impairments::NONE, 10);
        wire.reads[SERVER] = false;
        let mut taken = 0;
        let refused = loop {
            match wire.send(CLIENT, &numbered(taken, 500)) {
                Ok(()) => taken += 1,
                Err(refused) => break refused,
            }
            assert!(taken < 1000, "everything is taken");
            wire.run_for(Duration::from_millis(5));
        };
        assert_eq!(refused, Refused::BufferFull, "{mapping:?}");
        wire.reads[SERVER] = true;
        for index in taken..taken + 50 {
            wire.send_patiently(CLIENT, &numbered(index, 500));
        }
        wire.run_for(Duration::from_secs(10));
        let mut numbers: Vec<_> = wire.received[SERVER]
            .iter()
            .map(|(_, message)| number(&message.bytes).unwrap())
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..taken + 50).collect::<Vec<_>>(), "{mapping:?}");
    }
}

#[test]
fn datagrams_without_room_push_out_the_oldest_or_are_refused() {
    for overflow in [DatagramOverflow::DropOldest, DatagramOverflow::Refuse] {
        let settings = Settings {
            datagram_send_buffer: Size(5_000),
            datagram_overflow: overflow,
            ..Settings::DATAGRAM
        };
        let mut wire = connected(&settings, Impairments::NONE, 11);
        // Far more than the congestion window lets out at once.
        let taken = (0..200)
            .take_while(|&index| wire.send(CLIENT, &numbered(index, 1000)).is_ok())
            .count();
        wire.run_for(Duration::from_secs(5));
        let last = wire.received[SERVER].back().unwrap();
        assert_eq!(number(&last.1.bytes), Some(taken as u64 - 1));
        match overflow {
            DatagramOverflow::DropOldest => {
                assert_eq!(taken, 200);
                assert!(wire.received[SERVER].len() < 100);
            }
            DatagramOverflow::Refuse => {
                assert!(taken < 100);
                assert_eq!(wire.received[SERVER].len(), taken);
            }
        }
    }
}

#[test]
fn an_acknowledgement_of_every_packet_can_be_asked_for() {
    let play = |settings: &Settings| {
        let mut wire = connected(settings, Impairments::NONE, 12);
        wire.run_for(Duration::from_secs(1));
        let before = wire.passed.len();
        for index in 0..100 {
            wire.send(CLIENT, &numbered(index, 500)).unwrap();
            wire.run_for(Duration::from_millis(5));
        }
        wire.passed[before..]
            .iter()
            .filter(|packet| packet.from == SERVER)
            .count()
    };
    let usual = Settings::ONE_STREAM;
    let eager = Settings {
        ack_frequency: Some(AckFrequency {
            ack_eliciting_threshold: 0,
            ..AckFrequency::default()
        }),
        ..Settings::ONE_STREAM
    };
    assert!(play(&usual) <= 60);
    assert!(play(&eager) >= 95);
}

#[test]
fn header_bytes_are_as_stated() {
    for settings in ALL {
        let mapping = settings.mapping;
        let mut wire = connected(&settings, Impairments::NONE, 13);
        // Past the first 64 streams and 16 KiB, where numbers get longer.
        for index in 0..100 {
            wire.send(CLIENT, &numbered(index, 500)).unwrap();
            wire.run_for(TICK);
        }
        let before = wire.passed.len();
        wire.send(CLIENT, &numbered(100, 500)).unwrap();
        let stated = settings.properties().header_bytes as usize;
        let measured = 28 + wire.passed[before].size - 500;
        assert!(measured.abs_diff(stated) <= 1, "{mapping:?}");
    }
}
