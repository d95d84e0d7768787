//! Reliable is all, ordered is in order, and nothing comes twice or damaged.

use std::time::Duration;

use lagometer_transport::{Refused, Spec};

use crate::dice::Dice;
use crate::messages::{NUMBERED_BYTES, message};
use crate::network::{Network, Path, Side};

const MESSAGES: u32 = 300;

/// What an unreliable transport must deliver at least on [`Path::BAD`], where
/// 7 % of datagrams are lost and many overtake each other.
const UNRELIABLE_SHARE: f64 = 0.6;

pub(crate) fn are_kept_on_a_bad_network(spec: &Spec) {
    for seed in 0..4 {
        for numbers in play(spec, Path::BAD, seed) {
            if spec.properties().reliable {
                assert!(numbers.into_iter().eq(0..MESSAGES), "seed {seed}: lost");
            } else {
                let share = numbers.len() as f64 / f64::from(MESSAGES);
                assert!(share >= UNRELIABLE_SHARE, "seed {seed}: only {share}");
            }
        }
    }
}

pub(crate) fn are_exceeded_on_a_clean_network(spec: &Spec) {
    for numbers in play(spec, Path::CLEAN, 5) {
        assert!(numbers.into_iter().eq(0..MESSAGES));
    }
}

/// Sends a series both ways, one message each 20 ms, and returns the numbers
/// that arrived at each side.
fn play(spec: &Spec, path: Path, seed: u64) -> [Vec<u32>; 2] {
    let mut network = Network::connected(spec, path, seed);
    let mut dice = Dice::new(seed ^ 0xd1ce);
    let largest = spec.largest_message_bytes().min(1000);
    for number in 0..MESSAGES {
        for side in Side::BOTH {
            let len = NUMBERED_BYTES + dice.below(largest - NUMBERED_BYTES);
            send_patiently(&mut network, side, &message(number, len));
        }
        network.run_for(Duration::from_millis(20));
    }
    // Timeouts that double may take minutes for the last few; the time is
    // virtual.
    let is_complete = |network: &Network| {
        let mut arrived = network.arrived.iter();
        arrived.all(|messages| messages.len() == MESSAGES as usize)
    };
    for _ in 0..300 {
        if is_complete(&network) {
            break;
        }
        network.run_for(Duration::from_secs(1));
    }
    Side::BOTH.map(|side| network.numbers_at(side))
}

/// Offers a message until it is taken, for at most a minute.
pub(crate) fn send_patiently(network: &mut Network, side: Side, message: &[u8]) {
    for _ in 0..6000 {
        match network.send(side, message) {
            Ok(()) => return,
            Err(Refused::BufferFull) => network.run_for(Duration::from_millis(10)),
            Err(refused) => panic!("{side:?}, {} bytes: {refused}", message.len()),
        }
    }
    panic!("{side:?}: the buffer stayed full for a minute");
}
