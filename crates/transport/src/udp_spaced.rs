//! `udp-spaced`: plain UDP where each datagram leaves again some time later,
//! and again. What a burst of losses took comes back when the burst is over,
//! which copies that leave together with the original do not outlive.
//!
//! A datagram is that of [`udp`](crate::udp): checksum, number, message. A copy
//! is the same datagram, and whichever comes first is delivered. Nothing is
//! acknowledged and nothing is sent beyond the copies; there is no handshake and
//! no keep-alive, so a dead link is never noticed.

use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use crate::byte_queue::ByteQueue;
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::integrity::Integrity;
use crate::numbered::{HEADER_BYTES, NumberedReceiver, NumberedSender};
use crate::plain_udp;
use crate::transport::within;
use crate::tuned::tuned;
use crate::{
    BadSetting, Encapsulation, Endpoint, Message, OWN_LIBRARY, Pair, Refused, State, Transport,
    TransportProperties, Tunable,
};

/// How datagrams are repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How many times each datagram leaves again; 0 to 16.
    pub copies: u8,
    /// How long after a datagram its first copy leaves, and each further one
    /// after the one before; 1 ms to 10 s. Above the length of the bursts that
    /// the path loses, a copy finds the burst over; what it brings is that much
    /// late.
    pub spacing: Span,
    /// Largest UDP payload that is made, our 8 bytes of header included; 64 B
    /// to 65507 B.
    pub max_datagram: Size,
    /// Most bytes of datagrams that wait to leave, again as many of those whose
    /// copies wait, and of messages that wait to be read; 1 KiB to 1 GB. A full
    /// receive buffer drops what arrives, as a socket's does.
    pub buffer: Size,
}

impl Settings {
    /// One copy after 50 ms, datagrams up to 1400 B and the default socket
    /// buffer of Linux.
    pub const ONE_COPY: Self = Self {
        copies: 1,
        spacing: Span::from_millis(50),
        max_datagram: Size(1400),
        buffer: plain_udp::BUFFER,
    };
}

/// This transport is the lab's own, and so is its documentation.
const SOURCES: &[Source] = &[Source::library(
    "one copy after 50 ms",
    "docs/transports.md",
)];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "udp-spaced-default",
        "each datagram leaves again 50 ms later, so that a burst of losses spares one of the two",
        || checked(Settings::ONE_COPY),
    )
    .of("udp-spaced", PresetKind::Default, SOURCES)
    .also(&["udp-spaced"]),
    Preset::new("udp-spaced-game", "the same: it is made for games", || {
        checked(Settings::ONE_COPY)
    })
    .of("udp-spaced", PresetKind::Game, SOURCES),
    Preset::tuned("udp-spaced", "udp-spaced-tuned", || tuned("udp-spaced")),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "udp-spaced";
    const LIBRARY: &'static str = OWN_LIBRARY;
    const TUNABLES: &'static [Tunable] = &[
        Tunable::integer("copies", 0, 4),
        Tunable::millis("spacing", 5, 500),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        within("copies", self.copies, 0..=16)?;
        let (least, most) = (Span::from_millis(1), Span::from_millis(10_000));
        within("spacing", self.spacing, least..=most)?;
        plain_udp::check_sizes(self.max_datagram, self.buffer)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    /// The header is that of one datagram; its copies come on top.
    fn properties(&self) -> TransportProperties {
        plain_udp::properties(
            self.max_datagram,
            HEADER_BYTES,
            format!(
                "none; every datagram {} times, {} apart",
                self.copies + 1,
                self.spacing
            ),
        )
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
            client: Box::new(UdpSpaced::new(self, up, down)),
            server: Box::new(UdpSpaced::new(self, down, up)),
        }
    }
}

/// One side of a UDP connection with spaced copies.
#[derive(Debug)]
struct UdpSpaced {
    settings: Settings,
    sender: NumberedSender,
    outgoing: ByteQueue,
    /// Datagrams to leave again, soonest first: each is put at the end one
    /// spacing before it is due.
    waiting: ByteQueue<Copy>,
    receiver: NumberedReceiver,
}

/// A datagram that leaves again.
#[derive(Debug)]
struct Copy {
    due: Time,
    /// How many times, this one included.
    left: u8,
    datagram: Vec<u8>,
}

impl AsRef<[u8]> for Copy {
    fn as_ref(&self) -> &[u8] {
        &self.datagram
    }
}

impl UdpSpaced {
    fn new(settings: &Settings, outbound: Integrity, inbound: Integrity) -> Self {
        let buffer_bytes = settings.buffer.bytes() as usize;
        Self {
            settings: settings.clone(),
            sender: NumberedSender::new(outbound),
            outgoing: ByteQueue::new(buffer_bytes),
            waiting: ByteQueue::new(buffer_bytes),
            receiver: NumberedReceiver::new(inbound, buffer_bytes),
        }
    }

    /// Has a datagram that just left leave again `left` times.
    fn repeat(&mut self, now: Time, left: u8, datagram: Vec<u8>) {
        if left > 0 {
            let due = now + self.settings.spacing.0;
            self.waiting.push(Copy {
                due,
                left,
                datagram,
            });
        }
    }
}

impl Endpoint for UdpSpaced {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        Refused::if_larger(message, self.settings.largest_message_bytes())?;
        let datagram = self.sender.datagram(message);
        let has_room = self.waiting.has_room_for(datagram.len());
        if !has_room || !self.outgoing.push(datagram.clone()) {
            return Err(Refused::BufferFull);
        }
        self.sender.sent();
        self.repeat(now, self.settings.copies, datagram);
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
        self.waiting.front().map(|copy| copy.due)
    }

    /// A copy that finds no room to leave is lost, as it could be on its way.
    fn handle_deadline(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|copy| copy.due <= now) {
            let Some(copy) = self.waiting.pop() else {
                return;
            };
            self.outgoing.push(copy.datagram.clone());
            self.repeat(now, copy.left - 1, copy.datagram);
        }
    }

    fn state(&self) -> State {
        State::Ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When datagrams leave for messages sent at `sent`, in milliseconds, and
    /// what they carry.
    fn leaving(settings: &Settings, sent: &[u64]) -> Vec<(u64, u8)> {
        let mut pair = settings.pair(1, Time::ZERO);
        let mut left = Vec::new();
        let mut sent = sent.iter().copied().enumerate().peekable();
        loop {
            let next = sent.peek().map(|&(_, at)| Time::from_millis(at));
            let due = pair.client.next_deadline();
            let Some(now) = [next, due].into_iter().flatten().min() else {
                return left;
            };
            if next == Some(now) {
                let (index, _) = sent.next().unwrap();
                pair.client.send(now, &[index as u8]).unwrap();
            } else {
                pair.client.handle_deadline(now);
            }
            let mut buffer = Vec::new();
            while pair.client.poll_datagram(now, &mut buffer) {
                left.push((now.as_millis(), buffer[HEADER_BYTES]));
            }
        }
    }

    #[test]
    fn copies_leave_one_spacing_apart_and_then_the_line_is_silent() {
        let settings = Settings {
            copies: 2,
            spacing: Span::from_millis(30),
            ..Settings::ONE_COPY
        };
        let expected = [(0, 0), (20, 1), (30, 0), (50, 1), (60, 0), (80, 1)];
        assert_eq!(leaving(&settings, &[0, 20]), expected);
    }

    #[test]
    fn a_message_is_delivered_once_whichever_copy_comes() {
        let mut pair = Settings::ONE_COPY.pair(1, Time::ZERO);
        pair.client.send(Time::ZERO, b"jump").unwrap();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        assert!(pair.client.poll_datagram(Time::ZERO, &mut first));
        assert!(!pair.client.poll_datagram(Time::ZERO, &mut second));
        let due = pair.client.next_deadline().unwrap();
        assert_eq!(due, Time::from_millis(50));
        pair.client.handle_deadline(due);
        assert!(pair.client.poll_datagram(due, &mut second));
        assert_eq!(first, second);
        for datagram in [&first, &second] {
            pair.server.handle_datagram(due, datagram);
        }
        assert_eq!(pair.server.receive(due).unwrap().bytes, b"jump");
        assert_eq!(pair.server.receive(due), None);
        assert_eq!(pair.client.next_deadline(), None);
    }

    #[test]
    fn what_waits_to_leave_again_is_bounded() {
        let settings = Settings {
            buffer: Size(10_000),
            spacing: Span::from_millis(10_000),
            ..Settings::ONE_COPY
        };
        let mut pair = settings.pair(1, Time::ZERO);
        let mut buffer = Vec::new();
        let mut taken = 0;
        while pair.client.send(Time::ZERO, &[0; 100]).is_ok() {
            taken += 1;
            while pair.client.poll_datagram(Time::ZERO, &mut buffer) {}
        }
        assert_eq!(taken, 10_000 / (64 + 108));
        pair.client.handle_deadline(Time::from_secs(10));
        while pair.client.poll_datagram(Time::ZERO, &mut buffer) {}
        pair.client.send(Time::from_secs(10), &[0; 100]).unwrap();
    }

    #[test]
    fn without_copies_it_is_plain_udp() {
        let settings = Settings {
            copies: 0,
            ..Settings::ONE_COPY
        };
        assert_eq!(leaving(&settings, &[0, 7]), [(0, 0), (7, 1)]);
    }
}
