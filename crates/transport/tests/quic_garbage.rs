//! Nothing that arrives from the wire upsets a QUIC endpoint.

mod virtual_wire;

use std::time::Duration;

use lagometer_transport::quic::Settings;
use lagometer_transport::{Closed, Pair, State, Transport};
use lagometer_units::{Size, Time};
use proptest::prelude::*;
use virtual_wire::{CLIENT, Impairments, SERVER, Wire, numbered};

fn connected(seed: u64) -> Wire {
    let mut wire = Wire::new(
        Settings::ONE_STREAM.pair(seed, Time::ZERO),
        Impairments::NONE,
        seed,
    );
    wire.connect();
    wire
}

/// Bytes of any kind, or with a first byte that promises a QUIC packet of
/// version 1.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let anything = proptest::collection::vec(any::<u8>(), 0..1500);
    (anything, any::<bool>(), 0xc0..=0xff_u8).prop_map(|(mut bytes, dressed, first)| {
        if dressed && bytes.len() > 5 {
            bytes[..5].copy_from_slice(&[first, 0, 0, 0, 1]);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn garbage_does_not_hinder_a_connection(
        datagrams in proptest::collection::vec(garbage(), 1..20)
    ) {
        let mut wire = Wire::new(Settings::ONE_STREAM.pair(1, Time::ZERO), Impairments::NONE, 1);
        for datagram in &datagrams {
            wire.inject(CLIENT, datagram);
            wire.inject(SERVER, datagram);
        }
        wire.connect();
        for datagram in &datagrams {
            wire.inject(CLIENT, datagram);
            wire.inject(SERVER, datagram);
        }
        wire.assert_it_works(Duration::from_secs(2));
    }
}

#[test]
fn a_flood_of_garbage_is_not_answered_in_kind() {
    let mut wire = connected(1);
    wire.run_for(Duration::from_secs(1));
    let before = wire.passed.len();
    for index in 0..10_000 {
        let mut datagram = numbered(index, 1200);
        datagram[0] = 0x40;
        wire.inject(SERVER, &datagram);
    }
    assert!(wire.passed.len() - before < 10);
    wire.assert_it_works(Duration::from_secs(2));
}

#[test]
fn what_passed_before_may_pass_again() {
    let Pair {
        mut client,
        mut server,
    } = Settings::ONE_STREAM.pair(3, Time::ZERO);
    let mut buffer = Vec::new();
    let mut old = Vec::new();
    for step in 0..20 {
        let now = Time::from_millis(10 * step);
        for turn in 0..2 {
            let (from, to) = if turn == 0 {
                (&mut client, &mut server)
            } else {
                (&mut server, &mut client)
            };
            while from.poll_datagram(now, &mut buffer) {
                to.handle_datagram(now, &buffer);
                old.push((turn, buffer.clone()));
            }
        }
    }
    assert!(client.state() == State::Ready && server.state() == State::Ready);
    let now = Time::from_millis(300);
    client.send(now, b"once").unwrap();
    while client.poll_datagram(now, &mut buffer) {
        server.handle_datagram(now, &buffer);
        old.push((0, buffer.clone()));
    }
    assert_eq!(server.receive(now).unwrap().bytes, b"once");
    for (turn, datagram) in &old {
        let to = if *turn == 0 { &mut server } else { &mut client };
        to.handle_datagram(now, datagram);
    }
    assert_eq!(server.receive(now), None);
    assert!(client.state() == State::Ready && server.state() == State::Ready);
}

#[test]
fn a_peer_that_sends_more_than_is_allowed_is_disconnected() {
    for generous in [Settings::ONE_STREAM, Settings::STREAM_EACH] {
        let strict = Settings {
            max_message: Size(1_000),
            ..generous.clone()
        };
        let pair = Pair {
            client: generous.pair(4, Time::ZERO).client,
            server: strict.pair(4, Time::ZERO).server,
        };
        let mut wire = Wire::new(pair, Impairments::NONE, 4);
        wire.connect();
        wire.send(CLIENT, &numbered(1, 1_000)).unwrap();
        wire.send(CLIENT, &numbered(2, 1_001)).unwrap();
        wire.run_for(Duration::from_secs(1));
        assert_eq!(wire.received[SERVER].len(), 1);
        let State::Closed(Closed::Failed(why)) = wire.ends[SERVER].state() else {
            panic!("{:?}", wire.ends[SERVER].state());
        };
        assert!(why.contains("1000 bytes"), "{why}");
        assert_eq!(wire.ends[CLIENT].state(), State::Closed(Closed::ByPeer));
    }
}
