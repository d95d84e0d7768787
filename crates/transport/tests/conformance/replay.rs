//! A run follows from its seed, and costs no more than what happens in it.

use std::time::Duration;

use lagometer_transport::Spec;

use crate::messages::message;
use crate::network::{Network, Path, Side};

pub(crate) fn same_seed_same_bytes(spec: &Spec) {
    let here = [play(spec, 51), play(spec, 51)];
    let elsewhere = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| play(spec, 51)));
        threads.map(|thread| thread.join().expect("the same play ended well here"))
    });
    assert_eq!(here[0], here[1], "twice in one thread");
    assert_eq!(here, elsewhere, "in other threads");
    assert_ne!(here[0], play(spec, 52), "another seed");
}

/// Ten minutes without a message.
pub(crate) fn an_idle_connection_costs_little(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 53);
    let before = network.datagrams;
    network.run_for(Duration::from_mins(10));
    let per_second = (network.datagrams - before) / 600;
    assert!(per_second < 200, "{per_second} datagrams a second");
}

/// Ten seconds of play on a bad network; the digest of all its datagrams.
fn play(spec: &Spec, seed: u64) -> u64 {
    let mut network = Network::connected(spec, Path::BAD, seed);
    for number in 0..200 {
        for side in Side::BOTH {
            let _full = network.send(side, &message(number, 500));
        }
        network.run_for(Duration::from_millis(50));
    }
    network.digest()
}
