//! Nothing that arrives from the wire upsets a WebRTC endpoint.

mod virtual_wire;

use std::time::Duration;

use lagometer_transport::webrtc::Settings;
use lagometer_transport::{State, Transport};
use lagometer_units::Time;
use proptest::prelude::*;
use virtual_wire::{CLIENT, Impairments, SERVER, Wire, numbered};

/// Bytes of any kind, or with a beginning that promises STUN or a DTLS
/// record.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let anything = proptest::collection::vec(any::<u8>(), 0..1500);
    let stun = Just(vec![0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42]);
    let dtls = (20..=24_u8, 0..2_u8, 0..64_u8).prop_map(|(kind, epoch, length)| {
        vec![kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 9, 0, length]
    });
    let start = prop_oneof![Just(Vec::new()), stun, dtls];
    (start, anything).prop_map(|(start, rest)| [start, rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn garbage_does_not_hinder_a_connection(
        datagrams in proptest::collection::vec(garbage(), 1..20)
    ) {
        let pair = Settings::RELIABLE.pair(1, Time::ZERO);
        let mut wire = Wire::new(pair, Impairments::NONE, 1);
        wire.connect();
        for datagram in &datagrams {
            wire.inject(CLIENT, datagram);
            wire.inject(SERVER, datagram);
        }
        wire.assert_it_works(Duration::from_secs(5));
    }
}

#[test]
fn a_flood_of_garbage_is_not_answered_in_kind() {
    let mut wire = Wire::new(Settings::RELIABLE.pair(2, Time::ZERO), Impairments::NONE, 2);
    wire.connect();
    let before = wire.passed.len();
    for index in 0..10_000 {
        let mut datagram = numbered(index, 200);
        datagram[0] = 23;
        wire.inject(SERVER, &datagram);
    }
    assert!(wire.passed.len() - before < 10);
    wire.assert_it_works(Duration::from_secs(5));
}

#[test]
fn what_passed_before_may_pass_again() {
    let pair = Settings::RELIABLE.pair(3, Time::ZERO);
    let mut ends = [pair.client, pair.server];
    let mut buffer = Vec::new();
    let mut old = Vec::new();
    for step in 0..2_000 {
        let now = Time::from_millis(step);
        for end in &mut ends {
            if end.next_deadline().is_some_and(|deadline| deadline <= now) {
                end.handle_deadline(now);
            }
        }
        for from in [CLIENT, SERVER] {
            while ends[from].poll_datagram(now, &mut buffer) {
                ends[1 - from].handle_datagram(now, &buffer);
                old.push((1 - from, buffer.clone()));
            }
        }
    }
    let now = Time::from_secs(2);
    ends[CLIENT].send(now, b"once").unwrap();
    while ends[CLIENT].poll_datagram(now, &mut buffer) {
        ends[SERVER].handle_datagram(now, &buffer);
        old.push((SERVER, buffer.clone()));
    }
    assert_eq!(ends[SERVER].receive(now).unwrap().bytes, b"once");
    for (to, datagram) in &old {
        ends[*to].handle_datagram(now, datagram);
    }
    assert_eq!(ends[SERVER].receive(now), None);
    assert!(ends.iter().all(|end| end.state() == State::Ready));
}
