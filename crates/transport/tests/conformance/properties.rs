//! What is said of bytes on the wire is what is on the wire.

use std::time::Duration;

use lagometer_transport::Spec;

use crate::messages::message;
use crate::network::{Network, Path, Side};
use crate::promises::send_patiently;

/// By how much a header may be smaller than is said: numbers of variable
/// length are short when a connection is young.
const SHORTER_BYTES: usize = 8;

/// By how much it may be larger: QUIC acknowledges even bare acknowledgements,
/// along with the next data.
fn riding_along_bytes(spec: &Spec) -> usize {
    if spec.transport() == "quic" { 8 } else { 0 }
}

const MESSAGE_BYTES: usize = 100;

/// A message on a connection that is otherwise quiet.
pub(crate) fn of_the_header_is_true(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 81);
    let encapsulation_bytes = spec.encapsulation().header_bytes() as usize;
    let said = spec.properties().header_bytes as usize;
    let mut header = usize::MAX;
    for number in 0..20 {
        network.run_for(Duration::from_millis(300));
        network.sizes.clear();
        network
            .send(Side::Client, &message(number, MESSAGE_BYTES))
            .unwrap();
        network.run_for(Duration::from_millis(200));
        let carrying = network.sizes.iter().max().expect("the message was sent");
        // Now and then an acknowledgement rides along.
        header = header.min(carrying + encapsulation_bytes - MESSAGE_BYTES);
    }
    assert!(
        (said - SHORTER_BYTES..=said + riding_along_bytes(spec)).contains(&header),
        "{header} bytes, not {said}"
    );
}

/// Messages that need many datagrams, and ones that share one.
pub(crate) fn of_the_mtu_is_true(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 82);
    let largest = spec.largest_message_bytes();
    for number in 0..200 {
        let len = [20, 20, 20, 1000, 5000, 50_000][number as usize % 6].min(largest);
        send_patiently(&mut network, Side::Client, &message(number, len));
        if number % 10 == 9 {
            network.run_for(Duration::from_millis(100));
        }
    }
    network.run_for(Duration::from_secs(5));
    let most = network.sizes.iter().max().expect("much was sent");
    let most = *most as u32 + spec.encapsulation().header_bytes();
    let said = spec.properties().mtu_bytes;
    assert!(most <= said, "a packet of {most} bytes, more than {said}");
}
