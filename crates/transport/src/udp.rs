//! `udp`: one message, one datagram, and nothing more. Unreliable and
//! unordered; the floor that every other transport stands on.
//!
//! A datagram is a CRC-32 bound to the connection, a 32-bit sequence number
//! (both little-endian) and the message. The number serves only to drop
//! duplicates; nothing is acknowledged or sent again. There is no handshake
//! and no keep-alive, so a dead link is never noticed.
//!
//! Damage that UDP's own checksum lets pass is caught by the CRC, save for
//! one case in 2^32.

use std::time::Duration;

use lagometer_units::{Size, Time};
use serde::{Deserialize, Serialize};

use crate::byte_queue::ByteQueue;
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::integrity::Integrity;
use crate::numbered::{HEADER_BYTES, NumberedReceiver, NumberedSender};
use crate::plain_udp;
use crate::tuned::tuned;
use crate::{
    BadSetting, Encapsulation, Endpoint, Message, OWN_LIBRARY, Pair, Refused, State, Transport,
    TransportProperties,
};

/// How plain UDP is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Largest UDP payload that is made, our 8 bytes of header included; 64 B
    /// to 65507 B.
    pub max_datagram: Size,
    /// Most bytes of datagrams that wait to leave, and of messages that wait
    /// to be read; 1 KiB to 1 GB. A full receive buffer drops what arrives, as
    /// a socket's does.
    pub buffer: Size,
}

impl Settings {
    /// Datagrams up to 1400 B and the default socket buffer of Linux
    /// (`net.core.rmem_default`, 212 992 B).
    pub const PLAIN: Self = Self {
        max_datagram: Size(1400),
        buffer: plain_udp::BUFFER,
    };
}

/// There is nothing to choose but how large a datagram may be.
const SOURCES: &[Source] = &[
    Source::library(
        "one message, one datagram, by a socket with nothing set",
        "udp(7)",
    ),
    Source::of(
        "buffer",
        "net.core.rmem_default",
        "https://www.kernel.org/doc/html/latest/admin-guide/sysctl/net.html",
    ),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "udp-default",
        "one message, one datagram; lost is lost",
        || checked(Settings::PLAIN),
    )
    .of("udp", PresetKind::Default, SOURCES)
    .also(&["udp"]),
    Preset::new("udp-game", "the same: there is nothing to set", || {
        checked(Settings::PLAIN)
    })
    .of("udp", PresetKind::Game, SOURCES),
    Preset::tuned("udp", "udp-tuned", || tuned("udp")),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "udp";
    const LIBRARY: &'static str = OWN_LIBRARY;

    fn check(&self) -> Result<(), BadSetting> {
        plain_udp::check_sizes(self.max_datagram, self.buffer)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    fn properties(&self) -> TransportProperties {
        plain_udp::properties(self.max_datagram, HEADER_BYTES, "none".to_owned())
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_datagram.bytes() as usize - HEADER_BYTES
    }

    fn dead_link_after(&self) -> Option<Duration> {
        None
    }

    fn pair(&self, seed: u64, _start: Time) -> Pair {
        let (up, down) = Integrity::both_directions(seed);
        Pair {
            client: Box::new(Udp::new(self, up, down)),
            server: Box::new(Udp::new(self, down, up)),
        }
    }
}

/// One side of a plain UDP connection.
#[derive(Debug)]
struct Udp {
    largest_message_bytes: usize,
    sender: NumberedSender,
    outgoing: ByteQueue,
    receiver: NumberedReceiver,
}

impl Udp {
    fn new(settings: &Settings, outbound: Integrity, inbound: Integrity) -> Self {
        let buffer_bytes = settings.buffer.bytes() as usize;
        Self {
            largest_message_bytes: settings.largest_message_bytes(),
            sender: NumberedSender::new(outbound),
            outgoing: ByteQueue::new(buffer_bytes),
            receiver: NumberedReceiver::new(inbound, buffer_bytes),
        }
    }
}

impl Endpoint for Udp {
    fn send(&mut self, _now: Time, message: &[u8]) -> Result<(), Refused> {
        Refused::if_larger(message, self.largest_message_bytes)?;
        if !self.outgoing.push(self.sender.datagram(message)) {
            return Err(Refused::BufferFull);
        }
        self.sender.sent();
        Ok(())
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        self.receiver.receive()
    }

    fn handle_datagram(&mut self, _now: Time, datagram: &[u8]) {
        self.receiver.handle_datagram(datagram);
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        self.outgoing.pop_into(buffer)
    }

    fn next_deadline(&mut self) -> Option<Time> {
        None
    }

    fn handle_deadline(&mut self, _now: Time) {}

    fn state(&self) -> State {
        State::Ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_tests::datagrams;

    #[test]
    fn a_datagram_is_eight_bytes_longer_than_its_message() {
        let mut pair = Settings::PLAIN.pair(1, Time::ZERO);
        pair.client.send(Time::ZERO, b"jump").unwrap();
        let datagrams = datagrams(&mut *pair.client);
        assert_eq!(datagrams.len(), 1);
        assert_eq!(datagrams[0].len(), 12);
        assert_eq!(&datagrams[0][8..], b"jump");
    }

    #[test]
    fn duplicates_and_reflections_are_dropped() {
        let mut pair = Settings::PLAIN.pair(1, Time::ZERO);
        pair.client.send(Time::ZERO, b"jump").unwrap();
        let datagram = datagrams(&mut *pair.client).remove(0);
        for _ in 0..3 {
            pair.server.handle_datagram(Time::ZERO, &datagram);
            pair.client.handle_datagram(Time::ZERO, &datagram);
        }
        assert_eq!(pair.server.receive(Time::ZERO).unwrap().bytes, b"jump");
        assert_eq!(pair.server.receive(Time::ZERO), None);
        assert_eq!(pair.client.receive(Time::ZERO), None);
    }

    #[test]
    fn a_refused_message_uses_no_number() {
        let settings = Settings {
            buffer: Size(1024),
            ..Settings::PLAIN
        };
        let mut pair = settings.pair(1, Time::ZERO);
        while pair.client.send(Time::ZERO, &[0; 100]).is_ok() {}
        let first = datagrams(&mut *pair.client);
        pair.client.send(Time::ZERO, &[0; 100]).unwrap();
        let next = datagrams(&mut *pair.client).remove(0);
        assert_eq!(next[4..8], (first.len() as u32).to_le_bytes());
    }
}
