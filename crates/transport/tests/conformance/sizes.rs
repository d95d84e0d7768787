//! Messages from none at all to the largest the transport takes.

use std::time::Duration;

use lagometer_transport::{Refused, Spec};

use crate::dice::Dice;
use crate::network::{Network, Path, Side};
use crate::promises::send_patiently;

/// Sizes around one datagram, and ones that need many.
const SIZES: [usize; 17] = [
    0, 1, 2, 3, 7, 64, 500, 1100, 1200, 1364, 1390, 1400, 1460, 1500, 4096, 16_384, 65_536,
];

pub(crate) fn are_all_carried(spec: &Spec) {
    let largest = spec.largest_message_bytes();
    assert!(largest >= 1000, "a message of a game must fit");
    let mut sizes: Vec<_> = SIZES.into_iter().filter(|&size| size < largest).collect();
    sizes.push(largest);
    let mut network = Network::connected(spec, Path::CLEAN, 11);
    for side in Side::BOTH {
        for (index, &size) in sizes.iter().enumerate() {
            let sent = Dice::new(index as u64).bytes(size);
            send_patiently(&mut network, side, &sent);
            wait_for(&mut network, side.other(), index + 1);
            let arrived = network.arrived[side.other() as usize].last();
            assert!(arrived == Some(&sent), "{size} bytes arrived changed");
        }
    }
}

pub(crate) fn too_large_is_refused(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 11);
    let limit_bytes = spec.largest_message_bytes();
    for size_bytes in [limit_bytes + 1, limit_bytes * 2 + 7] {
        let refused = network.send(Side::Client, &vec![0; size_bytes]);
        let expected = Refused::TooLarge {
            size_bytes,
            limit_bytes,
        };
        assert_eq!(refused, Err(expected));
    }
    network.send(Side::Client, b"still there").unwrap();
    wait_for(&mut network, Side::Server, 1);
}

/// Lets time pass until so many messages have arrived.
fn wait_for(network: &mut Network, side: Side, count: usize) {
    for _ in 0..12_000 {
        if network.arrived[side as usize].len() >= count {
            return;
        }
        network.run_for(Duration::from_millis(10));
    }
    panic!("message {count} did not arrive within two minutes");
}
