//! What an endpoint holds is bounded, whatever the application and the
//! network do.

use std::time::Duration;

use lagometer_transport::{Refused, Spec, State};

use crate::messages::message;
use crate::network::{Network, Path, Side};

/// More than any preset may hold between its two ends.
const OFFERED_BYTES: usize = 64 << 20;

const MESSAGE_BYTES: usize = 1000;

pub(crate) fn is_bounded_when_the_peer_stops_reading(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 41);
    network.reads[Side::Server as usize] = false;
    let taken = flood(&mut network);
    let held_back = taken.is_none();

    network.reads[Side::Server as usize] = true;
    // A small window drains slowly: until nothing has come for ten seconds.
    let mut arrived = 0;
    loop {
        network.run_for(Duration::from_secs(10));
        let so_far = network.arrived[Side::Server as usize].len();
        if so_far == std::mem::replace(&mut arrived, so_far) {
            break;
        }
    }
    let numbers = network.numbers_at(Side::Server);
    assert!(
        numbers.len() * MESSAGE_BYTES < OFFERED_BYTES / 2,
        "{} messages were held for a reader that was away",
        numbers.len()
    );
    if spec.properties().reliable {
        let taken = taken.expect("a reliable transport cannot take what it cannot deliver");
        let is_prefix = numbers.iter().copied().eq(0..numbers.len() as u32);
        assert!(is_prefix, "a message is missing");
        if network.state(Side::Server) == State::Ready {
            let missing = taken - numbers.len();
            assert!(
                missing <= left_unread(spec),
                "{missing} of {taken} are missing"
            );
        }
    } else {
        assert!(held_back || !numbers.is_empty());
    }
}

/// Messages that lie at a reader forever because nothing more comes: the
/// server of 2015 reads only when a datagram arrives, one message each time,
/// and is a window behind when the client falls silent.
fn left_unread(spec: &Spec) -> usize {
    let settings = spec.settings_json();
    let is_server_of_2015 = settings["server"]["one_receive_per_datagram"] == true;
    if is_server_of_2015 { 32 } else { 0 }
}

pub(crate) fn is_bounded_when_nothing_gets_through(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 42);
    network.path = Path::CUT;
    let taken = flood(&mut network);
    if spec.properties().reliable {
        assert!(taken.is_some(), "64 MiB were taken and nothing was sent");
    }
}

/// Sends as fast as messages are taken. Returns how many were when the
/// endpoint first refused for good, or `None` when it took them all.
fn flood(network: &mut Network) -> Option<usize> {
    let mut full_for = Duration::ZERO;
    let pause = Duration::from_millis(20);
    let mut number = 0;
    while (number as usize) * MESSAGE_BYTES < OFFERED_BYTES {
        match network.send(Side::Client, &message(number, MESSAGE_BYTES)) {
            Ok(()) => {
                full_for = Duration::ZERO;
                number += 1;
                if number % 32 == 0 {
                    network.run_for(Duration::from_millis(1));
                }
            }
            Err(Refused::BufferFull) if full_for < Duration::from_secs(5) => {
                full_for += pause;
                network.run_for(pause);
            }
            Err(Refused::BufferFull | Refused::NotOpen) => return Some(number as usize),
            Err(refused) => panic!("{refused}"),
        }
    }
    None
}
