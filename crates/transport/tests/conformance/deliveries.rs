//! Streams with promises of their own keep them beside each other.

use std::time::Duration;

use lagometer_transport::{Delivery, Refused, Spec};

use crate::messages::{NUMBERED_BYTES, message, numbers_of};
use crate::network::{Network, Path, Side};

/// Messages of each delivery and side.
const MESSAGES: u32 = 300;

/// Unreliable messages are distinguished from reliable ones by their length.
const RELIABLE_BYTES: usize = NUMBERED_BYTES + 30;
const UNRELIABLE_BYTES: usize = NUMBERED_BYTES + 200;

/// What must arrive at least of unreliable messages on [`Path::BAD`], as for a whole
/// transport that is unreliable.
const UNRELIABLE_SHARE: f64 = 0.6;

pub(crate) fn stand_beside_each_other(spec: &Spec) {
    let offer = spec.offer();
    for seed in 0..3 {
        let mut network = Network::connected(spec, Path::BAD, seed);
        for number in 0..MESSAGES {
            for side in Side::BOTH {
                send(&mut network, side, Delivery::Reliable, number);
                send(&mut network, side, Delivery::Unreliable, number);
            }
            network.run_for(Duration::from_millis(20));
        }
        // Timeouts that double may take minutes for the last few; the time is virtual. KCP's
        // habit of 2015 is to read one message for each datagram, so something has to come
        // for the last that shared one.
        let of_series = |message: &&Vec<u8>| message.len() > NUMBERED_BYTES;
        let is_complete = |network: &Network| {
            let mut arrived = network.arrived.iter();
            arrived.all(|all| all.iter().filter(of_series).count() == 2 * MESSAGES as usize)
        };
        for number in 0..300 {
            if is_complete(&network) {
                break;
            }
            for side in Side::BOTH {
                let closing = message(number, NUMBERED_BYTES);
                let _full = network.send_as(side, Delivery::Reliable, &closing);
            }
            network.run_for(Duration::from_secs(1));
        }
        for side in Side::BOTH {
            let arrived = |bytes: usize| -> Vec<Vec<u8>> {
                let all = network.arrived[side as usize].iter();
                all.filter(|message| message.len() == bytes)
                    .cloned()
                    .collect()
            };
            let reliable = numbers_of(&arrived(RELIABLE_BYTES), spec.properties().ordered);
            let unreliable = numbers_of(&arrived(UNRELIABLE_BYTES), false);
            let came = unreliable.len() as f64 / f64::from(MESSAGES);
            if offer.has_reliable() {
                let all = reliable.into_iter().eq(0..MESSAGES);
                assert!(all, "seed {seed}, {side:?}: a reliable message is missing");
            }
            if offer.may_lose() {
                assert!(
                    came >= UNRELIABLE_SHARE,
                    "seed {seed}, {side:?}: only {came}"
                );
                let is_beside = offer.has_reliable();
                assert!(
                    !is_beside || came < 1.0,
                    "seed {seed}, {side:?}: sent again"
                );
            } else {
                assert!(came >= 1.0, "seed {seed}, {side:?}: {came} on one pipe");
            }
        }
    }
}

/// Offers a message until it is taken, for at most a minute.
fn send(network: &mut Network, side: Side, delivery: Delivery, number: u32) {
    let bytes = match delivery {
        Delivery::Reliable => RELIABLE_BYTES,
        Delivery::Unreliable => UNRELIABLE_BYTES,
    };
    let message = message(number, bytes);
    for _ in 0..6000 {
        match network.send_as(side, delivery, &message) {
            Ok(()) => return,
            Err(Refused::BufferFull) => network.run_for(Duration::from_millis(10)),
            Err(refused) => panic!("{side:?}, {bytes} bytes: {refused}"),
        }
    }
    panic!("{side:?}: the buffer stayed full for a minute");
}
