//! What the tests of several transports ask of an endpoint.

use lagometer_units::Time;

use crate::Endpoint;

/// Everything the endpoint has for the wire.
pub(crate) fn datagrams(endpoint: &mut dyn Endpoint) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = Vec::new();
    while endpoint.poll_datagram(Time::ZERO, &mut buffer) {
        all.push(buffer.clone());
    }
    all
}

/// All messages that have arrived.
pub(crate) fn received(endpoint: &mut dyn Endpoint) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| endpoint.receive(Time::ZERO))
        .map(|message| message.bytes)
        .collect()
}
