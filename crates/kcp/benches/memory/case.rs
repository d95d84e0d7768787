//! The two scenarios in which memory is measured.

use std::hint::black_box;

use crate::digest::Digest;
use crate::ends::End;
use crate::wire::{Fates, Wire};

/// The size of every message: a full segment.
pub(crate) const MESSAGE_BYTES: usize = 1_376;
/// What a message holds after its number.
pub(crate) const FILLING: u8 = 0x5a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Exchange,
    Path,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    pub(crate) window: u16,
    pub(crate) loss_percent: u64,
    /// Segments to deliver.
    pub(crate) segments: u64,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        let scenario = match self.scenario {
            Scenario::Exchange => "exchange",
            Scenario::Path => "path",
        };
        format!(
            "{scenario} window {} loss {} %",
            self.window, self.loss_percent
        )
    }
}

/// Plays a case; returns the digest of all datagrams, or what it costs
/// nothing to know if there is to be none.
pub(crate) fn play<E: End, const DIGEST: bool>(case: &Case) -> u64 {
    let mut fates = Fates::new(case.loss_percent);
    let mut digest = Digest::default();
    match case.scenario {
        Scenario::Exchange => exchange::<E, DIGEST>(case, &mut fates, &mut digest),
        Scenario::Path => path::<E, DIGEST>(case, &mut fates, &mut digest),
    }
    digest.value()
}

fn exchange<E: End, const DIGEST: bool>(case: &Case, fates: &mut Fates, digest: &mut Digest) {
    let [mut here, mut there] = [(); 2].map(|()| E::new(case.window));
    let mut traffic = Traffic::default();
    let mut now = 0;
    while traffic.received < case.segments {
        now += 10;
        traffic.fill(&mut here, case.window);
        here.update(now, |bytes| {
            if DIGEST {
                digest.add(bytes);
            }
            if fates.arrives() {
                there.input(bytes);
                traffic.read(&mut there);
            }
        });
        there.update(now, |bytes| {
            if DIGEST {
                digest.add(bytes);
            }
            if fates.arrives() {
                here.input(bytes);
            }
        });
    }
}

fn path<E: End, const DIGEST: bool>(case: &Case, fates: &mut Fates, digest: &mut Digest) {
    const DELAY_MS: u32 = 20;
    let [mut here, mut there] = [(); 2].map(|()| E::new(case.window));
    let mut traffic = Traffic::default();
    let (mut up, mut down) = (Wire::default(), Wire::default());
    let mut now = 0;
    let mut post = |wire: &mut Wire, now: u32, bytes: &[u8]| {
        if DIGEST {
            digest.add(bytes);
        }
        wire.push(now + DELAY_MS, bytes, fates.arrives());
    };
    while traffic.received < case.segments {
        now += 1;
        here.update(now, |bytes| post(&mut up, now, bytes));
        there.update(now, |bytes| post(&mut down, now, bytes));
        while down.pop(now, |bytes| here.input(bytes)) {}
        while up.pop(now, |bytes| {
            there.input(bytes);
            traffic.read(&mut there);
        }) {}
        // A tenth more than the round trip, so that the first burst, which
        // waits for the receiver to report its window, does not go on for ever.
        traffic.trickle(&mut here, case.window, 44);
        here.flush(|bytes| post(&mut up, now, bytes));
        there.flush(|bytes| post(&mut down, now, bytes));
        black_box((here.check(now), there.check(now)));
    }
}

/// The messages of a transfer, numbered.
struct Traffic {
    message: Vec<u8>,
    sent: u64,
    received: u64,
    /// Messages produced and not sent.
    produced: f64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            message: vec![FILLING; MESSAGE_BYTES],
            sent: 0,
            received: 0,
            produced: 0.0,
        }
    }
}

impl Traffic {
    /// Sends until as much waits as fits the window.
    fn fill(&mut self, end: &mut impl End, window: u16) {
        while end.waiting() < usize::from(window) {
            self.send(end);
        }
    }

    /// Sends a step's share of a window that is sent in so many steps, and
    /// what earlier steps had no room for.
    fn trickle(&mut self, end: &mut impl End, window: u16, steps: u32) {
        self.produced += f64::from(window) / f64::from(steps);
        while self.produced >= 1.0 && end.waiting() < usize::from(window) {
            self.produced -= 1.0;
            self.send(end);
        }
    }

    /// Reads all there is.
    fn read(&mut self, end: &mut impl End) {
        while let Some(message) = end.receive() {
            assert_eq!(message.len(), MESSAGE_BYTES);
            assert_eq!(message[..8], self.received.to_le_bytes());
            assert_eq!(message[MESSAGE_BYTES - 1], FILLING);
            self.received += 1;
        }
    }

    fn send(&mut self, end: &mut impl End) {
        self.message[..8].copy_from_slice(&self.sent.to_le_bytes());
        end.send(&self.message);
        self.sent += 1;
    }
}
