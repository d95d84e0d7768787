//! A QUIC connection repeats byte for byte from its seed, on any thread, and
//! another seed gives other bytes.

mod virtual_wire;

use std::time::Duration;

use lagometer_transport::quic::Settings;
use lagometer_transport::{State, Transport};
use lagometer_units::Time;
use virtual_wire::{CLIENT, Impairments, Passed, Wire, numbered};

/// Plays through a storm and returns every datagram, the handshake's too, and
/// when the echoes came.
fn play(settings: &Settings, seed: u64) -> (Vec<Passed>, Vec<Time>) {
    // The impairments are the same for every seed: only the endpoints differ.
    let mut wire = Wire::new(settings.pair(seed, Time::ZERO), Impairments::HEAVY, 1);
    wire.echo = true;
    wire.connect();
    for index in 0..100 {
        wire.send(CLIENT, &numbered(index, 500)).unwrap();
        wire.run_for(Duration::from_millis(50));
    }
    wire.run_for(Duration::from_secs(5));
    let echoes = wire.received[CLIENT].iter().map(|&(at, _)| at).collect();
    (wire.passed, echoes)
}

#[test]
fn one_seed_gives_the_same_bytes_on_every_thread() {
    for settings in [
        Settings::ONE_STREAM,
        Settings::STREAM_EACH,
        Settings::DATAGRAM,
    ] {
        let here = play(&settings, 42);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let settings = settings.clone();
                std::thread::spawn(move || play(&settings, 42))
            })
            .collect();
        for thread in threads {
            assert!(
                thread.join().unwrap() == here,
                "{settings:?} does not repeat"
            );
        }
        assert!(here.0.len() > 200 && here.1.len() > 50);
    }
}

#[test]
fn two_connections_taking_turns_in_a_thread_do_not_disturb_each_other() {
    let alone = play(&Settings::ONE_STREAM, 7);
    let both = [7, 8].map(|seed| {
        let pair = Settings::ONE_STREAM.pair(seed, Time::ZERO);
        let mut wire = Wire::new(pair, Impairments::HEAVY, 1);
        wire.echo = true;
        wire
    });
    let [mut first, mut second] = both;
    while first.ends.iter().any(|end| end.state() != State::Ready) {
        first.run_for(Duration::from_millis(1));
        second.run_for(Duration::from_millis(1));
    }
    let handshake = first.passed.len();
    assert!(handshake >= 5);
    assert_eq!(first.passed[..handshake], alone.0[..handshake]);
    assert_ne!(first.passed[..handshake], second.passed[..handshake]);
}

#[test]
fn another_seed_gives_other_bytes() {
    let (first, second) = (
        play(&Settings::ONE_STREAM, 1),
        play(&Settings::ONE_STREAM, 2),
    );
    assert_ne!(first.0[0].digest, second.0[0].digest);
}
