//! Not the bytes of a WebRTC connection repeat, but everything that a result
//! is made of: when packets of which size are sent, and when messages arrive.

mod virtual_wire;

use std::time::Duration;

use lagometer_transport::Transport;
use lagometer_transport::webrtc::Settings;
use lagometer_units::Time;
use virtual_wire::{CLIENT, Impairments, SERVER, Wire, number, numbered};

/// When a packet was sent, from which end, and its size.
type Packets = Vec<(Time, usize, usize)>;
/// When a message arrived, at which end, and its number.
type Messages = Vec<(Time, usize, u64)>;

fn play(settings: &Settings, seed: u64) -> (Packets, Messages) {
    // The impairments are the same for every seed: only the endpoints differ.
    let mut wire = Wire::new(settings.pair(seed, Time::ZERO), Impairments::HEAVY, 1);
    wire.echo = true;
    wire.connect();
    for index in 0..200 {
        let size = if index % 50 == 49 { 5_000 } else { 500 };
        wire.send_patiently(CLIENT, &numbered(index, size));
        wire.run_for(Duration::from_millis(50));
    }
    wire.run_for(Duration::from_secs(20));
    let packets = wire.passed.iter();
    let packets = packets.map(|packet| (packet.at, packet.from, packet.size));
    let messages = [CLIENT, SERVER].into_iter().flat_map(|end| {
        wire.received[end]
            .iter()
            .map(move |(at, message)| (*at, end, number(&message.bytes).unwrap()))
    });
    (packets.collect(), messages.collect())
}

#[test]
fn one_seed_gives_the_same_sizes_at_the_same_times() {
    for settings in [Settings::RELIABLE, Settings::UNRELIABLE] {
        let first = play(&settings, 42);
        assert!(first.0.len() > 400 && first.1.len() > 200);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let settings = settings.clone();
                std::thread::spawn(move || play(&settings, 42))
            })
            .collect();
        for thread in threads {
            let again = thread.join().unwrap();
            if let Some(at) = (0..first.0.len()).find(|&at| first.0.get(at) != again.0.get(at)) {
                panic!("packet {at}: {:?}, then {:?}", first.0[at], again.0.get(at));
            }
            assert_eq!(first, again);
        }
    }
}
