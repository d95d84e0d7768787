//! Two endpoints and a wire between them in virtual time. What happens to a
//! packet depends on the seed, its direction and its index alone, never on
//! what it holds, so that randomness inside a transport cannot change it.
//! Every run has a budget of steps: an endpoint that asks to be woken for
//! ever without getting anywhere fails instead of hanging.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use lagometer_transport::{BoxedEndpoint, Message, Pair, Refused, State};
use lagometer_units::Time;

/// The client, as an index.
pub(crate) const CLIENT: usize = 0;
/// The server, as an index.
pub(crate) const SERVER: usize = 1;

/// What the wire does to packets, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairments {
    pub(crate) delay: Duration,
    /// Up to so much is added to the delay, whereby packets overtake.
    pub(crate) jitter: Duration,
    /// Shares of packets, in per mille.
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    pub(crate) damaged: u64,
}

impl Impairments {
    pub(crate) const NONE: Self = Self {
        delay: Duration::from_millis(20),
        jitter: Duration::ZERO,
        loss: 0,
        duplicates: 0,
        damaged: 0,
    };
    pub(crate) const HEAVY: Self = Self {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(30),
        loss: 100,
        duplicates: 50,
        damaged: 30,
    };
}

/// One packet as the wire saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) at: Time,
    pub(crate) from: usize,
    pub(crate) size: usize,
    /// Hash of what it held.
    pub(crate) digest: u64,
}

pub(crate) struct Wire {
    pub(crate) ends: [BoxedEndpoint; 2],
    pub(crate) now: Time,
    pub(crate) impairments: Impairments,
    /// Every packet offered, in order.
    pub(crate) passed: Vec<Passed>,
    /// What each end received, in order.
    pub(crate) received: [VecDeque<(Time, Message)>; 2],
    /// Whether the server sends back whatever it receives.
    pub(crate) echo: bool,
    /// Whether an end takes its messages out.
    pub(crate) reads: [bool; 2],
    /// Whether packets are dropped altogether.
    pub(crate) cut: bool,
    seed: u64,
    sent: [u64; 2],
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    launched: u64,
    steps: u64,
    buffer: Vec<u8>,
}

/// Steps for each simulated second before a run is taken for stuck.
const STEPS_PER_SECOND: u64 = 20_000;

impl Wire {
    /// A message passes each way within so long.
    pub(crate) fn assert_it_works(&mut self, within: Duration) {
        for from in [CLIENT, SERVER] {
            self.received[1 - from].clear();
            self.send(from, &numbered(9, 500)).unwrap();
            self.run_for(within);
            let (_, message) = self.received[1 - from].pop_front().unwrap();
            assert_eq!(number(&message.bytes), Some(9));
        }
    }

    pub(crate) fn new(pair: Pair, impairments: Impairments, seed: u64) -> Self {
        let mut wire = Self {
            ends: [pair.client, pair.server],
            now: Time::ZERO,
            impairments,
            passed: Vec::new(),
            received: [VecDeque::new(), VecDeque::new()],
            echo: false,
            reads: [true; 2],
            cut: false,
            seed,
            sent: [0; 2],
            flying: BTreeMap::new(),
            launched: 0,
            steps: 0,
            buffer: Vec::new(),
        };
        wire.drain(CLIENT);
        wire.drain(SERVER);
        wire
    }

    pub(crate) fn send(&mut self, from: usize, message: &[u8]) -> Result<(), Refused> {
        let result = self.ends[from].send(self.now, message);
        self.drain(from);
        result
    }

    /// Sends, if refused again and again until taken.
    pub(crate) fn send_patiently(&mut self, from: usize, message: &[u8]) {
        for _ in 0..10_000 {
            match self.send(from, message) {
                Ok(()) => return,
                Err(Refused::BufferFull) => self.run_for(Duration::from_millis(5)),
                Err(refused) => panic!("{refused}"),
            }
        }
        panic!("the buffer stays full");
    }

    /// Hands an end a datagram that did not come from its peer.
    pub(crate) fn inject(&mut self, to: usize, datagram: &[u8]) {
        self.ends[to].handle_datagram(self.now, datagram);
        self.drain(to);
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        let budget = self.steps + STEPS_PER_SECOND * (span.as_secs() + 1);
        while let Some((at, what)) = self.next() {
            if at > until {
                break;
            }
            self.steps += 1;
            assert!(self.steps < budget, "no progress at {}", self.now);
            self.now = self.now.max(at);
            match what {
                Next::Arrival => {
                    let (_, (to, datagram)) = self.flying.pop_first().unwrap();
                    self.ends[to].handle_datagram(self.now, &datagram);
                    self.drain(to);
                }
                Next::Deadline(end) => {
                    self.ends[end].handle_deadline(self.now);
                    self.drain(end);
                }
            }
        }
        self.now = until;
    }

    /// Runs until both ends are ready.
    pub(crate) fn connect(&mut self) {
        for _ in 0..30_000 {
            if self.ends.iter().all(|end| end.state() == State::Ready) {
                return;
            }
            self.run_for(Duration::from_millis(1));
        }
        let states: Vec<_> = self.ends.iter().map(|end| end.state()).collect();
        panic!("not connected: {states:?}");
    }

    fn next(&mut self) -> Option<(Time, Next)> {
        let arrival = self
            .flying
            .keys()
            .next()
            .map(|&(at, _)| (at, Next::Arrival));
        let deadlines = [CLIENT, SERVER].map(|end| {
            self.ends[end]
                .next_deadline()
                .map(|at| (at, Next::Deadline(end)))
        });
        deadlines
            .into_iter()
            .chain([arrival])
            .flatten()
            .min_by_key(|&(at, _)| at)
    }

    /// Takes messages and datagrams out of an end until there are none.
    fn drain(&mut self, end: usize) {
        if self.reads[end] {
            while let Some(message) = self.ends[end].receive(self.now) {
                if self.echo && end == SERVER {
                    let _ = self.ends[end].send(self.now, &message.bytes);
                }
                self.received[end].push_back((self.now, message));
            }
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut burst = 0;
        while self.ends[end].poll_datagram(self.now, &mut buffer) {
            burst += 1;
            assert!(burst < 100_000, "an endless burst at {}", self.now);
            self.offer(end, &buffer);
        }
        self.buffer = buffer;
    }

    fn offer(&mut self, from: usize, datagram: &[u8]) {
        self.passed.push(Passed {
            at: self.now,
            from,
            size: datagram.len(),
            digest: digest(datagram),
        });
        let index = self.sent[from];
        self.sent[from] += 1;
        let coin = |what: u64| digest(&(self.seed, from, index, what));
        if self.cut || coin(0) % 1000 < self.impairments.loss {
            return;
        }
        let copies = 1 + u64::from(coin(1) % 1000 < self.impairments.duplicates);
        for copy in 0..copies {
            let mut datagram = datagram.to_vec();
            if coin(2 + copy) % 1000 < self.impairments.damaged && !datagram.is_empty() {
                let at = (coin(4) % datagram.len() as u64) as usize;
                datagram[at] ^= 1 << (coin(5) % 8);
            }
            let jitter = self.impairments.jitter.as_nanos() as u64;
            let jitter = Duration::from_nanos(coin(6 + copy) % (jitter + 1));
            let at = self.now + self.impairments.delay + jitter;
            self.flying
                .insert((at, self.launched), (1 - from, datagram));
            self.launched += 1;
        }
    }
}

enum Next {
    Arrival,
    Deadline(usize),
}

/// A hash that is the same in every process.
pub(crate) fn digest<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The message number `index`: its number, then a pattern that depends on
/// it, so that damage and mix-ups show.
pub(crate) fn numbered(index: u64, size: usize) -> Vec<u8> {
    let mut message = index.to_le_bytes().to_vec();
    message.extend((8..size).map(|at| (digest(&index) >> (at % 57)) as u8));
    message.truncate(size);
    message
}

/// The number of a message, if it is whole.
pub(crate) fn number(message: &[u8]) -> Option<u64> {
    let index = u64::from_le_bytes(*message.first_chunk()?);
    (numbered(index, message.len()) == message).then_some(index)
}
