//! `udp-redundant`: plain UDP where each message rides again in the next few
//! datagrams, as shooters do for player input. Loss costs no round trip: what
//! one datagram lost, the next one brings.
//!
//! A datagram is a CRC-32 bound to the connection, the 32-bit number of its
//! newest message, then messages from the newest to the oldest, each behind a
//! 16-bit length; their numbers count down. All little-endian. Repetitions that
//! do not fit leave at once in datagrams of their own, of the same kind, so
//! messages of any size are carried equally often. Repeated messages are
//! delivered once, in the order of their numbers within one datagram.
//!
//! The last message before a pause has nobody to ride with. If no new message
//! comes for `tail_interval` a datagram of repetitions alone leaves, and so on
//! until each message has been carried `copies` more times. Nothing is
//! acknowledged and nothing is sent beyond that; there is no handshake and no
//! keep-alive, so a dead link is never noticed.
//!
//! Damage that UDP's own checksum lets pass is caught by the CRC, save for
//! one case in 2^32.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_units::{Size, Span, Time};
use serde::{Deserialize, Serialize};

use crate::byte_queue::ByteQueue;
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::integrity::{CHECK_BYTES, Integrity};
use crate::plain_udp;
use crate::replay_window::ReplayWindow;
use crate::transport::within;
use crate::tuned::tuned;
use crate::{
    BadSetting, Encapsulation, Endpoint, Message, OWN_LIBRARY, Pair, Refused, State, Transport,
    TransportProperties, Tunable,
};

/// Checksum and the number of the newest message.
const HEADER_BYTES: usize = CHECK_BYTES + 4;

/// The length in front of each message.
const LENGTH_BYTES: usize = 2;

/// How messages are repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How many times each message is carried again, with the next messages
    /// sent; 0 to 32.
    pub copies: u8,
    /// How long after the last datagram one of repetitions alone leaves, if
    /// no new message came; 1 ms to 10 s. Above the game's send interval it
    /// costs nothing while play goes on.
    pub tail_interval: Span,
    /// Largest UDP payload that is made, our 8 bytes of header and 2 for each
    /// message included; 64 B to 65507 B.
    pub max_datagram: Size,
    /// Most bytes of datagrams that wait to leave, and of messages that wait
    /// to be read; 1 KiB to 1 GB. A full receive buffer drops what arrives, as
    /// a socket's does.
    pub buffer: Size,
}

impl Settings {
    /// Three copies, the tail after 100 ms, datagrams up to 1400 B and the
    /// default socket buffer of Linux.
    pub const THREE_COPIES: Self = Self {
        copies: 3,
        tail_interval: Span::from_millis(100),
        max_datagram: Size(1400),
        buffer: plain_udp::BUFFER,
    };
}

/// This transport is the lab's own, and so is its documentation.
const SOURCES: &[Source] = &[Source::library(
    "three repetitions, as shooters send input",
    "docs/transports.md",
)];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "udp-redundant-default",
        "each message again with the next 3, in datagrams of their own where they do not fit",
        || checked(Settings::THREE_COPIES),
    )
    .of("udp-redundant", PresetKind::Default, SOURCES)
    .also(&["udp-redundant"]),
    Preset::new(
        "udp-redundant-game",
        "the same: it is made for games",
        || checked(Settings::THREE_COPIES),
    )
    .of("udp-redundant", PresetKind::Game, SOURCES),
    Preset::tuned("udp-redundant", "udp-redundant-tuned", || {
        tuned("udp-redundant")
    }),
];

impl Transport for Settings {
    const TRANSPORT: &'static str = "udp-redundant";
    const LIBRARY: &'static str = OWN_LIBRARY;
    const TUNABLES: &'static [Tunable] = &[
        Tunable::integer("copies", 0, 16),
        Tunable::millis("tail_interval", 5, 500),
    ];

    fn check(&self) -> Result<(), BadSetting> {
        within("copies", self.copies, 0..=32)?;
        within(
            "tail_interval",
            self.tail_interval,
            Span::from_millis(1)..=Span::from_millis(10_000),
        )?;
        plain_udp::check_sizes(self.max_datagram, self.buffer)
    }

    fn encapsulation(&self) -> Encapsulation {
        Encapsulation::UdpIpv4
    }

    /// The header is that of the message itself; its repetitions come on top.
    fn properties(&self) -> TransportProperties {
        plain_udp::properties(
            self.max_datagram,
            HEADER_BYTES + LENGTH_BYTES,
            format!("none; every message {} times", self.copies + 1),
        )
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_datagram.bytes() as usize - HEADER_BYTES - LENGTH_BYTES
    }

    fn dead_link_after(&self) -> Option<Duration> {
        None
    }

    fn pair(&self, seed: u64, _start: Time) -> Pair {
        let (up, down) = Integrity::both_directions(seed);
        Pair {
            client: Box::new(UdpRedundant::new(self, up, down)),
            server: Box::new(UdpRedundant::new(self, down, up)),
        }
    }
}

/// One side of a UDP connection with repetitions.
#[derive(Debug)]
struct UdpRedundant {
    settings: Settings,
    outbound: Integrity,
    inbound: Integrity,
    next_number: u32,
    /// The latest messages, newest first, as long as they ride along.
    riding: VecDeque<Rider>,
    /// When a datagram of repetitions alone leaves.
    tail_at: Option<Time>,
    outgoing: ByteQueue,
    seen: ReplayWindow,
    arrived: ByteQueue<Message>,
}

/// A message that rides along in later datagrams.
#[derive(Debug)]
struct Rider {
    bytes: Vec<u8>,
    /// How many more datagrams shall carry it.
    rides_left: u8,
}

impl UdpRedundant {
    fn new(settings: &Settings, outbound: Integrity, inbound: Integrity) -> Self {
        let buffer_bytes = settings.buffer.bytes() as usize;
        Self {
            settings: settings.clone(),
            outbound,
            inbound,
            next_number: 0,
            riding: VecDeque::new(),
            tail_at: None,
            outgoing: ByteQueue::new(buffer_bytes),
            seen: ReplayWindow::new(),
            arrived: ByteQueue::new(buffer_bytes),
        }
    }

    /// Builds datagrams of everything that rides, newest first and as few as may
    /// be, and counts the ride.
    fn emit(&mut self, now: Time) {
        let limit_bytes = self.settings.max_datagram.bytes() as usize;
        let mut number = self.next_number.wrapping_sub(1);
        let mut datagram = begun(number);
        for rider in &self.riding {
            if datagram.len() + LENGTH_BYTES + rider.bytes.len() > limit_bytes {
                let mut full = std::mem::replace(&mut datagram, begun(number));
                self.outbound.seal(&mut full);
                self.outgoing.push(full);
            }
            let length = u16::try_from(rider.bytes.len())
                .expect("send() takes no message longer than a datagram");
            datagram.extend_from_slice(&length.to_le_bytes());
            datagram.extend_from_slice(&rider.bytes);
            number = number.wrapping_sub(1);
        }
        self.outbound.seal(&mut datagram);
        self.outgoing.push(datagram);

        for rider in &mut self.riding {
            rider.rides_left = rider.rides_left.saturating_sub(1);
        }
        // Numbers count down from the newest, so only the oldest may leave.
        while self.riding.back().is_some_and(|r| r.rides_left == 0) {
            self.riding.pop_back();
        }
        self.tail_at = (!self.riding.is_empty()).then(|| now + self.settings.tail_interval.0);
    }
}

/// A datagram whose first message has this number, still without messages.
fn begun(number: u32) -> Vec<u8> {
    let mut datagram = vec![0; CHECK_BYTES];
    datagram.extend_from_slice(&number.to_le_bytes());
    datagram
}

impl Endpoint for UdpRedundant {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        Refused::if_larger(message, self.settings.largest_message_bytes())?;
        let riding = self.riding.iter().map(|rider| rider.bytes.len());
        // At worst each leaves in a datagram of its own.
        let room: usize = riding
            .chain([message.len()])
            .map(|bytes| HEADER_BYTES + LENGTH_BYTES + bytes)
            .sum();
        if !self.outgoing.has_room_for(room) {
            return Err(Refused::BufferFull);
        }
        self.next_number = self.next_number.wrapping_add(1);
        self.riding.push_front(Rider {
            bytes: message.to_vec(),
            rides_left: self.settings.copies + 1,
        });
        self.emit(now);
        Ok(())
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        self.arrived.pop()
    }

    fn handle_datagram(&mut self, _now: Time, datagram: &[u8]) {
        let Some(body) = self.inbound.open(datagram) else {
            return;
        };
        let Some((newest, mut rest)) = body.split_first_chunk() else {
            return;
        };
        let mut number = u32::from_le_bytes(*newest);
        let mut fresh = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let Some((message, after)) =
                after.split_at_checked(usize::from(u16::from_le_bytes(*length)))
            else {
                break;
            };
            if self.seen.accept(number) {
                fresh.push(Message {
                    bytes: message.to_vec(),
                    blocked: Some(Duration::ZERO),
                });
            }
            number = number.wrapping_sub(1);
            rest = after;
        }
        while let Some(message) = fresh.pop() {
            self.arrived.push(message);
        }
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        self.outgoing.pop_into(buffer)
    }

    fn next_deadline(&mut self) -> Option<Time> {
        self.tail_at
    }

    fn handle_deadline(&mut self, now: Time) {
        if self.tail_at.is_some_and(|at| at <= now) {
            self.emit(now);
        }
    }

    fn state(&self) -> State {
        State::Ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_tests::{datagrams, received};

    #[test]
    fn one_datagram_brings_what_the_three_before_it_lost() {
        let mut pair = Settings::THREE_COPIES.pair(1, Time::ZERO);
        for n in 0..5_u8 {
            pair.client.send(Time::ZERO, &[n; 20]).unwrap();
        }
        let datagrams = datagrams(&mut *pair.client);
        assert_eq!(datagrams.len(), 5);
        pair.server.handle_datagram(Time::ZERO, &datagrams[4]);
        pair.server.handle_datagram(Time::ZERO, &datagrams[3]);
        let expected: Vec<Vec<u8>> = [1, 2, 3, 4, 0].map(|n: u8| vec![n; 20]).into();
        assert_eq!(received(&mut *pair.server), expected);
    }

    #[test]
    fn repetitions_that_do_not_fit_leave_in_datagrams_of_their_own() {
        let mut pair = Settings::THREE_COPIES.pair(1, Time::ZERO);
        let mut last = Vec::new();
        for n in 0..4_u8 {
            pair.client.send(Time::ZERO, &[n; 500]).unwrap();
            last = datagrams(&mut *pair.client);
        }
        assert_eq!(last.len(), 2, "two of 500 B fit, four do not");
        assert!(last.iter().all(|datagram| datagram.len() <= 1400));
        pair.server.handle_datagram(Time::ZERO, &last[0]);
        assert_eq!(received(&mut *pair.server), [vec![2; 500], vec![3; 500]]);
        pair.server.handle_datagram(Time::ZERO, &last[1]);
        assert_eq!(received(&mut *pair.server), [vec![0; 500], vec![1; 500]]);
    }

    #[test]
    fn a_message_of_any_size_is_carried_four_times() {
        let largest = Settings::THREE_COPIES.largest_message_bytes();
        for size in [0, 1, 20, 345, 346, 500, 694, 695, 1000, largest] {
            let mut pair = Settings::THREE_COPIES.pair(1, Time::ZERO);
            let mut carried = Vec::new();
            for n in 0..8_u8 {
                pair.client.send(Time::ZERO, &vec![n; size]).unwrap();
                carried.extend(datagrams(&mut *pair.client));
            }
            while let Some(deadline) = pair.client.next_deadline() {
                pair.client.handle_deadline(deadline);
                carried.extend(datagrams(&mut *pair.client));
            }
            let mut times = [0; 8];
            for datagram in &carried {
                assert!(datagram.len() <= 1400, "{size}");
                // Whoever has received nothing else takes all that is in it.
                let mut other = Settings::THREE_COPIES.pair(1, Time::ZERO);
                let newest = u32::from_le_bytes(datagram[CHECK_BYTES..][..4].try_into().unwrap());
                other.server.handle_datagram(Time::ZERO, datagram);
                let messages = received(&mut *other.server);
                assert!(!messages.is_empty(), "{size}");
                for (message, number) in messages.iter().rev().zip((0..=newest).rev()) {
                    assert_eq!(message, &vec![number as u8; size]);
                    times[number as usize] += 1;
                }
            }
            assert_eq!(times, [4; 8], "{size} B");
        }
    }

    #[test]
    fn a_lone_message_is_repeated_and_then_the_line_is_silent() {
        let mut pair = Settings::THREE_COPIES.pair(1, Time::ZERO);
        pair.client.send(Time::ZERO, b"gg").unwrap();
        let mut at = Vec::new();
        while let Some(deadline) = pair.client.next_deadline() {
            pair.client.handle_deadline(deadline);
            at.push(deadline.as_millis());
        }
        assert_eq!(at, [100, 200, 300]);
        assert_eq!(datagrams(&mut *pair.client).len(), 4);
    }

    #[test]
    fn steady_play_costs_one_datagram_for_each_message() {
        let mut pair = Settings::THREE_COPIES.pair(1, Time::ZERO);
        for tick in 0..20 {
            let now = Time::from_millis(tick * 50);
            assert!(pair.client.next_deadline().is_none_or(|at| at > now));
            pair.client.send(now, b"input").unwrap();
        }
        assert_eq!(datagrams(&mut *pair.client).len(), 20);
    }
}
