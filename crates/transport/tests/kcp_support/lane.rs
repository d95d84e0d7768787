//! Two endpoints over a link in virtual time, driven as the trait asks.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_transport::kcp::{KcpEndpoint, Settings, pair};
use lagometer_transport::{Endpoint, Message};
use lagometer_units::Time;

/// Client (0) and server (1), and the datagrams between them.
pub(crate) struct Lane<F> {
    pub(crate) ends: [KcpEndpoint; 2],
    pub(crate) now: Time,
    pub(crate) delay: Duration,
    /// Called with the sending end, the time and the datagram; says whether it is
    /// lost.
    loses: F,
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    pub(crate) datagrams: Vec<(Time, usize, Vec<u8>)>,
    pub(crate) wakes: u64,
    /// Whether an end reads what has arrived.
    pub(crate) reads: [bool; 2],
    /// Whether the server answers each message with itself.
    pub(crate) echoes: bool,
    pub(crate) received: [Vec<(Time, Message)>; 2],
}

impl<F: FnMut(usize, Time, &[u8]) -> bool> Lane<F> {
    pub(crate) fn new(settings: &Settings, delay: Duration, loses: F) -> Self {
        let (client, server) = pair(settings, 7, Time::ZERO).expect("tests use valid settings");
        Self {
            ends: [client, server],
            now: Time::ZERO,
            delay,
            loses,
            wire: BTreeMap::new(),
            datagrams: Vec::new(),
            wakes: 0,
            reads: [true; 2],
            echoes: false,
            received: [Vec::new(), Vec::new()],
        }
    }

    /// Runs until `until`, exclusively.
    pub(crate) fn run_until(&mut self, until: Time) {
        while let Some(next) = self.next_event().filter(|&next| next < until) {
            self.now = self.now.max(next);
            let now = self.now;
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= now
            {
                let (to, bytes) = entry.remove();
                self.ends[to].handle_datagram(now, &bytes);
                self.drain(to);
            }
            for side in [0, 1] {
                if self.ends[side]
                    .next_deadline()
                    .is_some_and(|due| due <= now)
                {
                    self.wakes += 1;
                    self.ends[side].handle_deadline(now);
                    self.drain(side);
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// Lets one end send at the present instant.
    pub(crate) fn send(&mut self, side: usize, message: &[u8]) {
        self.ends[side]
            .send(self.now, message)
            .expect("the message is taken");
        self.drain(side);
    }

    pub(crate) fn drain(&mut self, side: usize) {
        if self.reads[side] {
            while let Some(message) = self.ends[side].receive(self.now) {
                if self.echoes && side == 1 {
                    self.ends[1]
                        .send(self.now, &message.bytes)
                        .expect("the echo is taken");
                }
                self.received[side].push((self.now, message));
            }
        }
        let mut buffer = Vec::new();
        while self.ends[side].poll_datagram(self.now, &mut buffer) {
            self.datagrams.push((self.now, side, buffer.clone()));
            if !(self.loses)(side, self.now, &buffer) {
                let order = self.datagrams.len() as u64;
                let key = (self.now + self.delay, order);
                self.wire.insert(key, (1 - side, buffer.clone()));
            }
        }
    }

    fn next_event(&mut self) -> Option<Time> {
        let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
        let [client, server] = &mut self.ends;
        let deadlines = [client.next_deadline(), server.next_deadline()];
        deadlines.into_iter().flatten().chain(arrival).min()
    }
}
