//! Datagrams that no endpoint of ours made.

use std::time::Duration;

use lagometer_transport::{Spec, State};

use crate::dice::Dice;
use crate::messages::message;
use crate::network::{Network, Path, Side};

const ROUNDS: u32 = 400;

/// Whether the transport has an integrity check of its own. Without, damage
/// that got past UDP's checksum can reach the application or end the
/// connection, as the transport's documentation says.
fn is_checked(spec: &Spec) -> bool {
    match spec.transport() {
        "kcp" => false,
        "enet" => spec.settings_json()["checksum"] == true,
        _ => true,
    }
}

/// Bytes out of nowhere neither end the connection nor disturb a message.
pub(crate) fn random_bytes_change_nothing(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 21);
    let mut dice = Dice::new(21);
    for number in 0..ROUNDS {
        for side in Side::BOTH {
            let len = dice.below(if number % 4 == 0 { 1500 } else { 40 });
            network.inject(side, &dice.bytes(len));
            network.send(side, &message(number, 100)).unwrap();
        }
        network.run_for(Duration::from_millis(20));
    }
    network.run_for(Duration::from_secs(10));
    for side in Side::BOTH {
        let numbers = network.numbers_at(side);
        assert!(
            numbers.iter().copied().eq(0..ROUNDS),
            "{side:?} received {numbers:?}"
        );
    }
}

/// Real datagrams, cut short, with bits flipped, or run together, do no harm
/// where the transport checks them, and never a panic or a live-lock.
pub(crate) fn mangled_datagrams_are_survived(spec: &Spec) {
    for seed in 0..8 {
        let mut network = Network::connected(spec, Path::CLEAN, seed);
        let mut dice = Dice::new(seed ^ 0xbad);
        for number in 0..ROUNDS {
            for side in Side::BOTH {
                let mangled = mangle(&mut dice, &network.samples[side as usize]);
                network.inject(side, &mangled);
                let _refused_when_closed = network.send(side, &message(number, 100));
            }
            network.run_for(Duration::from_millis(5));
        }
        network.run_for(Duration::from_mins(1));
        if is_checked(spec) {
            for side in Side::BOTH {
                let numbers = network.numbers_at(side);
                assert!(numbers.into_iter().eq(0..ROUNDS), "seed {seed}: {side:?}");
            }
        }
    }
}

/// Garbage during the handshake does not prevent it.
pub(crate) fn is_survived_while_connecting(spec: &Spec) {
    let mut network = Network::new(spec, Path::CLEAN, 23);
    let mut dice = Dice::new(23);
    for _ in 0..100 {
        for side in Side::BOTH {
            let len = dice.below(100);
            network.inject(side, &dice.bytes(len));
        }
        network.run_for(Duration::from_millis(1));
    }
    network.run_for(Duration::from_secs(10));
    for side in Side::BOTH {
        assert_eq!(network.state(side), State::Ready, "{side:?}");
    }
}

fn mangle(dice: &mut Dice, samples: &[Vec<u8>]) -> Vec<u8> {
    let Some(sample) = samples.get(dice.below(samples.len())) else {
        return Vec::new();
    };
    let mut datagram = sample.clone();
    match dice.below(4) {
        0 => datagram.truncate(dice.below(sample.len())),
        1 => datagram.extend_from_slice(&samples[dice.below(samples.len())]),
        2 => {
            // The headers are where damage does most.
            let head = datagram.len().min(40);
            dice.flip_burst(&mut datagram[..head]);
        }
        _ => dice.flip_burst(&mut datagram),
    }
    datagram
}
